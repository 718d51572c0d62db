// Private: CRC-32 as zip, PNG and Python's zlib.crc32 have it, of files that are written in no particular order.
//
// The checksum of A followed by B is that of A, moved on by the length of B, xor that of B. So the checksum of a file
// is the xor of what each of its pieces contributes, in any order: its own checksum moved on by the bytes after it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <tranship/base/index.hpp>

namespace tranship {

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// What `checksum` becomes when `bytes` more bytes follow that contribute for themselves.
std::uint32_t moved_on(std::uint32_t checksum, Index bytes) noexcept;

/// Pieces of one file, given in the order of the file with gaps between them. Gaps of the same length one after the
/// other cost little.
class PieceChecksum {
 public:
  void add(Index offset_bytes, std::span<const std::byte> bytes) noexcept;
  /// What all pieces contribute to a file of this length.
  std::uint32_t contribution(Index file_bytes) const noexcept;

 private:
  std::uint32_t checksum_ = 0;
  Index end_ = 0;
  Index step_bytes_ = -1;  // the last one, and the operator for it
  std::uint32_t step_ = 0;
};

}  // namespace tranship
