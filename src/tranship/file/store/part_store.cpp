#include "tranship/file/store/part_store.hpp"

#include <algorithm>
#include <filesystem>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/file/io/checksum.hpp>
#include <tranship/layout/text.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

/// Returns a descr without its byte order.
std::string_view kind_of(std::string_view descr) {
  return descr.substr(!descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos ? 1 : 0);
}

bool is_number(std::string_view kind) {
  return kind == "bfloat16" || element_type_of_numpy(kind).ok();
}

/// Returns true if two descrs spell elements of the same form and meaning. For numbers the type determines both.
/// Elements that move as bytes have units, fields or a kind of text that only the descr states.
bool same_element(const std::string& a, const std::string& b) {
  if (a == b) return true;
  if (parse_npy_descr(a).value() != parse_npy_descr(b).value()) return false;
  const std::string_view kind_a = kind_of(a), kind_b = kind_of(b);
  return kind_a == kind_b || (is_number(kind_a) && is_number(kind_b));
}

/// Without a manifest, only the number of files can show that the layout covers all of them.
void check_count(const std::string& directory, Index parts) {
  Index found = 0;
  std::error_code failure;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end; entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    found += name.starts_with("part-") && name.ends_with(".npy");
  }
  if (failure) throw posix::io_error("list", directory, failure.value());
  if (found != parts)
    throw_error(ErrorCode::mismatch, "'{}' holds {} part-*.npy, the layout has {}", directory, amount(found, "file"),
                amount(parts, "part"));
}

/// Reads the header of a .npy file of the set.
NpyHeader header_of(const FileSet& files, Index file) {
  // Nearly all headers are shorter than this; for longer ones, a second read follows.
  constexpr Index first_bytes = 4096;
  for (Index wanted = first_bytes;; wanted = npy_header_bytes_max) {
    std::vector<std::byte> head(static_cast<std::size_t>(std::min(wanted, files.size_bytes(file))));
    files.read(file, 0, head);
    Result<NpyHeader> header = parse_npy_header(head, files.size_bytes(file));
    if (header) return std::move(header).value();
    if (header.error().code() != ErrorCode::invalid_use || wanted == npy_header_bytes_max)
      throw make_error(header.error().code(), "'{}': {}", files.path(file), header.error().message());
  }
}

void check_part(const std::string& path, const NpyHeader& header, const ArraySpec& spec, Rank rank) {
  if (header.type != spec.type)
    throw_error(ErrorCode::mismatch, "'{}': the part has elements {}, the layout {}", path, name_of(header.type),
                name_of(spec.type));
  const Indices needed = spec.distribution.local_extents(rank), found = layout_extents(header);
  if (!(found == needed))
    throw_error(ErrorCode::mismatch, "'{}': the part has extents [{}], the layout gives rank {} [{}]", path,
                to_string(found), rank, to_string(needed));
}

/// Throws `mismatch` if a layout that the caller gives has another order than the file of a part.
void check_order(const std::string& path, const NpyHeader& header, const ArraySpec& layout) {
  const auto in_memory = [&](StoredOrder order) {
    Indices out, extents = layout_extents(header);
    for (const Index d : dimension_order(order, extents.size()))
      if (extents[static_cast<int>(d)] > 1) out.push_back(d);
    return out;
  };
  const StoredOrder found = stored_order(header), given = stored_order(layout, header.count);
  if (checked_product(header.extents) == 0 || in_memory(found) == in_memory(given)) return;
  const auto text = [](StoredOrder order) { return order.outer == NpyOrder::c ? "row-major order" : "Fortran order"; };
  throw_error(ErrorCode::mismatch, "'{}' is in {}, but the given layout says {}: {}", path, text(found), text(given),
              to_text(layout));
}

/// Adds the part of `rank` in the layout. Returns its header.
NpyHeader add_part(StoredParts& array, const std::string& path, const ArraySpec& spec, Rank rank) {
  const Index file = array.files->add(path).value();
  NpyHeader header = header_of(*array.files, file);
  check_part(path, header, spec, rank);
  array.parts.push_back({file, header.header_bytes, stored_order(header), layout_extents(header)});
  return header;
}

