#include <algorithm>
#include <iterator>

#include <tranship/base/error.hpp>
#include <tranship/fabric/range_allocator.hpp>

namespace tranship {

std::optional<std::size_t> RangeAllocator::allocate(std::size_t size_bytes, std::size_t alignment) {
  for (auto part = free_.begin(); part != free_.end(); ++part) {
    const auto [begin, length] = *part;
    const std::size_t offset = (begin + alignment - 1) / alignment * alignment;
    if (offset < begin || offset - begin > length || length - (offset - begin) < size_bytes) continue;
    used_[offset] = size_bytes;
    free_.erase(part);
    if (offset > begin) free_[begin] = offset - begin;
    if (const std::size_t end = offset + size_bytes; end < begin + length) free_[end] = begin + length - end;
    used_bytes_ += size_bytes;
    used_bytes_max_ = std::max(used_bytes_max_, used_bytes_);
    return offset;
  }
  return std::nullopt;
}

std::size_t RangeAllocator::release(std::size_t offset) {
  const auto used = used_.find(offset);
  TRANSHIP_ASSERT(used != used_.end());
  const std::size_t size_bytes = used->second;
  used_.erase(used);
  used_bytes_ -= size_bytes;

  auto part = free_.emplace(offset, size_bytes).first;
  if (const auto next = std::next(part); next != free_.end() && part->first + part->second == next->first) {
    part->second += next->second;
    free_.erase(next);
  }
  if (part != free_.begin()) {
    const auto before = std::prev(part);
    if (before->first + before->second == part->first) {
      before->second += part->second;
      free_.erase(part);
    }
  }
  return size_bytes;
}

std::optional<RangeAllocator::Found> RangeAllocator::find(std::size_t offset) const {
  auto used = used_.upper_bound(offset);
  if (used == used_.begin()) return std::nullopt;
  --used;
  if (offset - used->first >= used->second) return std::nullopt;
  return Found{used->first, used->second};
}

std::size_t RangeAllocator::largest_free_bytes() const {
  std::size_t largest = 0;
  for (const auto& [offset, size_bytes] : free_) largest = std::max(largest, size_bytes);
  return largest;
}

}  // namespace tranship
