// Private: Zip archives, read from memory: the members of an .npz file, stored or deflated, with zip64. Archives are
// untrusted: the directory is accepted only if every member lies in the file, before the directory and apart from the
// others; a member's bytes are accepted only if their number and their CRC agree with the directory. The size of the
// directory bounds memory, never a number that it states. Format: PKWARE's APPNOTE, 6.3.
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

/// Limit on the members of an archive.
inline constexpr Index zip_members_max = 1'000'000;
/// Limit on the bytes that a sink gets at once.
inline constexpr Index zip_chunk_bytes_max = Index(256) * 1024;

/// How the bytes of a member are packed, by the format's numbers. Archives may have other numbers, which are not read.
enum class ZipMethod : std::uint16_t { stored = 0, deflated = 8 };
enum class ZipCipher : std::uint8_t { none, encrypted };

struct ZipMember {
  /// The name in the archive: any bytes, folders with '/'. Never open it as a path.
  std::string name;
  ZipMethod method = ZipMethod::stored;
  ZipCipher cipher = ZipCipher::none;
  std::uint32_t crc32 = 0;
  Index size_bytes = 0;
  /// Offset of the packed bytes from the front of the archive.
  Index data_offset_bytes = 0;
  Index data_bytes = 0;
  friend bool operator==(const ZipMember&, const ZipMember&) = default;
};

/// Reads the directory of an archive, in its order. Fails with `bad_file`, and with `unsupported` for archives of
/// several disks or of more than `zip_members_max` members, each with a message of one printable line.
Result<std::vector<ZipMember>> parse_zip(std::span<const std::byte> archive);

/// Returns the member of that name, or nullptr. Time grows with the number of members.
const ZipMember* find_zip_member(std::span<const ZipMember> members, std::string_view name);

/// Passes the bytes of a member to `sink`, in order and in pieces, with less than a megabyte of memory. The bytes are
/// valid only if this succeeds, because length and CRC are known at the end. An Error that the sink throws passes
/// through. Fails with `bad_file`, with `unsupported` for a member that is encrypted or packed in an unknown way, and
/// with `invalid_use` for a member of another archive.
Result<void> read_zip_member(std::span<const std::byte> archive, const ZipMember& member,
                             FunctionRef<void(std::span<const std::byte>)> sink);

}  // namespace tranship