StoredParts open_file(const std::string& path, const std::optional<ArraySpec>& layout) {
  const auto files = std::make_shared<FileSet>(FileAccess::read_only);
  StoredParts out = whole_array(path, header_of(*files, files->add(path).value()), layout);
  out.files = files;
  return out;
}

StoredParts open_directory(const std::string& path, const std::optional<ArraySpec>& layout) {
  const bool has_manifest = posix::exists(path + "/" + manifest_name);
  if (!has_manifest && !layout) throw lacks_manifest(path);
  const Manifest manifest = has_manifest ? read_manifest(path).value() : make_manifest(*layout, "");
  if (has_manifest && layout) {
    check_fits(manifest.spec, *layout);
    if (!(manifest.spec == *layout))
      throw_error(ErrorCode::mismatch, "'{}' has the layout {}, but {} is given", path, to_text(manifest.spec),
                  to_text(*layout));
  }
  const Grid& grid = manifest.spec.distribution.grid();
  if (!has_manifest) check_count(path, grid.size());

  StoredParts out{.spec = manifest.spec,
                  .descr = manifest.descr,
                  .is_scalar = manifest.is_scalar,
                  .files = std::make_shared<FileSet>(FileAccess::read_only)};
  for (Index i = 0; i < grid.size(); ++i) {
    const NpyHeader header = add_part(out, path + "/" + manifest.files[i], manifest.spec, grid.rank_at(i));
    if (!has_manifest) check_order(out.path_of(i), header, *layout);
    out.is_scalar |= header.extents.empty();
    if (out.descr.empty()) out.descr = header.descr;
    if (!same_element(header.descr, out.descr))
      throw_error(ErrorCode::mismatch, "'{}': the part has elements '{}', the array '{}'", out.path_of(i),
                  printable(header.descr), printable(out.descr));
  }
  out.checksums.resize(static_cast<std::size_t>(grid.size()));
  for (std::size_t i = 0; i < manifest.checksums.size(); ++i)
    if (manifest.checksums[i]) out.checksums[i] = RecordedChecksum{*manifest.checksums[i]};
  return out;
}

}  // namespace

StridedView view_of(const StoredPart& part, ElementType type, std::byte* elements) {
  return {.data = elements,
          .type = type,
          .extents = part.extents,
          .strides = dense_strides(part.extents, dimension_order(part.order, part.extents.size()))};
}

void for_each_stretch(const StoredPart& part, Index width, const Box& box, FunctionRef<void(Index, Index, Index)> f) {
  const int dims = box.dims();
  const Indices order = dimension_order(part.order, dims);
  const Indices strides = view_of(part, ElementType::u8, nullptr).strides;
  // Dimensions that the box has whole join the dimension before them.
  int first = dims - 1;
  Index stretch = box[order[first]].length();
  for (; first > 0 && box[order[first]].length() == part.extents[order[first]]; --first)
    stretch *= box[order[first - 1]].length();
  Indices counts;
  Index corner = 0;
  for (int k = 0; k < dims; ++k) {
    if (k < first) counts.push_back(box[order[k]].length());
    corner += box.lower[order[k]] * strides[order[k]];
  }
  Index in_box = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    Index offset = corner;
    for (int k = 0; k < first; ++k) offset += at[k] * strides[order[k]];
    f(part.offset_bytes + offset * width, in_box, stretch * width);
    in_box += stretch * width;
  });
}

void for_each_piece(const Box& box, const Indices& order, Index cells_max, FunctionRef<void(const Box&, Index)> f) {
  Indices steps = Indices::filled(box.dims(), 1), counts = steps;  // `counts` in the given order
  for (int k = box.dims() - 1; k >= 0; --k) {
    const Index length = box[order[k]].length();
    if (length == 0) return;
    steps[order[k]] = std::clamp<Index>(cells_max, 1, length);
    counts[k] = ceil_divide(length, steps[order[k]]);
    // A dimension that is cut is the last one in which a piece has more than one cell.
    cells_max = steps[order[k]] == length ? cells_max / length : 1;
  }
  Index first = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    Box piece = box;
    for (int k = 0; k < box.dims(); ++k) {
      const int d = static_cast<int>(order[k]);
      piece.lower[d] = box.lower[d] + at[k] * steps[d];
      piece.upper[d] = std::min(box.upper[d], piece.lower[d] + steps[d]);
    }
    f(piece, first);
    first += piece.count();
  });
}

