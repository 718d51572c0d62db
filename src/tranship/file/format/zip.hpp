// Private: Zip archives, read from memory: the members of an .npz file. Zip64 too; members that are stored or deflated.
// Archives are untrusted: the directory is accepted only when every member lies in the file, before the directory and
// apart from the others, and a member's bytes only when their number and their CRC are what the directory says. Memory
// is bounded by the size of the directory, never by what it claims. Format: PKWARE's APPNOTE, 6.3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>

namespace tranship {

/// Members that an archive has at most.
inline constexpr Index zip_members_max = 1'000'000;
/// Bytes that a sink is given at once, at most.
inline constexpr Index zip_chunk_bytes_max = Index(256) * 1024;

/// How the bytes of a member are packed, as the format numbers it; other numbers occur in archives and are not read.
enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };
enum class ZipCipher : std::uint8_t { none, encrypted };

struct ZipMember {
  /// As the archive spells it: any bytes, folders with '/'. No path to be opened.
  std::string name;
  ZipMethod method = ZipMethod::stored;
  ZipCipher cipher = ZipCipher::none;
  std::uint32_t crc32 = 0;
  Index size_bytes = 0;
  /// The packed bytes, from the front of the archive.
  Index data_offset_bytes = 0;
  Index data_bytes = 0;
  friend bool operator==(const ZipMember&, const ZipMember&) = default;
};

/// Reads the directory of an archive, in its order. Fails with `bad_file`, and `unsupported` for archives of several
/// disks or more than `zip_members_max` members, with a message of one printable line.
Result<std::vector<ZipMember>> parse_zip(std::span<const std::byte> archive);

/// The member of that name, or nullptr. Time grows with the number of members.
const ZipMember* find_zip_member(std::span<const ZipMember> members, std::string_view name);

/// Hands the bytes of a member to `sink`, in order and in pieces, with less than a megabyte of memory. What was handed
/// over counts only when this succeeds: length and CRC are known at the end. An Error that the sink throws passes
/// through. Fails with `bad_file`, with `unsupported` for a member that is encrypted or packed in an unknown way, and
/// with `invalid_use` for a member of another archive.
Result<void> read_zip_member(std::span<const std::byte> archive, const ZipMember& member,
                             FunctionRef<void(std::span<const std::byte>)> sink);

}  // namespace tranship
