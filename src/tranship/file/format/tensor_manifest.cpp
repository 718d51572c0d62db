#include "tranship/file/format/tensor_manifest.hpp"

#include <algorithm>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/format/json_events.hpp>
#include <tranship/file/format/manifest_text.hpp>
#include <tranship/file/format/safetensors.hpp>
#include <tranship/layout/json.hpp>
#include <tranship/layout/json_value.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

constexpr Index tensors_version = 1;

void read_files(const Json& files, TensorManifest& out) {
  if (!files.is_array()) throw_error(ErrorCode::bad_file, "files: expected an array");
  out.files.resize(files.size());
  std::set<std::string> seen;
  for (std::size_t i = 0; i < files.size(); ++i) {
    JsonObject file(files[i], fmt::format("files[{}]", i));
    const Index rank = index_of(file.at("rank"), file.path("rank"));
    const std::string& name = word_of(file.at("file"), file.path("file"));
    std::optional<std::uint32_t> checksum;
    if (const Json* value = file.find("crc32"))
      checksum = checksum_of_digits(word_of(*value, file.path("crc32")), file.path("crc32"));
    file.finish();
    if (rank < 0 || rank >= static_cast<Index>(files.size()))
      throw_error(ErrorCode::bad_file, "{}: rank {} is outside the list of {}", file.path("rank"), rank,
                  amount(files.size(), "file"));
    if (!out.files[rank].name.empty())
      throw_error(ErrorCode::bad_file, "{}: rank {} is listed twice", file.path("rank"), rank);
    check_stored_name(name, file.path("file"));
    if (!seen.insert(name).second)
      throw_error(ErrorCode::bad_file, "{}: '{}' is listed twice", file.path("file"), name);
    out.files[rank] = {name, checksum};
  }
}

std::vector<Index> shape_of(const Json& values, const std::string& where) {
  if (!values.is_array()) throw_error(ErrorCode::bad_file, "{}: expected an array", where);
  std::vector<Index> out;
  for (const Json& value : values.items()) {
    out.push_back(index_of(value, where));
    if (out.back() < 0) throw_error(ErrorCode::bad_file, "{}: extent {} is negative", where, out.back());
  }
  return out;
}

void read_tensors(const Json& tensors, TensorManifest& out) {
  if (!tensors.is_array()) throw_error(ErrorCode::bad_file, "tensors: expected an array");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    JsonObject tensor(tensors[i], fmt::format("tensors[{}]", i));
    TensorShape shape{
        word_of(tensor.at("name"), tensor.path("name")), word_of(tensor.at("dtype"), tensor.path("dtype")), {}};
    std::vector<Index> spelled = shape_of(tensor.at("shape"), tensor.path("shape"));
    const Result<ArraySpec> layout = try_parse_layout(word_of(tensor.at("layout"), tensor.path("layout")));
    if (!layout) throw_error(ErrorCode::bad_file, "{}: {}", tensor.path("layout"), layout.error().message());
    tensor.finish();
    const ArraySpec& spec = layout.value();
    const Result<TensorForm> form = tensor_form(shape.dtype, spelled);
    if (!form) throw_error(ErrorCode::bad_file, "{}: {}", tensor.path("dtype"), form.error().message());
    shape.extents = form.value().extents;
    if (form.value().opaque) shape.opaque_shape = std::move(spelled);
    if (spec.type != form.value().type || !(spec.distribution.extents() == layout_extents(shape.extents)))
      throw_error(ErrorCode::bad_file, "{}: the layout says {}[{}], but the tensor is {}[{}]", tensor.path("layout"),
                  name_of(spec.type), to_string(spec.distribution.extents()), name_of(form.value().type),
                  to_string(shape.extents));
    if (form.value().opaque && !keeps_whole(spec))
      throw_error(ErrorCode::bad_file, "{}: {}[{}] moves only as a whole", tensor.path("layout"), shape.dtype,
                  shape_text(shape));
    if (stored_order(spec) != NpyOrder::c)
      throw_error(ErrorCode::bad_file, "{}: safetensors files are row-major", tensor.path("layout"));
    if (const Index ranks = spec.distribution.grid().world_size_min(); ranks > static_cast<Index>(out.files.size()))
      throw_error(ErrorCode::bad_file, "{}: the layout has {}, the manifest {}", tensor.path("layout"),
                  amount(ranks, "rank"), amount(out.files.size(), "file"));
    out.tensors.push_back({std::move(shape), spec});
  }
  std::vector<std::string_view> names;
  for (const auto& tensor : out.tensors) names.push_back(tensor.shape.name);
  refuse_equal(std::move(names), "tensor");
}

