// Private: ZipFrame, the bytes that a zip archive has around one stored member, for writers that write the member in no
// particular order: only its CRC is filled in once it is known. Format: PKWARE's APPNOTE, 6.3.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

struct ZipFrame {
  std::string head;  ///< in front of the member
  std::string tail;  ///< behind it
  /// Offsets in the archive of the member's CRC-32, which is 4 bytes, little-endian, and 0 in `head` and `tail`.
  std::vector<Index> crc_places;
};

/// Makes a frame in which the member begins at a multiple of `alignment`. Writes sizes beyond 32 bits as zip64. Throws
/// `invalid_use` for an empty name and for a name of more than 65535 bytes, and `overflow`.
ZipFrame zip_frame(std::string_view name, Index member_bytes, Index alignment);

}  // namespace tranship