StoredOrder StoredParts::order() const {
  const auto cells = [](const StoredPart& part) { return checked_product(part.extents); };
  const auto largest =
      std::max_element(parts.begin(), parts.end(), [&](const auto& a, const auto& b) { return cells(a) < cells(b); });
  return largest == parts.end() ? StoredOrder{} : largest->order;
}

Index StoredParts::part_bytes(Index part) const {
  return checked_multiply(checked_product(parts[part].extents), size_bytes(spec.type));
}

Index StoredParts::bytes() const {
  Index out = 0;
  for (Index i = 0; i < static_cast<Index>(parts.size()); ++i) out = checked_add(out, part_bytes(i));
  return out;
}

ArraySpec whole_layout(const NpyHeader& header) {
  const Indices extents = layout_extents(header);
  const int dims = extents.size();
  MemoryLayout memory;
  if (header.order == NpyOrder::fortran) memory.order = dimension_order(stored_order(header), dims);
  return {header.type, Distribution(extents, Grid(Indices::filled(dims, 1)),
                                    std::vector<Partition>(static_cast<std::size_t>(dims), whole()), memory)};
}

StoredParts whole_array(const std::string& path, const NpyHeader& header, const std::optional<ArraySpec>& layout) {
  const auto array = [&](const ArraySpec& spec) {
    return StoredParts{.spec = spec,
                       .descr = header.descr,
                       .is_scalar = header.extents.empty(),
                       .parts = {{0, header.header_bytes, stored_order(header), layout_extents(header)}},
                       .checksums = {std::nullopt}};
  };
  if (layout) {
    const Grid& grid = layout->distribution.grid();
    if (grid.size() != 1)
      throw_error(ErrorCode::mismatch, "'{}' is a file of 1 part, the layout has {}", path, grid.size());
    check_part(path, header, *layout, grid.rank_at(0));
    check_order(path, header, *layout);
    return array(*layout);
  }
  const Result<ArraySpec> whole = attempt([&] { return whole_layout(header); });
  if (!whole) throw make_error(whole.error().code(), "'{}': {}", path, whole.error().message());
  return array(whole.value());
}

Error lacks_manifest(const std::string& directory) {
  return make_error(ErrorCode::bad_file, "directory '{}' holds no '{}': give the layout of its parts", directory,
                    manifest_name);
}

void check_fits(const ArraySpec& array, const ArraySpec& layout) {
  if (array.type != layout.type)
    throw_error(ErrorCode::mismatch, "the array has elements {}, the layout {}", name_of(array.type),
                name_of(layout.type));
  if (!(array.distribution.extents() == layout.distribution.extents()))
    throw_error(ErrorCode::mismatch, "the array has extents [{}], the layout [{}]",
                to_string(array.distribution.extents()), to_string(layout.distribution.extents()));
}

Result<StoredParts> open_parts(const std::string& path, const std::optional<ArraySpec>& layout) {
  return attempt([&] {
    if (layout) stored_order(*layout);
    return posix::is_directory(path) ? open_directory(path, layout) : open_file(path, layout);
  });
}

void check_checksums(const FileSet& files, std::span<const std::optional<RecordedChecksum>> checksums) {
  std::vector<std::byte> buffer(std::size_t(1) << 18);
  for (Index file = 0; file < files.count(); ++file) {
    const std::optional<RecordedChecksum>& recorded = checksums[file];
    if (!recorded) continue;
    std::uint32_t found = 0;
    const Interval stretch = recorded->stretch(files.size_bytes(file));
    for (Index at = stretch.lower; at < stretch.upper;) {
      const auto piece = std::span(buffer).first(
          static_cast<std::size_t>(std::min(stretch.upper - at, static_cast<Index>(buffer.size()))));
      files.read(file, at, piece);
      found = crc32_of(piece, found);
      at += static_cast<Index>(piece.size());
    }
    recorded->require(found, files.path(file));
  }
}

}  // namespace tranship
