#include "tranship/file/io/checksum.hpp"

#include <libdeflate.h>
#include <zlib.h>

namespace tranship {

std::uint32_t crc32_of(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return ::libdeflate_crc32(before, bytes.data(), bytes.size());
}

std::uint32_t moved_on(std::uint32_t checksum, Index bytes) noexcept {
  return static_cast<std::uint32_t>(::crc32_combine(checksum, 0, bytes));
}

void PieceChecksum::add(Index offset_bytes, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return;
  const Index end = offset_bytes + static_cast<Index>(bytes.size());
  if (checksum_ != 0) {
    if (const Index step = end - end_; step != step_bytes_) {
      step_ = static_cast<std::uint32_t>(::crc32_combine_gen(step));
      step_bytes_ = step;
    }
    checksum_ = static_cast<std::uint32_t>(::crc32_combine_op(checksum_, 0, step_));
  }
  checksum_ ^= crc32_of(bytes);
  end_ = end;
}

std::uint32_t PieceChecksum::contribution(Index file_bytes) const noexcept {
  return moved_on(checksum_, file_bytes - end_);
}

}  // namespace tranship
