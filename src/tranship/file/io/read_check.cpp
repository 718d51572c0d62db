#include "tranship/file/io/read_check.hpp"

#include <algorithm>
#include <vector>

#include <tranship/file/io/checksum.hpp>

namespace tranship {
namespace {

// Moving a checksum on costs as much as the checksum of some KiB.
constexpr std::size_t piece_bytes_min = std::size_t(4) << 10;
// With more stretches, reading the file again is cheaper.
constexpr std::size_t stretches_max = std::size_t(1) << 16;
constexpr Index buffer_bytes = Index(1) << 18;

}  // namespace

void ReadCheck::add(Index offset_bytes, std::span<const std::byte> bytes) {
  const Interval inside = intersect({offset_bytes, offset_bytes + static_cast<Index>(bytes.size())}, stretch_);
  if (inside.empty()) return;
  bytes =
      bytes.subspan(static_cast<std::size_t>(inside.lower - offset_bytes), static_cast<std::size_t>(inside.length()));
  offset_bytes = inside.lower;
  std::vector<std::pair<Index, Index>> fresh;
  {
    const std::lock_guard lock(mutex_);
    any_read_ = true;
    if (bytes.size() < piece_bytes_min || covered_.size() >= stretches_max) return;
    const Index end = offset_bytes + static_cast<Index>(bytes.size());
    auto next = covered_.upper_bound(offset_bytes);
    if (next != covered_.begin() && std::prev(next)->second >= offset_bytes) --next;
    Index begin = offset_bytes, joined_begin = offset_bytes, joined_end = end;
    while (next != covered_.end() && next->first <= end) {
      if (begin < next->first) fresh.emplace_back(begin, next->first);
      begin = std::max(begin, next->second);
      joined_begin = std::min(joined_begin, next->first);
      joined_end = std::max(joined_end, next->second);
      next = covered_.erase(next);
    }
    if (begin < end) fresh.emplace_back(begin, end);
    covered_.emplace(joined_begin, joined_end);
  }
  for (const auto& [begin, end] : fresh)
    add_contribution(
        begin, bytes.subspan(static_cast<std::size_t>(begin - offset_bytes), static_cast<std::size_t>(end - begin)));
}

void ReadCheck::use() {
  const std::lock_guard lock(mutex_);
  any_read_ = true;
}

void ReadCheck::add_contribution(Index offset_bytes, std::span<const std::byte> bytes) {
  const Index end = offset_bytes + static_cast<Index>(bytes.size());
  const std::uint32_t contribution = moved_on(crc32_of(bytes), stretch_.upper - end);
  const std::lock_guard lock(mutex_);
  checksum_ ^= contribution;
}

std::uint32_t ReadCheck::finish(FunctionRef<void(Index, std::span<std::byte>)> read) {
  std::vector<std::byte> buffer(static_cast<std::size_t>(std::min(stretch_.length(), buffer_bytes)));
  const auto read_all = [&](Index begin, Index end) {
    while (begin < end) {
      const auto piece = std::span(buffer).first(static_cast<std::size_t>(std::min(end - begin, buffer_bytes)));
      read(begin, piece);
      add_contribution(begin, piece);
      begin += static_cast<Index>(piece.size());
    }
  };
  Index at = stretch_.lower;
  for (const auto& [begin, end] : covered_) {
    read_all(at, begin);
    at = end;
  }
  read_all(at, stretch_.upper);
  covered_ = {{stretch_.lower, stretch_.upper}};
  return checksum_;
}

}  // namespace tranship
