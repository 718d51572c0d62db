// What must hold for any bytes that are taken for a .npy file. Used by the libFuzzer program and by the seeded
// mutations of tests/file; `format` is a parameter so that a test can show that the check notices a wrong one.
#pragma once

#include <cctype>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>

#include <tranship/file/format/npy.hpp>

namespace tranship::testing {

using NpyFormat = std::string (*)(const NpyHeader&);

struct NpyVerdict {
  bool accepted = false;
  /// Empty when all is well.
  std::string violation;
};

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

/// An accepted header describes the whole file, and formatting it gives a header that parses to the same.
inline std::string violation_of(const NpyHeader& header, Index file_size_bytes, NpyFormat format) {
  if (header.extents.size() > dims_max) return "too many dimensions";
  for (const Index extent : header.extents)
    if (extent < 0) return "a negative extent";
  if (header.header_bytes + header.data_bytes() != file_size_bytes) return "the length does not fit";
  const std::string written = format(header);
  NpyHeader expected = header;
  expected.header_bytes = static_cast<Index>(written.size());
  if (written.size() % 64 != 0) return "the written header does not end on a multiple of 64 bytes";
  const Index room = file_size_bytes - header.header_bytes;
  const Result<NpyHeader> again = parse_npy_header(bytes_of(written), expected.header_bytes + room);
  if (!again) return "the written header is refused: " + again.error().message();
  if (!(again.value() == expected)) return "the written header says something else";
  return "";
}

/// Parses `head` as the front of a file of its own length. When only the length is wrong, gives the file the length
/// that the message asks for: then it must be accepted.
inline NpyVerdict check_npy(std::span<const std::byte> head, NpyFormat format) {
  Index size_bytes = static_cast<Index>(head.size());
  Result<NpyHeader> header = parse_npy_header(head, size_bytes);
  if (!header) {
    const std::string& message = header.error().message();
    for (const char c : message)
      if (!std::isprint(static_cast<unsigned char>(c))) return {false, "a message that is not one printable line"};
    const std::size_t at = message.find("needs ");
    const bool only_length = message.starts_with("truncated: needs ") || message.starts_with("has ");
    if (!only_length) return {};
    std::from_chars(message.data() + at + 6, message.data() + message.size(), size_bytes);
    header = parse_npy_header(head, size_bytes);
    if (!header) return {false, "refused at the length it asked for: " + header.error().message()};
  }
  return {true, violation_of(header.value(), size_bytes, format)};
}

}  // namespace tranship::testing
