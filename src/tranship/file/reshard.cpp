#include <algorithm>
#include <filesystem>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/part_reader.hpp>
#include <tranship/file/part_store.hpp>
#include <tranship/file/posix.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/verify.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const std::string& path) {
  std::error_code failure;
  fs::path absolute = fs::absolute(path, failure);
  if (!failure) absolute = fs::weakly_canonical(absolute, failure);
  if (failure) throw posix::io_error("find", path, failure.value());
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

bool lies_in(const fs::path& inner, const fs::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

/// Replacing a directory removes all that is in it, so neither side may lie in the other.
void check_apart(const std::string& source, const std::string& target) {
  const fs::path from = resolved(source), to = resolved(target);
  if (from == to) throw_error(ErrorCode::invalid_use, "the target '{}' is the source '{}'", target, source);
  if (lies_in(to, from)) throw_error(ErrorCode::invalid_use, "the target '{}' lies in the source '{}'", target, source);
  if (lies_in(from, to))
    throw_error(ErrorCode::invalid_use, "the source '{}' lies in the target '{}', which would be replaced", source,
                target);
}

Index part_bytes(const ArraySpec& spec, Index ordinal) {
  const Rank rank = spec.distribution.grid().rank_at(ordinal);
  return checked_multiply(checked_product(spec.distribution.local_extents(rank)), size_bytes(spec.type));
}

}  // namespace

ReshardReport reshard(const ReshardOptions& options) {
  const std::int64_t start_ns = now_ns();
  const ArraySpec& to = options.to;
  stored_order(to);
  check_apart(options.source, options.target);
  const StoredParts source = open_parts(options.source, options.from).value();
  check_fits(source.spec, to);

  ReshardProgress progress{.parts_total = to.distribution.grid().size()};
  for (Index i = 0; i < progress.parts_total; ++i)
    progress.bytes_total = checked_add(progress.bytes_total, part_bytes(to, i));
  const auto report_progress = [&] {
    if (options.progress) (*options.progress)(progress);
  };
  NewParts target = NewParts::create(options.target, to, source.descr).value();
  ReshardReport report{.from = source.spec, .to = to};
  const PartReader reader(source, to);
  report_progress();
  for (Index i = 0; i < progress.parts_total; ++i) {
    const Index bytes_before = progress.bytes_done;
    reader.read(i, target.add_part(i).value(), [&](Index bytes) {
      report.bytes_read += bytes;
      progress.bytes_done += bytes;
      report_progress();
    });
    progress.bytes_done = bytes_before + part_bytes(to, i);
    ++progress.parts_done;
    report_progress();
  }
  if (options.verify == Verify::yes) verify_parts(source, open_parts(target.partial(), to).value());
  target.commit().value();

  report.bytes_written = progress.bytes_done;
  report.parts_written = progress.parts_done;
  report.verified = options.verify;
  report.duration_ns = now_ns() - start_ns;
  return report;
}

Result<StoredArray> inspect(const std::string& path) {
  std::error_code failure;
  if (fs::is_directory(path, failure)) {
    Result<Manifest> manifest = read_manifest(path);
    if (!manifest) return manifest.error();
    return StoredArray{std::move(manifest.value().spec), std::move(manifest.value().descr)};
  }
  const Result<NpyFile> file = open_npy(path);
  if (!file) return file.error();
  const NpyHeader& header = file.value().header;
  const Result<ArraySpec> spec = attempt([&] { return whole_layout(header); });
  if (!spec) return make_error(spec.error().code(), "'{}': {}", path, spec.error().message());
  return StoredArray{spec.value(), header.descr};
}

}  // namespace tranship
