// Private: The safetensors format: 8 bytes with the length of a header, a JSON header, and the elements of all tensors,
// one after the other. Headers are untrusted: a header is accepted only if its tensors fill the file exactly, without
// holes or overlap. Elements are little-endian and row-major on every machine.
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

/// Limit on the bytes of a JSON header: the format's own.
inline constexpr Index safetensors_header_bytes_max = 100'000'000;
/// Limit on the tensors of a file.
inline constexpr Index safetensors_tensors_max = 1'000'000;
/// Limit on the dimensions of a tensor.
inline constexpr std::size_t safetensors_dims_max = 64;

/// The form in which a tensor moves.
struct TensorForm {
  /// u8 for floats of one byte and for opaque tensors.
  ElementType type = ElementType::u8;
  /// Empty for a scalar; the number of bytes for an opaque tensor.
  Indices extents;
  Index size_bytes = 0;
  /// True if the tensor cannot be cut and moves only as a whole: its elements have less than a byte (F4, F6), or it has
  /// more dimensions than layouts have.
  bool opaque = false;
};

/// Fails with `unsupported` for an unknown dtype and for too many dimensions, with `overflow`, and with `bad_file` if
/// elements of less than a byte do not fill the last byte.
Result<TensorForm> tensor_form(std::string_view dtype, std::span<const Index> shape);

/// One tensor of a file.
struct SafetensorsEntry {
  /// Any UTF-8 text.
  std::string name;
  /// The element type as the file spells it ("BF16", "F8_E4M3"). Writing keeps it.
  std::string dtype;
  /// See TensorForm.
  ElementType type = ElementType::u8;
  Indices extents;
  /// The shape of an opaque tensor as the file spells it; empty for all others.
  std::vector<Index> opaque_shape = {};
  /// Offset from the first element of the file.
  Index offset_bytes = 0;
  Index size_bytes = 0;
  friend bool operator==(const SafetensorsEntry&, const SafetensorsEntry&) = default;
};

struct SafetensorsHeader {
  /// Free text by key, in the order of the file.
  std::vector<std::pair<std::string, std::string>> metadata;
  /// In the order of the header, which may differ from the order of their elements.
  std::vector<SafetensorsEntry> tensors;
  /// Offset of the elements from the front of the file, in bytes.
  Index header_bytes = 0;

  /// Bytes of all elements.
  Index data_bytes() const;

  friend bool operator==(const SafetensorsHeader&, const SafetensorsHeader&) = default;
};

/// Parses a header. `head` is the front of a file of `file_size_bytes`: all of it, or at least as much as its header
/// says, which is at most `safetensors_header_bytes_max` + 8. Fails with `bad_file` (not the format, a name given
/// twice, elements that do not fill the file), `unsupported` (unknown dtypes, too many dimensions) and `overflow`, each
/// with a message of one printable line.
Result<SafetensorsHeader> parse_safetensors_header(std::span<const std::byte> head, Index file_size_bytes);

/// A tensor that is written.
struct SafetensorsTensor {
  std::string name;
  std::string dtype;
  Indices extents;
  std::vector<Index> opaque_shape = {};  ///< see SafetensorsEntry
};

/// Makes the header of a file of these tensors, in their order. Elements lie by falling size of their type and in order
/// otherwise, so that each tensor is aligned to its elements. Throws `invalid_use` for a name that comes twice,
/// `unsupported` for a dtype, `overflow`.
SafetensorsHeader make_safetensors_header(std::span<const SafetensorsTensor> tensors,
                                          std::vector<std::pair<std::string, std::string>> metadata = {});

/// Returns the front of a file, up to its elements: length, JSON in the order given, spaces up to a multiple of 8
/// bytes. header_bytes is ignored and is the length of the result. Throws `invalid_use` for a header that
/// parse_safetensors_header would refuse, `unsupported` above `safetensors_header_bytes_max`.
std::string format_safetensors_header(const SafetensorsHeader& header);

/// A mapped safetensors file with its parsed header.
struct SafetensorsFile {
  MappedFile file;
  SafetensorsHeader header;

  /// Returns the elements of a tensor of this header, in place. They may be unaligned.
  std::span<const std::byte> bytes_of(const SafetensorsEntry& tensor) const;
};

/// Maps a file and parses its header; errors name the path. Fails as MappedFile::open and parse_safetensors_header do.
Result<SafetensorsFile> open_safetensors(const std::string& path, FileAccess access = FileAccess::read_only);

}  // namespace tranship
