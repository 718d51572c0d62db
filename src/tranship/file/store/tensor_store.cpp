#include "tranship/file/store/tensor_store.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>
#include <tranship/file/reshard_tensors.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view file_ending = ".safetensors", index_ending = ".safetensors.index.json";

std::string shown(const std::string& name) {
  return printable(name, name_chars_max);
}

/// Returns the text of a file that is read at once.
std::string text_of(const std::string& path) {
  return posix::read_text(path, manifest_bytes_max);
}

std::string manifest_path(const std::string& directory) {
  return directory + "/" + manifest_name;
}

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Accepts the name of an index, or of one of several of one model: "model.safetensors.index.fp16.json".
bool is_index(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t at = name.find(".safetensors.index.");
  if (at == std::string_view::npos || !name.ends_with(".json")) return false;
  const std::string_view variant = name.substr(at + std::string_view(".safetensors.index").size());
  return std::count(variant.begin(), variant.end(), '.') <= 2;
}

/// Returns the sorted names of files in a directory for which `is_wanted` is true.
template <class F>
std::vector<std::string> files_in(const std::string& directory, F&& is_wanted) {
  std::vector<std::string> out;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure))
    if (const std::string name = entry->path().filename().string(); is_wanted(name)) out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}
std::vector<std::string> tensor_files_in(const std::string& directory) {
  return files_in(directory, [](const std::string& name) { return name.ends_with(file_ending); });
}
/// Returns the indices with the usual name, or if there are none the variants.
std::vector<std::string> indices_in(const std::string& directory) {
  const auto usual = files_in(directory, [](const std::string& name) { return name.ends_with(index_ending); });
  return usual.empty() ? files_in(directory, is_index) : usual;
}

ArraySpec whole_spec(const SafetensorsEntry& tensor) {
  const Indices extents = layout_extents(tensor.extents);
  return {tensor.type, Distribution(extents, Grid(Indices::filled(extents.size(), 1)),
                                    std::vector<Partition>(static_cast<std::size_t>(extents.size()), whole()))};
}

/// Adds a file and the data of its header. Returns the header.
SafetensorsHeader add_file(StoredTensors& out, const std::string& path) {
  out.files->add(path).value();
  out.checksums.emplace_back();
  SafetensorsHeader header = std::move(open_safetensors(path).value().header);
  for (const auto& entry : header.metadata)
    if (std::none_of(out.metadata.begin(), out.metadata.end(),
                     [&](const auto& known) { return known.first == entry.first; }))
      out.metadata.push_back(entry);
  return header;
}

StoredPart part_of(const StoredTensors& out, const SafetensorsHeader& header, const SafetensorsEntry& tensor) {
  return {out.files->count() - 1, checked_add(header.header_bytes, tensor.offset_bytes), NpyOrder::c,
          layout_extents(tensor.extents)};
}

/// Adds all tensors of a file, whole.
void add_whole_tensors(StoredTensors& out, const std::string& path) {
  const SafetensorsHeader header = add_file(out, path);
  for (const SafetensorsEntry& tensor : header.tensors) {
    out.shapes.push_back({tensor.name, tensor.dtype, tensor.extents, tensor.opaque_shape});
    out.arrays.push_back({.spec = whole_spec(tensor),
                          .descr = tensor.dtype,
                          .files = out.files,
                          .parts = {part_of(out, header, tensor)}});
  }
}

StoredTensors empty_store() {
  StoredTensors out;
  out.files = std::make_shared<FileSet>(FileAccess::read_only);
  return out;
}

