#include <filesystem>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/forecast.hpp>
#include <tranship/file/npz.hpp>
#include <tranship/file/raw.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/reshard_run.hpp>
#include <tranship/file/target_path.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

Result<NpyHeader> read_npy_header(const std::string& path) {
  const Result<NpyFile> file = open_npy(path);
  if (!file) return file.error();
  return file.value().header;
}

StoredParts open_source(const ReshardOptions& options) {
  if (options.raw) {
    if (!options.from)
      throw_error(ErrorCode::invalid_use, "'{}' is bare elements: a layout must say what they are", options.source);
    check_apart(options.source, file_of(options.target));
    return open_raw(options.source, *options.from, *options.raw).value();
  }
  const std::optional<NpzName> member = npz_name_of(options.source);
  check_apart(file_of(options.source), file_of(options.target));
  if (!member) return open_parts(options.source, options.from).value();
  // Before anything is inflated.
  check_fits(options.from ? *options.from : inspect(options.source).value().spec, options.to);
  return open_npz(*member, options.from, folder_of(resolved_target(file_of(options.target)))).value();
}

/// The source as open_source opens it, but that a member of an archive is not inflated and has no files: so many bytes
/// it has when it is.
StoredParts look_at_source(const ReshardOptions& options, Index& inflated_bytes) {
  const std::optional<NpzName> member = options.raw ? std::nullopt : npz_name_of(options.source);
  if (!member) {
    if (options.target.empty())
      return (options.raw ? open_raw(options.source, options.from.value(), *options.raw)
                          : open_parts(options.source, options.from))
          .value();
    return open_source(options);
  }
  if (!options.target.empty()) {
    check_apart(member->archive, file_of(options.target));
    FileSet archive(FileAccess::read_only);
    archive.add(member->archive).value();
    check_links(archive, file_of(options.target));
  }
  inflated_bytes = npz_inflated_bytes(*member).value();
  return whole_array(options.source, read_npz_header(*member).value(), options.from);
}

void check_source(const ReshardOptions& options, const StoredParts& source) {
  check_checksums(*source.files, source.checksums);
  if (const std::optional<NpzName> member = npz_name_of(options.source); member && !options.raw)
    check_npz_checksum(*member);
}

/// The target where it was made, of which the name there says nothing, nor bare elements how they were spelled.
StoredParts reopened(const ReshardOptions& options, const std::string& path, const std::string& descr) {
  if (npz_name_of(options.target)) {
    check_npz_checksum({path, {}});
    return open_npz({path, {}}, options.to, folder_of(path)).value();
  }
  if (!names_raw_file(options.target)) return open_parts(path, options.to).value();
  StoredParts out = open_raw(path, options.to, {}).value();
  out.descr = descr;
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
  const StoredParts source = open_source(given);
  check_fits(source.spec, given.to);
  check_links(*source.files, file_of(given.target));
  if (given.verify == Verify::yes) check_source(given, source);

  NewParts target =
      NewParts::open(file_of(given.target), new_array(given.target, given.to, {source.descr, source.is_scalar}).value())
          .value();
  const auto manifest = [&](std::span<const std::uint32_t> checksums) {
    Manifest out = make_manifest(given.to, source.descr);
    out.checksums.assign(checksums.begin(), checksums.end());
    out.is_scalar = source.is_scalar;
    return std::vector{TextFile{manifest_name, format_manifest(out)}};
  };
  const auto reopen = [&](const std::string& path) {
    return std::vector{reopened(given, path, target.arrays().front().descr)};
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
  Index inflated_bytes = 0;
  const StoredParts source = look_at_source(given, inflated_bytes);
  check_fits(source.spec, given.to);
  if (source.files && !given.target.empty()) check_links(*source.files, file_of(given.target));
  const NewArrays made = new_array(given.target, given.to, {source.descr, source.is_scalar}).value();
  return {source.spec, given.to,
          forecast_of({&source, 1}, made, file_of(given.target), inflated_bytes, given.memory_bytes, given.threads)};
}

Result<StoredArray> inspect(const std::string& path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    if (!fs::exists(path + "/" + manifest_name, failure) && !failure) return lacks_manifest(path);
    Result<Manifest> manifest = read_manifest(path);
    if (!manifest) return manifest.error();
    return StoredArray{std::move(manifest.value().spec), std::move(manifest.value().descr)};
  }
  const std::optional<NpzName> member = npz_name_of(path);
  const Result<NpyHeader> read = member ? read_npz_header(*member) : read_npy_header(path);
  if (!read) return read.error();
  const NpyHeader& header = read.value();
  const Result<ArraySpec> spec = attempt([&] { return whole_layout(header); });
  if (!spec) return make_error(spec.error().code(), "'{}': {}", path, spec.error().message());
  return StoredArray{spec.value(), header.descr};
}

}  // namespace tranship
