// Private: The safetensors format: 8 bytes with the length of a header, a JSON header, and the elements of all tensors,
// one after the other. Headers are untrusted: one is accepted only when its tensors fill the file exactly, without
// holes or overlap. Elements are little-endian and row-major, whatever wrote them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/io/mapped_file.hpp>

namespace tranship {

/// The longest JSON header, in bytes: the format's own limit.
inline constexpr Index safetensors_header_bytes_max = 100'000'000;
/// Tensors that one file has at most.
inline constexpr Index safetensors_tensors_max = 1'000'000;
/// Dimensions that a tensor has at most.
inline constexpr std::size_t safetensors_dims_max = 64;

/// What moves of a tensor.
struct TensorForm {
  /// u8 for floats of one byte and for an opaque tensor.
  ElementType type = ElementType::u8;
  /// Empty for a scalar; of a tensor that is opaque, the number of its bytes.
  Indices extents;
  Index size_bytes = 0;
  /// It cannot be cut, and moves only as a whole: its elements have less than a byte (F4, F6), or it has more
  /// dimensions than layouts have.
  bool opaque = false;
};

/// Fails with `unsupported` for an unknown dtype and too many dimensions, with `overflow`, and with `bad_file` where
/// elements of less than a byte do not fill the last byte.
Result<TensorForm> tensor_form(std::string_view dtype, std::span<const Index> shape);

/// One tensor of a file.
struct SafetensorsEntry {
  /// Any UTF-8.
  std::string name;
  /// The element type as the file spells it ("BF16", "F8_E4M3"); writing keeps it.
  std::string dtype;
  /// As of TensorForm.
  ElementType type = ElementType::u8;
  Indices extents;
  /// The shape as the file spells it, of a tensor that is opaque; empty for all others.
  std::vector<Index> opaque_shape = {};
  /// From the front of the elements of the file.
  Index offset_bytes = 0;
  Index size_bytes = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  /// Free text, by key; in the order of the file.
  std::vector<std::pair<std::string, std::string>> metadata;
  /// In the order of the header, which need not be that of their elements.
  std::vector<SafetensorsEntry> tensors;
  /// Where the elements begin, in bytes from the front of the file.
  Index header_bytes = 0;

  /// Bytes of all elements.
  Index data_bytes() const;

  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Reads a header. `head` is the front of a file of `file_size_bytes`: all of it, or at least as much as its header
/// says, which is at most `safetensors_header_bytes_max` + 8.
/// Fails with `bad_file` (not the format, a name given twice, elements that do not fill the file), `unsupported`
/// (unknown dtypes, too many dimensions) and `overflow`, each with a message of one printable line.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head, Index file_size_bytes);

/// A tensor to be written.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  Indices extents;
  std::vector<Index> opaque_shape = {};  ///< as of SafetensorsEntry
};

/// The header of a file of these tensors, in their order. Their elements lie by falling size, so that each tensor is
/// aligned to its elements, and in order otherwise. Throws `invalid_use` for a name that comes twice, `unsupported` for
/// a dtype, `overflow`.
SafetensorsHeader make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                          std::vector<std::pair<std::string, std::string>> metadata = {});

/// The front of a file, up to its elements: length, JSON in the order given, spaces up to a multiple of 8 bytes.
/// header_bytes is the length of the result and not read. Throws `invalid_use` for what parse_safetensors_header would
/// refuse, `unsupported` above `safetensors_header_bytes_max`.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// A mapped safetensors file with its parsed header.
struct SafetensorsFile {
  MappedFile file;
  SafetensorsHeader header;

  /// The elements of a tensor of this header, in place. They may lie unaligned.
  std::span<const std::byte> bytes_of(const SafetensorsEntry& tensor) const;
};

/// Maps and parses; errors name the path. Fails as MappedFile::open and parse_safetensors_header do.
Result<SafetensorsFile> open_safetensors(const std::string& path, FileAccess access = FileAccess::read_only);

}  // namespace tranship
