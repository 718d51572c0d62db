#include "tranship/fabric/heap/range_allocator.hpp"

#include <algorithm>
#include <iterator>

#include <tranship/base/error.hpp>
#include <tranship/base/pages.hpp>

namespace tranship {

void RangeAllocator::add_free(std::size_t offset, std::size_t size_bytes) {
  free_.emplace(offset, size_bytes);
  by_size_.emplace(size_bytes, offset);
}
void RangeAllocator::remove_free(std::map<std::size_t, std::size_t>::iterator part) {
  by_size_.erase({part->second, part->first});
  free_.erase(part);
}

std::optional<std::size_t> RangeAllocator::place_in(const Part& part, std::size_t size_bytes,
                                                    std::size_t alignment) const {
  const auto [length, begin] = part;
  const std::size_t offset = begin + (-(first_ + begin) & (alignment - 1));
  if (offset < begin || offset - begin > length || length - (offset - begin) < size_bytes) return std::nullopt;
  return offset;
}

std::optional<RangeAllocator::Part> RangeAllocator::find(std::size_t size_bytes, std::size_t alignment) const {
  const auto has_room = [&](const Part& part) { return place_in(part, size_bytes, alignment).has_value(); };
  // A part of this size has room at any alignment. Shorter parts have room only if they begin at a suitable offset: a
  // few of them are tried first, the rest only when no longer part has room.
  const auto shortest = by_size_.lower_bound({size_bytes, 0});
  const auto sure = by_size_.lower_bound({size_bytes + std::min(alignment - 1, size_bytes_ - size_bytes), 0});
  constexpr int tries = 8;
  auto part = shortest;
  for (int i = 0; i < tries && part != by_size_.end(); ++i, ++part)
    if (has_room(*part)) return *part;
  const auto roomy = std::find_if(sure, by_size_.end(), has_room);  // the first one, except at the end of the range
  if (roomy != by_size_.end()) return *roomy;
  part = std::find_if(part, by_size_.end(), has_room);
  return part == by_size_.end() ? std::nullopt : std::optional(*part);
}

std::optional<std::size_t> RangeAllocator::allocate(std::size_t size_bytes, std::size_t alignment) {
  if (size_bytes > size_bytes_) return std::nullopt;
  const std::optional<Part> part = find(size_bytes, alignment);
  if (!part) return std::nullopt;
  const auto [length, begin] = *part;
  const std::size_t offset = *place_in(*part, size_bytes, alignment), end = offset + size_bytes;
  remove_free(free_.find(begin));
  if (offset > begin) add_free(begin, offset - begin);
  if (end < begin + length) add_free(end, begin + length - end);
  used_[offset] = size_bytes;
  used_bytes_ += size_bytes;
  used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
  return offset;
}

std::size_t RangeAllocator::release(std::size_t offset) {
  const auto used = used_.find(offset);
  TRANSHIP_ASSERT(used != used_.end());
  const std::size_t size_bytes = used->second;
  used_.erase(used);
  used_bytes_ -= size_bytes;

  std::size_t begin = offset, end = offset + size_bytes;
  if (const auto next = free_.find(end); next != free_.end()) {
    end += next->second;
    remove_free(next);
  }
  if (const auto after = free_.lower_bound(begin); after != free_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == begin) {
      begin = before->first;
      remove_free(before);
    }
  }
  add_free(begin, end - begin);
  return size_bytes;
}

void RangeAllocator::resize(std::size_t size_bytes) {
  const std::size_t begin = used_end();
  TRANSHIP_ASSERT(size_bytes >= begin);
  if (begin < size_bytes_) remove_free(free_.find(begin));
  if (begin < size_bytes) add_free(begin, size_bytes - begin);
  size_bytes_ = size_bytes;
}

std::size_t RangeAllocator::used_end() const noexcept {
  if (free_.empty()) return size_bytes_;
  const auto& [offset, length] = *free_.rbegin();
  return offset + length == size_bytes_ ? offset : size_bytes_;
}

}  // namespace tranship
