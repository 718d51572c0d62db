// Private: NumPy's .npy format, versions 1.0, 2.0 and 3.0: at most 8 dimensions, and no Python objects. Elements that
// are not numbers (dates, text, records, raw memory) are moved as bytes, and their descr is kept. Headers are untrusted
// text: parsing never recurses, never allocates sizes that the text states, and accepts a header only together with a
// file of exactly the length that it implies. Format: numpy.lib.format in NumPy's reference.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/file/io/mapped_file.hpp>

namespace tranship {

/// The densest dimension in the file: c the last, fortran the first.
enum class NpyOrder : std::uint8_t { c, fortran };

/// The order in which the dimensions of a layout lie in a file. If an element is several numbers of its type, these are
/// the last dimension of the layout, and lie together in either order.
struct StoredOrder {
  NpyOrder outer = NpyOrder::c;
  bool has_inner = false;  ///< true if the last dimension is the inside of an element

  constexpr StoredOrder() noexcept = default;
  constexpr StoredOrder(NpyOrder order, bool inner = false) noexcept : outer(order), has_inner(inner) {}
  friend bool operator==(const StoredOrder&, const StoredOrder&) = default;
};

/// Returns the dimensions from the slowest to the fastest.
Indices dimension_order(StoredOrder order, int dims);

/// Longer headers are not read. NumPy's own for up to 8 dimensions have 128 or 192 bytes.
inline constexpr Index npy_header_bytes_max = Index(128) * 1024;

struct NpyHeader {
  /// The type that is moved. For elements that are not numbers, the widest of u64, u32, u16 and u8 that divides them.
  ElementType type = ElementType::u8;
  /// How many of `type` an element is: 1 for numbers.
  Index count = 1;
  /// '<' little-endian, '>' big-endian, '|' if the file does not say: elements of bytes, and "|V2". A record has the
  /// order that is not this machine's if any of its fields has it.
  char byte_order = '|';
  NpyOrder order = NpyOrder::c;
  /// Empty for an array of 0 dimensions, which has one element.
  Indices extents;
  /// Offset of the elements from the front of the file, in bytes.
  Index header_bytes = 0;
  /// The element type as the file spells it ("<f8", "bfloat16", "<M8[ns]", "[('x', '<f4'), ('y', '<i8')]"), in UTF-8.
  /// Writing keeps it.
  std::string descr;

  /// Bytes of all elements. Throws `overflow`, but never for a header that was parsed.
  Index data_bytes() const;

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// The element type that a descr spells.
struct NpyElement {
  ElementType type = ElementType::u8;
  char byte_order = '|';  ///< as in NpyHeader
  /// Width of the numbers that have the byte order: a part of a complex element, a character of text; 0 for records,
  /// whose fields differ.
  Index swap_bytes = 1;
  Index count = 1;  ///< as in NpyHeader
  friend bool operator==(const NpyElement&, const NpyElement&) = default;
};

/// Parses a descr on its own: a name, or the list of a record. Fails with `unsupported` for Python objects and unknown
/// types, with `bad_file` and with `overflow`.
Result<NpyElement> parse_npy_descr(std::string_view descr);

/// Returns the extents of a layout of the array: [1] if it has 0 dimensions, with `count` appended if that is not 1.
/// Throws `unsupported` if that makes more dimensions than layouts have.
Indices layout_extents(const NpyHeader& header);

/// Makes the header that NumPy on this machine writes for such an array. Throws `invalid_use` for a negative extent and
/// `overflow` if the file's length does not fit in 63 bits.
NpyHeader make_npy_header(ElementType type, const Indices& extents, NpyOrder order = NpyOrder::c);

/// Parses a header. `head` is the front of a file of `file_size_bytes`: all of it, or at least npy_header_bytes_max.
/// Accepts numbers of the other byte order, because they are only moved. Fails with `bad_file` (not the format, or a
/// length that does not fit it), `unsupported` (Python objects, too many dimensions, other versions) and `overflow`
/// (extents), each with a message of one printable line.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> head, Index file_size_bytes);

/// Returns the bytes of the header as NumPy writes it: the first version that can hold it, NumPy's keys and spaces,
/// room to grow, and the end on a multiple of 64 bytes. Uses descr, order and extents; header_bytes is ignored and is
/// the length of the result. Throws `invalid_use` if descr is not a spelling of type and byte_order.
std::string format_npy_header(const NpyHeader& header);

/// Returns how the dimensions of layout_extents() lie in the file.
StoredOrder stored_order(const NpyHeader& header);

/// Returns a view of the array that a header describes, whose elements begin at `elements`. If an element is several
/// numbers of its type, these are one more, last dimension.
StridedView npy_view(const NpyHeader& header, std::byte* elements);

/// A mapped .npy file with its parsed header.
struct NpyFile {
  MappedFile file;
  NpyHeader header;

  /// Returns a view of its elements, in place. Do not write through it if the file is mapped for reading only. Elements
  /// may be unaligned, because a header may have any length.
  StridedView view() const;
};

/// Maps a file and parses its header; errors name the path. Fails as MappedFile::open and parse_npy_header do.
Result<NpyFile> open_npy(const std::string& path, FileAccess access = FileAccess::read_only);

}  // namespace tranship
