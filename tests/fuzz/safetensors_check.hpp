// What must hold for any bytes that are taken for a safetensors file, or for the index of one. Used by the libFuzzer
// programs and by the seeded mutations of tests/file; the writer is a parameter so that a test can show that the check
// notices a wrong one.
#pragma once

#include <cctype>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

#include <tranship/file/format/safetensors.hpp>
#include <tranship/file/format/safetensors_index.hpp>

namespace tranship::testing {

using SafetensorsFormat = std::string (*)(const SafetensorsHeader&);
using SafetensorsIndexFormat = std::string (*)(const SafetensorsIndex&);

struct SafetensorsVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation = {};
};

inline std::string violation_of_safetensors_error(const Error& error) {
  for (const char c : error.message())
    if (!std::isprint(static_cast<unsigned char>(c))) return "a message that is not one printable line";
  const ErrorCode code = error.code();
  if (code != ErrorCode::bad_file && code != ErrorCode::unsupported && code != ErrorCode::overflow)
    return std::string("the code ") + name_of(code);
  return "";
}

/// The tensors of an accepted header fill the file, and what is written of it reads as the same.
inline std::string violation_of(const SafetensorsHeader& header, Index file_size_bytes, SafetensorsFormat format) {
  Index bytes = 0;
  std::set<std::string> names;
  for (const SafetensorsEntry& tensor : header.tensors) {
    std::vector<Index> shape = tensor.opaque_shape;
    if (shape.empty()) shape.assign(tensor.extents.begin(), tensor.extents.end());
    const Result<TensorForm> form = tensor_form(tensor.dtype, shape);
    if (!form || form.value().type != tensor.type || !(form.value().extents == tensor.extents))
      return "a dtype of another type";
    if (form.value().opaque == tensor.opaque_shape.empty()) return "a shape in the wrong place";
    if (checked_product(tensor.extents) * size_bytes(tensor.type) != tensor.size_bytes) return "the size does not fit";
    if (tensor.offset_bytes < 0 || tensor.offset_bytes + tensor.size_bytes > file_size_bytes - header.header_bytes)
      return "a tensor out of the file";
    if (!names.insert(tensor.name).second) return "two tensors of one name";
    bytes += tensor.size_bytes;
  }
  if (header.header_bytes + bytes != file_size_bytes || header.data_bytes() != bytes) return "the length does not fit";
  const std::string written = format(header);
  if (written.size() % 8 != 0) return "the written header does not end on a multiple of 8 bytes";
  SafetensorsHeader expected = header;
  expected.header_bytes = static_cast<Index>(written.size());
  const Result<SafetensorsHeader> again =
      parse_safetensors_header(std::as_bytes(std::span(written)), expected.header_bytes + bytes);
  if (!again) return "the written header is refused: " + again.error().message();
  if (!(again.value() == expected)) return "the written header says something else";
  return "";
}

/// Parses `head` as the front of a file of its own length. When only the length is wrong, gives the file the length
/// that the message asks for: then it must be accepted.
inline SafetensorsVerdict check_safetensors(std::span<const std::byte> head, SafetensorsFormat format) {
  Index size_bytes = static_cast<Index>(head.size());
  Result<SafetensorsHeader> header = parse_safetensors_header(head, size_bytes);
  if (!header) {
    const std::string& message = header.error().message();
    const std::string violation = violation_of_safetensors_error(header.error());
    constexpr std::string_view lengths = "the tensors have ";
    if (!violation.empty() || !message.starts_with(lengths)) return {false, violation};
    Index data_bytes = 0;
    std::from_chars(message.data() + lengths.size(), message.data() + message.size(), data_bytes);
    Index header_bytes = 8;
    for (int i = 0; i < 8; ++i) header_bytes += std::to_integer<Index>(head[i]) << 8 * i;
    if (__builtin_add_overflow(header_bytes, data_bytes, &size_bytes)) return {};
    header = parse_safetensors_header(head, size_bytes);
    if (!header) return {false, "refused at the length it asked for: " + header.error().message()};
  }
  return {true, violation_of(header.value(), size_bytes, format)};
}

/// The front of a file whose header is `json`.
inline std::string safetensors_front(std::string_view json) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(json.size() >> 8 * i & 0xff);
  return out.append(json);
}

/// An accepted index names plain files, and what is written of it reads as the same.
inline SafetensorsVerdict check_safetensors_index(std::string_view text, SafetensorsIndexFormat format) {
  const Result<SafetensorsIndex> index = parse_safetensors_index(text);
  if (!index) return {false, violation_of_safetensors_error(index.error())};
  std::set<std::string> names;
  for (const auto& [tensor, file] : index.value().tensors) {
    if (file.empty() || file.find('/') != std::string::npos || file.find("..") != std::string::npos ||
        file.find('\0') != std::string::npos)
      return {true, "a file outside the folder"};
    if (!names.insert(tensor).second) return {true, "two places for one tensor"};
  }
  const Result<SafetensorsIndex> again = parse_safetensors_index(format(index.value()));
  if (!again) return {true, "what was written is refused: " + again.error().message()};
  if (!(again.value() == index.value())) return {true, "what was written says something else"};
  return {true};
}

}  // namespace tranship::testing