StoredTensors open_index(const std::string& path) {
  Result<SafetensorsIndex> parsed = parse_safetensors_index(text_of(path));
  if (!parsed) throw make_error(parsed.error().code(), "'{}': {}", path, parsed.error().message());
  const SafetensorsIndex& index = parsed.value();
  const fs::path folder = fs::path(path).parent_path();
  StoredTensors out = empty_store();
  std::unordered_map<std::string_view, std::string_view> file_of;
  for (const auto& [tensor, file] : index.tensors) file_of.emplace(tensor, file);
  for (const std::string& file : index.files()) {
    const std::size_t first = out.shapes.size();
    add_whole_tensors(out, (folder / file).string());
    for (std::size_t i = first; i < out.shapes.size(); ++i) {
      const auto place = file_of.find(out.shapes[i].name);
      if (place == file_of.end() || place->second != file)
        throw_error(ErrorCode::mismatch, "'{}' holds tensor '{}', which '{}' {}", (folder / file).string(),
                    shown(out.shapes[i].name), path,
                    place == file_of.end() ? "does not name" : fmt::format("says is in '{}'", place->second));
    }
  }
  // Names differ within a file, and each tensor was where the index says, so none is missing if the numbers agree.
  if (out.shapes.size() == index.tensors.size()) return out;
  for (const TensorShape& shape : out.shapes) file_of.erase(shape.name);
  throw_error(ErrorCode::mismatch, "'{}' names tensor '{}', which '{}' does not hold", path,
              shown(std::string(file_of.begin()->first)), (folder / file_of.begin()->second).string());
}

StoredTensors open_manifest(const std::string& directory) {
  const std::string path = manifest_path(directory);
  Result<TensorManifest> parsed = parse_tensor_manifest(text_of(path));
  if (!parsed) throw make_error(parsed.error().code(), "'{}': {}", path, parsed.error().message());
  TensorManifest& manifest = parsed.value();
  StoredTensors out = empty_store();
  out.metadata = manifest.metadata;
  std::unordered_map<std::string_view, std::size_t> number_of;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) {
    const auto& [shape, spec] = manifest.tensors[i];
    number_of.emplace(shape.name, i);
    out.shapes.push_back(shape);
    out.arrays.push_back({.spec = spec, .descr = shape.dtype, .files = out.files});
    out.arrays.back().parts.resize(static_cast<std::size_t>(spec.distribution.grid().size()), {.file = -1});
  }
  for (Rank rank = 0; rank < static_cast<Rank>(manifest.files.size()); ++rank) {
    const std::string file = directory + "/" + manifest.files[rank].name;
    const SafetensorsHeader header = add_file(out, file);
    if (manifest.files[rank].checksum) out.checksums.back() = RecordedChecksum{*manifest.files[rank].checksum};
    for (const SafetensorsEntry& tensor : header.tensors) {
      const auto number = number_of.find(tensor.name);
      const std::optional<Index> ordinal = number == number_of.end()
                                               ? std::nullopt
                                               : out.arrays[number->second].spec.distribution.grid().ordinal_of(rank);
      if (!ordinal)
        throw_error(ErrorCode::mismatch, "'{}' holds tensor '{}', which '{}' does not give rank {}", file,
                    shown(tensor.name), path, rank);
      const TensorShape& shape = out.shapes[number->second];
      StoredParts& array = out.arrays[number->second];
      const Indices needed = stored_extents(shape.extents, array.spec.distribution.local_extents(rank));
      if (tensor.dtype != shape.dtype || !(tensor.extents == needed) || tensor.opaque_shape != shape.opaque_shape)
        throw_error(ErrorCode::mismatch, "'{}': tensor '{}' is {}[{}], '{}' gives rank {} {}[{}]", file,
                    shown(tensor.name), tensor.dtype, to_string(tensor.extents), path, rank, shape.dtype,
                    to_string(needed));
      array.parts[*ordinal] = part_of(out, header, tensor);
    }
  }
  for (std::size_t i = 0; i < out.arrays.size(); ++i)
    for (std::size_t part = 0; part < out.arrays[i].parts.size(); ++part)
      if (out.arrays[i].parts[part].file < 0) {
        const Rank rank = out.arrays[i].spec.distribution.grid().rank_at(static_cast<Index>(part));
        throw_error(ErrorCode::mismatch, "'{}/{}' does not hold tensor '{}', which '{}' gives rank {}", directory,
                    manifest.files[rank].name, shown(out.shapes[i].name), path, rank);
      }
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t listed_max = 10;
  std::string out;
  for (std::size_t i = 0; i < std::min(names.size(), listed_max); ++i)
    out += fmt::format("{}{}", i > 0 ? ", " : "", shown(names[i]));
  return names.size() > listed_max ? fmt::format("{} and {} more", out, names.size() - listed_max) : out;
}

