#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/printable.hpp>
#include <tranship/file/reshard_run.hpp>
#include <tranship/file/reshard_tensors.hpp>
#include <tranship/file/tensor_store.hpp>

namespace tranship {
namespace {

TensorManifest manifest_of(const StoredTensors& source, const LayoutRules& rules) {
  TensorManifest out{.metadata = source.metadata, .files = {}, .tensors = {}};
  std::vector<bool> used(rules.size());
  for (std::size_t i = 0; i < source.shapes.size(); ++i) {
    const TensorShape& shape = source.shapes[i];
    out.tensors.push_back({shape, rules.layout_of(shape.name, source.arrays[i].spec.type, shape.extents).value()});
    used[*rules.rule_of(shape.name)] = true;
  }
  // A rule that others have left nothing for is good: it may be the default.
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    for (std::size_t i = 0; i < source.shapes.size() && !used[rule]; ++i)
      used[rule] = rules.matches(rule, source.shapes[i].name);
    if (!used[rule])
      throw_error(ErrorCode::mismatch, "rule {}, '{}', matches none of {} tensors", rule + 1,
                  printable(rules.pattern_text(rule), name_chars_max), source.shapes.size());
  }
  for (Rank rank = 0; rank < rules.rank_count(); ++rank)
    out.files.push_back({rank_file_name(rank, rules.rank_count())});
  return out;
}

void check_not_empty(const StoredTensors& source, const std::string& path) {
  if (source.shapes.empty()) throw_error(ErrorCode::unsupported, "'{}' holds no tensors", path);
}

}  // namespace

TensorReshardReport reshard_tensors(const TensorReshardOptions& given) {
  const std::int64_t start_ns = now_ns();
  const ReshardRunOptions options = settled({.verify = given.verify,
                                             .progress = given.progress,
                                             .memory_bytes = given.memory_bytes,
                                             .threads = given.threads,
                                             .sync_interval_bytes = given.sync_interval_bytes});
  check_apart(given.source, given.target);
  const StoredTensors source = open_tensors(given.source).value();
  check_not_empty(source, given.source);
  TensorManifest manifest = manifest_of(source, given.to);
  check_links(*source.files, given.target);
  if (given.verify == Verify::yes) check_checksums(*source.files, source.checksums);

  NewParts target = NewParts::open(given.target, new_tensors(given.target, manifest).value()).value();
  const auto text_of = [&](std::span<const std::uint32_t> checksums) {
    for (std::size_t rank = 0; rank < checksums.size(); ++rank) manifest.files[rank].checksum = checksums[rank];
    return format_tensor_manifest(manifest);
  };
  const auto reopen = [&](const std::string& path) {
    if (target.staging().kind() == StagedKind::directory) return open_tensors(path).value().arrays;
    // A file alone does not say that a part of it is overlap.
    std::vector<StoredParts> arrays = open_tensors_file(path).value().arrays;
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].spec = manifest.tensors[i].spec;
    return arrays;
  };
  const ReshardOutcome outcome = run_reshard({source.arrays, *source.files, source.checksums}, target, options,
                                             {.manifest = text_of, .reopen = reopen});

  TensorReshardReport report{.tensors = static_cast<Index>(source.shapes.size()),
                             .bytes_read = outcome.totals.bytes_from_source,
                             .bytes_written = outcome.totals.bytes,
                             .bytes_resumed = outcome.totals.bytes_resumed,
                             .checksums = {},
                             .memory_bytes = options.memory_bytes,
                             .threads = options.threads,
                             .verified = given.verify};
  for (std::size_t i = 0; i < outcome.checksums.size(); ++i)
    report.checksums.push_back({target.files()[i].name, outcome.checksums[i]});
  report.duration_ns = now_ns() - start_ns;
  return report;
}

Result<std::vector<TensorDescription>> inspect_tensors(const std::string& path) {
  return attempt([&] {
    const StoredTensors source = open_tensors(path).value();
    std::vector<TensorDescription> out;
    for (std::size_t i = 0; i < source.shapes.size(); ++i)
      out.push_back({source.shapes[i].name, source.shapes[i].dtype, source.shapes[i].extents, source.arrays[i].spec});
    return out;
  });
}

}  // namespace tranship