TensorManifest read_tensors(JsonObject& object) {
  TensorManifest out;
  const Json& metadata = object.at("metadata");
  if (!metadata.is_object()) throw_error(ErrorCode::bad_file, "metadata: expected an object");
  for (const auto& [key, value] : metadata.members())
    out.metadata.emplace_back(key, word_of(value, fmt::format("metadata.{}", printable(key))));
  read_files(object.at("files"), out);
  read_tensors(object.at("tensors"), out);
  return out;
}

}  // namespace

std::string rank_file_name(Rank rank, Rank ranks) {
  return fmt::format("rank-{:05}-of-{:05}.safetensors", rank, ranks);
}

Indices layout_extents(const Indices& extents) {
  return extents.empty() ? Indices{1} : extents;
}

Indices stored_extents(const Indices& tensor, const Indices& local) {
  return tensor.empty() && local == Indices{1} ? Indices{} : local;
}

std::string shape_text(const TensorShape& tensor) {
  return tensor.opaque_shape.empty() ? to_string(tensor.extents) : join_text(tensor.opaque_shape, ", ");
}

bool keeps_whole(const ArraySpec& spec) {
  const Grid& grid = spec.distribution.grid();
  for (Index i = 0; i < grid.size(); ++i)
    if (!(spec.distribution.local_extents(grid.rank_at(i)) == spec.distribution.extents())) return false;
  return true;
}

bool is_tensor_manifest(std::string_view text) {
  // No file name in the other kind of manifest can contain these bytes, because its quotes would have backslashes.
  return text.find("\"tranship_tensors\"") != std::string_view::npos;
}

std::string format_tensor_manifest(const TensorManifest& manifest) {
  std::string metadata, files, tensors;
  for (const auto& [key, value] : manifest.metadata)
    metadata += fmt::format("{}{}: {}", metadata.empty() ? "" : ", ", json_string(key), json_string(value));
  for (std::size_t rank = 0; rank < manifest.files.size(); ++rank) {
    const TensorManifest::File& file = manifest.files[rank];
    files += fmt::format("{}\n    {{\"rank\": {}, \"file\": {}", rank > 0 ? "," : "", rank, json_string(file.name));
    if (file.checksum) files += fmt::format(", \"crc32\": \"{:08x}\"", *file.checksum);
    files += '}';
  }
  for (const auto& [shape, spec] : manifest.tensors)
    tensors += fmt::format("{}\n    {{\"name\": {}, \"dtype\": {}, \"shape\": [{}], \"layout\": {}}}",
                           tensors.empty() ? "" : ",", json_string(shape.name), json_string(shape.dtype),
                           shape_text(shape), json_string(to_text(spec)));
  return fmt::format(
      "{{\n  \"tranship_tensors\": {},\n  \"metadata\": {{{}}},\n  \"files\": [{}\n  ],\n  \"tensors\": [{}\n  ]\n}}\n",
      tensors_version, metadata, files, tensors);
}

Result<TensorManifest> parse_tensor_manifest(std::string_view text) {
  TensorManifest out;
  const Result<void> done = parse_manifest_text(text, "tranship_tensors", tensors_version,
                                                [&](JsonObject& object) { out = read_tensors(object); });
  if (!done) return done.error();
  return out;
}

}  // namespace tranship
