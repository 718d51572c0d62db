#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/engine/forecast.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/format/formats.hpp>
#include <tranship/file/io/target_path.hpp>
#include <tranship/file/reshard.hpp>

namespace tranship {
namespace {

ArraySource source_of(const ReshardOptions& options) {
  return {.path = options.source, .layout = options.from, .raw = options.raw};
}

/// The file or directory that the target is.
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

}  // namespace

ReshardReport reshard(const ReshardOptions& given) {
  const std::int64_t start_ns = now_ns();
  const ReshardRunOptions options = settled({.verify = given.verify,
                                             .progress = given.progress,
                                             .memory_bytes = given.memory_bytes,
                                             .threads = given.threads,
                                             .sync_interval_bytes = given.sync_interval_bytes,
                                             .after_failure = given.after_failure});
  stored_order(given.to);
  const ArraySource from = source_of(given);
  const Format& format = format_of(from);
  OpenArray opened = open_source(given, from, format);
  StoredParts& source = opened.array;
  const std::string target_path = path_of_target(given);
  if (opened.unpacked_bytes > 0) format.unpack(from, folder_of(resolved_target(target_path)), source);
  if (given.verify == Verify::yes) {
    check_checksums(*source.files, source.checksums);
    format.check(from);
  }

  NewParts target =
      NewParts::open(target_path, new_array(given.target, given.to, {source.descr, source.is_scalar}).value()).value();
  const auto manifest = [&](std::span<const std::uint32_t> checksums) {
    Manifest out = make_manifest(given.to, source.descr);
    out.checksums.assign(checksums.begin(), checksums.end());
    out.is_scalar = source.is_scalar;
    return std::vector{TextFile{manifest_name, format_manifest(out)}};
  };
  const auto reopen = [&](const std::string& path) {
    const ArraySource made{.path = path, .layout = given.to, .descr = target.arrays().front().descr};
    const Format& made_as = format_of_target(given.target);
    made_as.check(made);
    return std::vector{made_as.open(made).value().array};
  };
  const ReshardOutcome outcome = run_reshard({{&source, 1}, *source.files, source.checksums}, target, options,
                                             {.manifest = manifest, .reopen = reopen});

  ReshardReport report{.from = source.spec,
                       .to = given.to,
                       .bytes_read = outcome.totals.bytes_from_source,
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

ArrayForecast forecast_reshard(const ReshardOptions& given) {
  stored_order(given.to);
  const ArraySource from = source_of(given);
  const auto [source, unpacked_bytes] = open_source(given, from, format_of(from));
  const NewArrays made = new_array(given.target, given.to, {source.descr, source.is_scalar}).value();
  return {source.spec, given.to,
          forecast_of({&source, 1}, made, path_of_target(given), unpacked_bytes, given.memory_bytes, given.threads)};
}

Result<StoredArray> inspect(const std::string& path) {
  return format_of({.path = path}).inspect(path);
}

}  // namespace tranship