/// The parts of a shard's name: "model-00002-of-00004.safetensors".
struct ShardName {
  std::string_view checkpoint;
  Index count = 1;
  friend bool operator==(const ShardName&, const ShardName&) = default;
};

std::optional<ShardName> shard_name_of(std::string_view name) {
  static constexpr std::string_view digits = "0123456789", between = "-of-";
  name.remove_suffix(file_ending.size());
  const std::size_t count = name.find_last_not_of(digits) + 1;
  if (count == name.size() || !name.substr(0, count).ends_with(between)) return std::nullopt;
  const std::string_view front = name.substr(0, count - between.size());
  const std::size_t number = front.find_last_not_of(digits) + 1;
  ShardName out{front.substr(0, number)};
  const bool fits = std::from_chars(name.data() + count, name.data() + name.size(), out.count).ec == std::errc();
  return fits && number < front.size() ? std::optional(out) : std::nullopt;
}

/// Opens safetensors files without an index: one file, or all shards of one checkpoint.
StoredTensors open_files(const std::string& directory, const std::vector<std::string>& names) {
  const std::optional<ShardName> first = shard_name_of(names.front());
  const bool of_one_checkpoint = first && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
                                   return shard_name_of(name) == first;
                                 });
  if (names.size() > 1 && !of_one_checkpoint)
    throw_error(ErrorCode::bad_file, "directory '{}' holds {} *{} and no *{}: name one of {}", directory,
                amount(names.size(), "file"), file_ending, index_ending, listed(names));
  if (first && first->count != static_cast<Index>(names.size()))
    throw_error(ErrorCode::bad_file, "directory '{}' holds {} of {}, and no *{}: {}", directory, names.size(),
                amount(first->count, "shard"), index_ending, listed(names));
  StoredTensors out = empty_store();
  for (const std::string& name : names) add_whole_tensors(out, fmt::format("{}/{}", directory, name));
  std::unordered_map<std::string_view, Index> file_of;
  for (std::size_t i = 0; i < out.shapes.size(); ++i) {
    const Index file = out.arrays[i].parts.front().file;
    if (const auto [first, is_new] = file_of.emplace(out.shapes[i].name, file); !is_new)
      throw_error(ErrorCode::mismatch, "tensor '{}' is in '{}' and in '{}'", shown(out.shapes[i].name),
                  out.files->path(first->second), out.files->path(file));
  }
  return out;
}

StoredTensors open_any(const std::string& path) {
  if (!posix::is_directory(path)) {
    if (is_index(path)) return open_index(path);
    StoredTensors out = empty_store();
    add_whole_tensors(out, path);
    return out;
  }
  if (is_file(manifest_path(path))) return open_manifest(path);
  const std::vector<std::string> indices = indices_in(path);
  if (indices.size() == 1) return open_index(path + "/" + indices.front());
  if (indices.size() > 1)
    throw_error(ErrorCode::bad_file, "directory '{}' holds {} *{}: name one of {}", path,
                amount(indices.size(), "file"), index_ending, listed(indices));
  const std::vector<std::string> files = tensor_files_in(path);
  if (files.empty())
    throw_error(ErrorCode::bad_file, "directory '{}' holds no '{}', no file *{} and no file *{}", path, manifest_name,
                index_ending, file_ending);
  return open_files(path, files);
}

}  // namespace

bool names_tensors(const std::string& path) {
  if (!posix::is_directory(path)) return path.ends_with(file_ending) || is_index(path);
  if (!is_file(manifest_path(path))) return !indices_in(path).empty() || !tensor_files_in(path).empty();
  const Result<bool> ours = attempt([&] { return is_tensor_manifest(text_of(manifest_path(path))); });
  return ours && ours.value();
}

Result<StoredTensors> open_tensors(const std::string& path) {
  return attempt([&] { return open_any(path); });
}

Result<StoredTensors> open_tensors_file(const std::string& path) {
  return attempt([&] {
    StoredTensors out = empty_store();
    add_whole_tensors(out, path);
    return out;
  });
}

}  // namespace tranship
