// Private: NumPy's .npy format, versions 1.0, 2.0 and 3.0: at most 8 dimensions, and no Python objects. Elements that
// are no numbers (dates, text, records, raw memory) are moved as bytes, and their descr is kept. Headers are untrusted
// text: parsing never recurses, never allocates what the text asks for, and accepts a header only together with a file
// of exactly the length that it implies. Format: numpy.lib.format in NumPy's reference.
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

/// Which dimension lies densest in the file: c the last, fortran the first.
enum class NpyOrder : std::uint8_t { c, fortran };

/// The order in which the dimensions of a layout lie in a file. Where an element is several of its type, these are the
/// last dimension of the layout, and lie together in either order.
struct StoredOrder {
  NpyOrder outer = NpyOrder::c;
  bool has_inner = false;  ///< whether the last dimension is the inside of an element

  constexpr StoredOrder() noexcept = default;
  constexpr StoredOrder(NpyOrder order, bool inner = false) noexcept : outer(order), has_inner(inner) {}
  friend bool operator==(const StoredOrder&, const StoredOrder&) = default;
};

/// Dimensions from the slowest to the fastest.
Indices dimension_order(StoredOrder order, int dims);

/// The longest header that is read, in bytes; NumPy's own for up to 8 dimensions have 128 or 192.
inline constexpr Index npy_header_bytes_max = Index(128) * 1024;

struct NpyHeader {
  /// What moves: of elements that are no numbers the widest of u64, u32, u16 and u8 that they are a multiple of.
  ElementType type = ElementType::u8;
  /// How many of `type` an element is: 1 of numbers.
  Index count = 1;
  /// '<' little-endian, '>' big-endian, '|' where the file does not say: elements of bytes, and "|V2". For a record:
  /// that which is not this machine's, where any field has it.
  char byte_order = '|';
  NpyOrder order = NpyOrder::c;
  /// Empty for an array of 0 dimensions, which has one element.
  Indices extents;
  /// Where the elements begin, in bytes from the front of the file.
  Index header_bytes = 0;
  /// The element type as the file spells it ("<f8", "bfloat16", "<M8[ns]", "[('x', '<f4'), ('y', '<i8')]"), in UTF-8;
  /// writing keeps it.
  std::string descr;

  /// Bytes of all elements. Throws `overflow`; never for a header that was parsed.
  Index data_bytes() const;

  friend bool operator==(const NpyHeader&, const NpyHeader&) = default;
};

/// What a descr spells.
struct NpyElement {
  ElementType type = ElementType::u8;
  char byte_order = '|';  ///< as in NpyHeader
  /// The width of the numbers that a byte order is of: of complex elements that of a part, of text that of a character,
  /// 0 of records, whose fields differ.
  Index swap_bytes = 1;
  Index count = 1;  ///< as in NpyHeader
  friend bool operator==(const NpyElement&, const NpyElement&) = default;
};

/// Reads a descr on its own: a name, or the list of a record. Fails with `unsupported` for Python objects and for what
/// is not known, with `bad_file` and `overflow`.
Result<NpyElement> parse_npy_descr(std::string_view descr);

/// The extents that a layout of the array has: [1] where it has 0 dimensions, and `count` behind them where that is not
/// 1. Throws `unsupported` where that is more dimensions than layouts have.
Indices layout_extents(const NpyHeader& header);

/// The header that NumPy on this machine writes for such an array. Throws `invalid_use` for a negative extent and
/// `overflow` when the file's length does not fit in 63 bits.
NpyHeader make_npy_header(ElementType type, const Indices& extents, NpyOrder order = NpyOrder::c);

/// Reads a header. `head` is the front of a file of `file_size_bytes`: all of it, or at least npy_header_bytes_max.
/// Numbers of the other byte order are accepted: who only moves them moves bytes.
/// Fails with `bad_file` (not the format, or a length that does not fit it), `unsupported` (Python objects, too many
/// dimensions, other versions) and `overflow` (extents), each with a message of one printable line.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> head, Index file_size_bytes);

/// The bytes of the header as NumPy writes it: the first version that holds it, keys and spaces as NumPy's, room to
/// grow, the end on a multiple of 64 bytes. Takes descr, order and extents; header_bytes is the length of the result
/// and not read. Throws `invalid_use` where descr is not a spelling of type and byte_order.
std::string format_npy_header(const NpyHeader& header);

/// How the dimensions of layout_extents() lie in the file.
StoredOrder stored_order(const NpyHeader& header);

/// The array that a header describes, its elements lying from `elements` on. Where an element is several of its type,
/// they are a last dimension more.
StridedView npy_view(const NpyHeader& header, std::byte* elements);

/// A mapped .npy file with its parsed header.
struct NpyFile {
  MappedFile file;
  NpyHeader header;

  /// Its elements, in place. Not to be written through when the file is mapped for reading only. Elements may lie
  /// unaligned: a header may have any length.
  StridedView view() const;
};

/// Maps and parses; errors name the path. Fails as MappedFile::open and parse_npy_header do.
Result<NpyFile> open_npy(const std::string& path, FileAccess access = FileAccess::read_only);

}  // namespace tranship
