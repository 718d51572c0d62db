#include "tranship/file/reshard_tensors.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/engine/forecast.hpp>
#include <tranship/file/engine/reshard_run.hpp>
#include <tranship/file/format/safetensors_index.hpp>
#include <tranship/file/store/tensor_store.hpp>

namespace tranship {
namespace {

/// Returns the layout that the rules give a tensor that cannot be cut.
ArraySpec opaque_layout(const TensorShape& shape, const LayoutRules& rules) {
  Result<ArraySpec> out = rules.layout_of(shape.name, ElementType::u8, shape.extents);
  const std::optional<std::size_t> rule = rules.rule_of(shape.name);
  if (!rule || (out && keeps_whole(out.value()))) return std::move(out).value();
  throw_error(
      ErrorCode::unsupported,
      "tensor '{}' is {}[{}]: elements of less than a byte and more than {} dimensions move only as a whole, and "
      "rule {}, '{}', cuts it; make it 'replicated'",
      printable(shape.name, name_chars_max), shape.dtype, shape_text(shape), dims_max, *rule + 1,
      printable(rules.pattern_text(*rule), name_chars_max));
}

Index bytes_of(const ArraySpec& spec) {
  return checked_multiply(checked_product(spec.distribution.extents()), size_bytes(spec.type));
}

/// Assigns each tensor to a shard, which is a rank in the manifest: to the next shard when it does not fit.
void put_in_shards(TensorManifest& manifest, Index shard_bytes_max) {
  if (shard_bytes_max < 1)
    throw_error(ErrorCode::invalid_use, "a limit of {} per shard is too small: at least 1 is needed",
                amount(shard_bytes_max, "byte"));
  Rank shard = 0;
  Index filled = 0, tensors = 0;
  for (auto& [shape, spec] : manifest.tensors) {
    if (const Index parts = spec.distribution.grid().size(); parts != 1 || !keeps_whole(spec))
      throw_error(ErrorCode::invalid_use, "the rules cut tensor '{}' into {} of [{}], but shards hold whole tensors",
                  printable(shape.name, name_chars_max), amount(parts, "part"),
                  to_string(spec.distribution.local_extents(spec.distribution.grid().rank_at(0))));
    const Index bytes = bytes_of(spec);
    if (tensors > 0 && bytes > shard_bytes_max - filled) {
      ++shard;
      filled = tensors = 0;
    }
    ++tensors;
    filled = checked_add(filled, bytes);
    const Indices& extents = spec.distribution.extents();
    spec.distribution = Distribution(extents, Grid(Indices::filled(extents.size(), 1), {.first = shard}),
                                     std::vector<Partition>(static_cast<std::size_t>(extents.size()), whole()));
  }
  manifest.files.clear();
  for (Rank i = 0; i <= shard; ++i) manifest.files.push_back({safetensors_shard_name(i, shard + 1)});
}

SafetensorsIndex index_of_shards(const TensorManifest& manifest) {
  SafetensorsIndex out{.total_size_bytes = 0, .metadata = {}, .tensors = {}};
  for (const auto& [shape, spec] : manifest.tensors) {
    out.total_size_bytes = checked_add(*out.total_size_bytes, bytes_of(spec));
    out.tensors.push_back({shape.name, manifest.files[spec.distribution.grid().first()].name});
  }
  return out;
}

TensorManifest manifest_of(const StoredTensors& source, const TensorReshardOptions& given) {
  const LayoutRules& rules = given.to;
  TensorManifest out{.metadata = source.metadata, .files = {}, .tensors = {}};
  std::vector<bool> used(rules.size());
  for (std::size_t i = 0; i < source.shapes.size(); ++i) {
    const TensorShape& shape = source.shapes[i];
    out.tensors.push_back({shape, shape.opaque_shape.empty()
                                      ? rules.layout_of(shape.name, source.arrays[i].spec.type, shape.extents).value()
                                      : opaque_layout(shape, rules)});
    used[*rules.rule_of(shape.name)] = true;
  }
  // A rule that matches only names which earlier rules take is allowed: it may be the default.
  for (std::size_t rule = 0; rule < rules.size(); ++rule) {
    for (std::size_t i = 0; i < source.shapes.size() && !used[rule]; ++i)
      used[rule] = rules.matches(rule, source.shapes[i].name);
    if (!used[rule])
      throw_error(ErrorCode::mismatch, "rule {}, '{}', matches none of {}", rule + 1,
                  printable(rules.pattern_text(rule), name_chars_max), amount(source.shapes.size(), "tensor"));
  }
  for (Rank rank = 0; rank < rules.rank_count(); ++rank)
    out.files.push_back({rank_file_name(rank, rules.rank_count())});
  if (given.shard_bytes_max) {
    if (given.target.ends_with(".safetensors"))
      throw_error(ErrorCode::invalid_use, "'{}' names a file, but the output has several shards: give a directory",
                  given.target);
    put_in_shards(out, *given.shard_bytes_max);
  }
  return out;
}

/// Returns the text files beside those of the ranks in a directory. Copies the checksums into the manifest.
std::vector<TextFile> text_files(TensorManifest& manifest, const TensorReshardOptions& given,
                                 std::span<const std::uint32_t> checksums) {
  for (std::size_t rank = 0; rank < checksums.size(); ++rank) manifest.files[rank].checksum = checksums[rank];
  std::vector<TextFile> out{{manifest_name, format_tensor_manifest(manifest)}};
  if (given.shard_bytes_max)
    out.push_back({safetensors_index_name, format_safetensors_index(index_of_shards(manifest))});
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
  TensorManifest manifest = manifest_of(source, given);
  check_links(*source.files, given.target);
  if (given.verify == Verify::yes) check_checksums(*source.files, source.checksums);

  NewParts target = NewParts::open(given.target, new_tensors(given.target, manifest).value()).value();
  const auto text_of = [&](std::span<const std::uint32_t> checksums) { return text_files(manifest, given, checksums); };
  const auto reopen = [&](const std::string& path) {
    if (target.staging().kind() == StagedKind::directory) return open_tensors(path).value().arrays;
    // A file alone does not say which of its cells are overlap.
    std::vector<StoredParts> arrays = open_tensors_file(path).value().arrays;
    for (std::size_t i = 0; i < arrays.size(); ++i) arrays[i].spec = manifest.tensors[i].spec;
    return arrays;
  };
  const ReshardOutcome outcome = run_reshard({source.arrays, *source.files, source.checksums}, target, options,
                                             {.manifest = text_of, .reopen = reopen});

  TensorReshardReport report{.tensors = static_cast<Index>(source.shapes.size()),
                             .bytes_read = outcome.bytes_read,
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

TensorForecast forecast_tensors(const TensorReshardOptions& given) {
  if (!given.target.empty()) check_apart(given.source, given.target);
  const StoredTensors source = open_tensors(given.source).value();
  check_not_empty(source, given.source);
  TensorManifest manifest = manifest_of(source, given);
  if (!given.target.empty()) check_links(*source.files, given.target);
  const NewArrays made = new_tensors(given.target, manifest).value();
  TensorForecast out{static_cast<Index>(source.shapes.size()), static_cast<Rank>(manifest.files.size()),
                     forecast_of(source.arrays, made, given.target, 0, given.memory_bytes, given.threads)};
  if (made.kind == StagedKind::directory) {
    const std::vector<std::uint32_t> any(manifest.files.size());
    for (const TextFile& file : text_files(manifest, given, any))
      out.work.disk_bytes = checked_add(out.work.disk_bytes, static_cast<Index>(file.text.size()));
  }
  return out;
}

Result<std::vector<TensorDescription>> inspect_tensors(const std::string& path) {
  return attempt([&] {
    const StoredTensors source = open_tensors(path).value();
    std::vector<TensorDescription> out;
    for (std::size_t i = 0; i < source.shapes.size(); ++i) {
      const TensorShape& shape = source.shapes[i];
      std::vector<Index> spelled = shape.opaque_shape;
      if (spelled.empty()) spelled.assign(shape.extents.begin(), shape.extents.end());
      out.push_back({shape.name, shape.dtype, std::move(spelled), source.arrays[i].spec});
    }
    return out;
  });
}

}  // namespace tranship
