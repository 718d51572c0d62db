// Private: CRC-32 as in zip, PNG and Python's zlib.crc32, for files that are written in no particular order.
//
// The checksum of A followed by B is A's checksum, moved on by the length of B, xor B's checksum. So the checksum of a
// file is the xor of the contributions of its pieces, in any order: a piece contributes its own checksum, moved on by
// the number of bytes after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tranship/base/index.hpp>

namespace tranship {

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// Returns the contribution of `checksum` when `bytes` more bytes follow.
std::uint32_t moved_on(std::uint32_t checksum, Index bytes) noexcept;

/// The pieces of one file, in the order of the file, with gaps between them. Consecutive gaps of the same length cost
/// little.
class PieceChecksum {
 public:
  void add(Index offset_bytes, std::span<const std::byte> bytes) noexcept;
  /// Returns the contribution of all pieces to the checksum of a file of this length.
  std::uint32_t contribution(Index file_bytes) const noexcept;

 private:
  std::uint32_t checksum_ = 0;
  Index end_ = 0;
  Index step_bytes_ = -1;  // the last step, and the operator for it
  std::uint32_t step_ = 0;
};

}  // namespace tranship
