#include "tranship/file/reshard.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/engine/forecast.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/format/formats.hpp>
#include <tranship/file/io/target_path.hpp>
#include <tranship/file/store/part_source.hpp>

namespace tranship {
namespace {

ArraySource source_of(const ReshardOptions& options) {
  return {.path = options.source, .layout = options.from, .raw = options.raw};
}

/// Returns the file or directory that the target names.
std::string path_of_target(const ReshardOptions& options) {
  return format_of_target(options.target).file_of(options.target);
}

OpenArray open_source(const ReshardOptions& options, const ArraySource& source, const Format& format) {
  if (!options.target.empty()) check_apart(format.file_of(source.path), path_of_target(options));
  OpenArray out = format.open(source).value();
  check_fits(out.array.spec, options.to);
  if (!options.target.empty()) check_links(*out.array.files, path_of_target(options));
  return out;
}

ReshardRunOptions run_options(const ReshardOptions& given) {
  return settled({.verify = given.verify,
                  .progress = given.progress,
                  .memory_bytes = given.memory_bytes,
                  .threads = given.threads,
                  .sync_interval_bytes = given.sync_interval_bytes,
                  .after_failure = given.after_failure});
}

/// Returns the text files that a directory has beside its parts.
std::vector<TextFile> text_files(const StoredParts& source, const ArraySpec& to,
                                 std::span<const std::uint32_t> checksums) {
  Manifest out = make_manifest(to, source.descr);
  out.checksums.assign(checksums.begin(), checksums.end());
  out.is_scalar = source.is_scalar;
  return {TextFile{manifest_name, format_manifest(out)}};
}

/// Does the work once the source is open and checked.
ReshardReport run(const StoredParts& source, const ReshardOptions& given, const ReshardRunOptions& options,
                  std::int64_t start_ns) {
  NewParts target =
      NewParts::open(path_of_target(given), new_array(given.target, given.to, {source.descr, source.is_scalar}).value())
          .value();
  const auto manifest = [&](std::span<const std::uint32_t> checksums) {
    return text_files(source, given.to, checksums);
  };
  const auto reopen = [&](const std::string& path) {
    const ArraySource made{.path = path, .layout = given.to, .descr = target.arrays().front().descr};
    return std::vector{format_of_target(given.target).open(made).value().array};
  };
  const ReshardOutcome outcome = run_reshard({{&source, 1}, *source.files, source.checksums}, target, options,
                                             {.manifest = manifest, .reopen = reopen});

  ReshardReport report{.from = source.spec,
                       .to = given.to,
                       .bytes_read = outcome.bytes_read,
                       .bytes_written = outcome.totals.bytes,
                       .bytes_resumed = outcome.totals.bytes_resumed,
                       .parts_written = outcome.totals.parts,
                       .memory_bytes = options.memory_bytes,
                       .threads = options.threads,
                       .verified = given.verify};
  for (std::size_t i = 0; i < outcome.checksums.size(); ++i)
    report.checksums.push_back({target.files()[i].name, outcome.checksums[i]});
  report.duration_ns = now_ns() - start_ns;
  return report;
}

/// Reads an array that is not in a file.
class BoxSource final : public PartSource {
 public:
  BoxSource(const ReadableArray& array, const Indices& extents)
      : array_(array), extents_(extents), chunk_(array.chunk) {
    for (int d = 0; d < chunk_.size(); ++d)
      chunk_[d] = std::clamp<Index>(chunk_[d], 1, std::max<Index>(1, extents_[d]));
  }

  Indices extents(Index) const override { return extents_; }
  Indices grain(Index) const override { return chunk_; }
  void read(Index, const Box& box, const StridedView& target, ReadScratch&) const override { array_.read(box, target); }

 private:
  const ReadableArray& array_;
  Indices extents_, chunk_;
};

}  // namespace

ReshardReport reshard(const ReshardOptions& given) {
  const std::int64_t start_ns = now_ns();
  const ReshardRunOptions options = run_options(given);
  stored_order(given.to);
  const ArraySource from = source_of(given);
  const Format& format = format_of(from);
  OpenArray opened = open_source(given, from, format);
  StoredParts& source = opened.array;
  if (opened.unpacked_bytes > 0) format.unpack(from, folder_of(resolved_target(path_of_target(given))), source);
  if (given.verify == Verify::yes) check_checksums(*source.files, source.checksums);
  return run(source, given, options, start_ns);
}

ReshardReport reshard_array(const ReadableArray& source, const ReshardOptions& given) {
  const std::int64_t start_ns = now_ns();
  ReshardRunOptions options = run_options(given);
  options.after_failure = AfterFailure::leave_nothing;
  stored_order(given.to);
  const Distribution& whole = source.spec.distribution;
  if (whole.grid().size() != 1 || source.chunk.size() != whole.dims())
    throw_error(ErrorCode::invalid_use,
                "an array that is read by boxes needs 1 part and a chunk for each of its {}, it has {} and {}",
                amount(whole.dims(), "dimension"), amount(whole.grid().size(), "part"), source.chunk.size());
  if (!source.read) throw_error(ErrorCode::invalid_use, "an array that is read by boxes needs a function that reads");
  check_fits(source.spec, given.to);
  const Indices extents = whole.local_extents(whole.grid().rank_at(0));
  const StoredParts parts{.spec = source.spec,
                          .descr = make_npy_header(source.spec.type, {1}).descr,
                          .files = std::make_shared<FileSet>(FileAccess::read_only),
                          .parts = {StoredPart{.extents = extents}},
                          .source = std::make_shared<const BoxSource>(source, extents)};
  return run(parts, given, options, start_ns);
}

ArrayForecast forecast_reshard(const ReshardOptions& given) {
  stored_order(given.to);
  const ArraySource from = source_of(given);
  const auto [source, unpacked_bytes] = open_source(given, from, format_of(from));
  const NewArrays made = new_array(given.target, given.to, {source.descr, source.is_scalar}).value();
  ArrayForecast out{
      source.spec, given.to,
      forecast_of({&source, 1}, made, path_of_target(given), unpacked_bytes, given.memory_bytes, given.threads)};
  if (made.kind == StagedKind::directory) {
    const std::vector<std::uint32_t> any(made.files.size());
    for (const TextFile& file : text_files(source, given.to, any))
      out.work.disk_bytes = checked_add(out.work.disk_bytes, static_cast<Index>(file.text.size()));
  }
  return out;
}

Result<StoredArray> inspect(const std::string& path) {
  return format_of({.path = path}).inspect(path);
}

}  // namespace tranship
