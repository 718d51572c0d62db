#include "tranship/file/store/new_arrays.hpp"

#include <algorithm>
#include <filesystem>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/format/formats.hpp>
#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/file/io/target_path.hpp>
#include <tranship/file/store/replaceable.hpp>

namespace tranship {
namespace {

/// Returns the final name of a file, with links resolved.
std::string last_name(const std::string& target) {
  return std::filesystem::path(resolved_target(target)).filename().string();
}

/// Refuses a new directory whose name looks like that of a file, because it is probably mistyped. `written` lists the
/// endings that a target of this kind may have.
void check_directory_name(const std::string& target, std::string_view written) {
  const std::filesystem::path path(target);
  std::error_code ignored;  // a path that cannot be inspected fails when it is made
  if (std::filesystem::is_directory(path, ignored)) return;
  const std::string ending = path.extension().string();
  constexpr std::size_t ending_chars_max = 16;
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (ending.size() > ending_chars_max || std::none_of(ending.begin(), ending.end(), is_letter)) return;
  throw_error(ErrorCode::invalid_use,
              "'{}' is not a target: '{}' files cannot be written; files must end in {}; for a directory, write '{}/'",
              target, printable(ending), written, target);
}

/// Throws if a layout cuts elements that are several numbers of their type: these are the last dimension.
void check_elements_whole(const ArraySpec& spec, const NpyForm& form, Index count) {
  if (count == 1) return;
  const Distribution& d = spec.distribution;
  const int last = d.dims() - 1;
  const auto refuse = [&](const std::string& what) {
    throw_error(ErrorCode::unsupported, "an element '{}' is {} {} in the last dimension, which must be whole: {}",
                printable(form.descr), count, name_of(spec.type), what);
  };
  if (last < 1 || d.extents()[last] != count)
    refuse(fmt::format("the layout has extents [{}]", to_string(d.extents())));
  const bool whole = d.is_indexed() ? d.indexed_dims() <= last : d.grid().extents()[last] == 1;
  for (Index i = 0; i < d.grid().size(); ++i)
    if (!whole || d.local_extents(d.grid().rank_at(i))[last] != count) refuse("the layout cuts it");
}

NpyHeader npy_header(const ArraySpec& spec, const NpyForm& form, Rank rank) {
  const NpyElement element = parse_npy_descr(form.descr).value();
  NpyHeader out{.type = element.type,
                .count = element.count,
                .byte_order = element.byte_order,
                .order = stored_order(spec, element.count).outer,
                .extents = spec.distribution.local_extents(rank),
                .descr = form.descr};
  if (element.count > 1)
    out.extents =
        Indices(std::span<const Index>(out.extents.begin(), static_cast<std::size_t>(out.extents.size() - 1)));
  if (form.is_scalar && out.extents == Indices{1}) out.extents = Indices();
  out.header_bytes = static_cast<Index>(format_npy_header(out).size());
  return out;
}

}  // namespace

void NewFile::fill_in(std::uint32_t elements) {
  if (!inner) return;
  const auto head_bytes = static_cast<Index>(head.size());
  const std::uint32_t front = crc32_of(std::as_bytes(std::span(head).subspan(static_cast<std::size_t>(inner->begin))));
  const std::uint32_t crc = moved_on(front, tail_offset_bytes() - head_bytes) ^ elements;
  for (const Index place : inner->places)
    for (Index i = 0; i < 4; ++i)
      (place < head_bytes ? head[place + i] : tail[place + i - tail_offset_bytes()]) =
          static_cast<char>(crc >> 8 * i & 0xff);
}

std::uint32_t NewFile::checksum(std::uint32_t elements) const {
  return moved_on(crc32_of(std::as_bytes(std::span(head))), size_bytes - static_cast<Index>(head.size())) ^
         moved_on(elements, static_cast<Index>(tail.size())) ^ crc32_of(std::as_bytes(std::span(tail)));
}

Result<NewArrays> new_array(const std::string& target, const ArraySpec& spec, const NpyForm& source) {
  return attempt([&] {
    const Format& format = format_of_target(target);
    const bool single = format.kind == StagedKind::file;
    const NpyForm form{format.descr(source.descr), source.is_scalar};
    check_elements_whole(spec, form, parse_npy_descr(form.descr).value().count);
    const Manifest manifest = make_manifest(spec, form.descr);
    const Grid& grid = spec.distribution.grid();
    if (single && grid.size() != 1)
      throw_error(ErrorCode::invalid_use, "'{}' names one file, but the layout has {}: give a directory", target,
                  amount(grid.size(), "part"));
    const std::string path = format.file_of(target);
    if (!single) check_directory_name(path, written_endings());
    NewArrays out{.kind = format.kind, .files = {}, .arrays = {}, .check_replaceable = format.check_replaceable};
    if (!target.empty()) out.check_replaceable(path);
    StoredParts& array =
        out.arrays.emplace_back(StoredParts{.spec = spec, .descr = form.descr, .is_scalar = form.is_scalar});
    for (Index i = 0; i < grid.size(); ++i) {
      const NpyHeader header = npy_header(spec, form, grid.rank_at(i));
      array.parts.push_back({i, 0, stored_order(header), spec.distribution.local_extents(grid.rank_at(i))});
      NewFile& file = out.files.emplace_back(format.file(target, header, array.part_bytes(i)));
      file.name = single ? last_name(path) : manifest.files[i];
      array.parts.back().offset_bytes = static_cast<Index>(file.head.size());
    }
    return out;
  });
}

Result<NewArrays> new_tensors(const std::string& target, const TensorManifest& manifest) {
  return attempt([&] {
    const bool single = target.ends_with(".safetensors");
    if (single && manifest.files.size() != 1)
      throw_error(ErrorCode::invalid_use, "'{}' names one file, but the rules need {}: give a directory", target,
                  amount(manifest.files.size(), "shard"));
    if (!single) check_directory_name(target, ".safetensors");
    NewArrays out{.kind = single ? StagedKind::file : StagedKind::directory,
                  .files = {},
                  .arrays = {},
                  .check_replaceable = single ? &check_replaceable_safetensors : &check_replaceable_directory};
    if (!target.empty()) out.check_replaceable(target);
    // By rank: the tensors of its file, and their numbers among all tensors.
    std::vector<std::vector<SafetensorsTensor>> tensors(manifest.files.size());
    std::vector<std::vector<std::size_t>> numbers(manifest.files.size());
    for (std::size_t n = 0; n < manifest.tensors.size(); ++n) {
      const auto& [shape, spec] = manifest.tensors[n];
      if (stored_order(spec) != NpyOrder::c)
        throw_error(ErrorCode::unsupported, "tensor '{}': a safetensors file is row-major, the layout says order({})",
                    printable(shape.name, name_chars_max), to_string(spec.distribution.memory().order));
      const Grid& grid = spec.distribution.grid();
      StoredParts& array = out.arrays.emplace_back(StoredParts{.spec = spec, .descr = shape.dtype});
      array.parts.resize(static_cast<std::size_t>(grid.size()));
      for (Index i = 0; i < grid.size(); ++i) {
        const Rank rank = grid.rank_at(i);
        array.parts[i] = {rank, 0, NpyOrder::c, spec.distribution.local_extents(rank)};
        tensors[rank].push_back(
            {shape.name, shape.dtype, stored_extents(shape.extents, array.parts[i].extents), shape.opaque_shape});
        numbers[rank].push_back(n);
      }
    }
    for (std::size_t rank = 0; rank < manifest.files.size(); ++rank) {
      const SafetensorsHeader header = make_safetensors_header(tensors[rank], manifest.metadata);
      for (std::size_t i = 0; i < numbers[rank].size(); ++i) {
        StoredParts& array = out.arrays[numbers[rank][i]];
        const Index ordinal = *array.spec.distribution.grid().ordinal_of(static_cast<Rank>(rank));
        array.parts[ordinal].offset_bytes = header.header_bytes + header.tensors[i].offset_bytes;
      }
      out.files.push_back({single ? last_name(target) : manifest.files[rank].name, format_safetensors_header(header),
                           header.header_bytes + header.data_bytes()});
    }
    return out;
  });
}

}  // namespace tranship
