// What must hold for any bytes that are taken for a zip archive. Used by the libFuzzer program and by the seeded
// mutations of tests/file; the reader is a parameter so that a test can show that the check notices a wrong one.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include <zlib.h>

#include <tranship/file/format/zip.hpp>

namespace tranship::testing {

using ZipSink = FunctionRef<void(std::span<const std::byte>)>;
using ZipReader = Result<void> (*)(std::span<const std::byte>, const ZipMember&, ZipSink);

struct ZipVerdict {
  bool accepted = false;
  /// Members whose bytes were read to the end.
  int members_read = 0;
  /// Empty when all is well.
  std::string violation = {};
};

inline std::string violation_of_zip_error(const Error& error) {
  for (const char c : error.message())
    if (!std::isprint(static_cast<unsigned char>(c))) return "a message that is not one printable line";
  const ErrorCode code = error.code();
  if (code != ErrorCode::bad_file && code != ErrorCode::unsupported) return std::string("the code ") + name_of(code);
  return "";
}

/// A member that is read has the length and the CRC of the directory, and is handed over in small pieces.
inline std::string violation_of(std::span<const std::byte> archive, const ZipMember& member, ZipReader reader,
                                int& members_read) {
  Index size = 0;
  unsigned long crc = crc32_z(0, nullptr, 0);
  bool large = false;
  const Result<void> done = reader(archive, member, [&](std::span<const std::byte> piece) {
    large |= piece.empty() || static_cast<Index>(piece.size()) > zip_chunk_bytes_max;
    size += static_cast<Index>(piece.size());
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  });
  if (large) return "a piece of no bytes or too many";
  if (size > member.size_bytes) return "more bytes than the directory says";
  if (!done) return violation_of_zip_error(done.error());
  ++members_read;
  if (size != member.size_bytes || crc != member.crc32) return "read without fault, but not what the directory says";
  return "";
}

inline ZipVerdict check_zip(std::span<const std::byte> archive, ZipReader reader) {
  const Result<std::vector<ZipMember>> members = parse_zip(archive);
  if (!members) return {false, 0, violation_of_zip_error(members.error())};
  ZipVerdict out{true};
  std::vector<std::pair<Index, Index>> ranges;
  for (const ZipMember& member : members.value()) {
    const Index begin = member.data_offset_bytes, end = begin + member.data_bytes;
    if (begin < 30 || end < begin || end > static_cast<Index>(archive.size())) out.violation = "data out of the file";
    ranges.emplace_back(begin, end);
    if (find_zip_member(members.value(), member.name) != &member) out.violation = "two members of one name";
    if (!out.violation.empty()) return out;
    out.violation = violation_of(archive, member, reader, out.members_read);
    if (!out.violation.empty()) return out;
  }
  std::sort(ranges.begin(), ranges.end());
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].first < ranges[i - 1].second) out.violation = "members that overlap";
  return out;
}

}  // namespace tranship::testing
