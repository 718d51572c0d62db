// Private: What a zip archive of one stored member has around its bytes, for writers that write those in no particular
// order: only the CRC of the member is left to be filled in once it is known. Format: PKWARE's APPNOTE, 6.3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

struct ZipFrame {
  std::string head;  ///< in front of the member
  std::string tail;  ///< behind it
  /// Where the CRC-32 of the member's bytes goes, little-endian in 4 bytes that are 0 in here: offsets in the archive.
  std::vector<Index> crc_places;
};

/// The member begins at a multiple of `alignment` in the
/// archive. Sizes beyond 32 bits are written as zip64. Throws `invalid_use` for an empty name and for one of more than
/// 65535 bytes, and `overflow`.
ZipFrame zip_frame(std::string_view name, Index member_bytes, Index alignment);

}  // namespace tranship
