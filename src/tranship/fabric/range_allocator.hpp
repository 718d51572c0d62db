// RangeAllocator: which parts of a range are in use. It knows offsets only, no memory; the same calls in the same order
// give the same offsets, so ranks that make them alike need not tell each other.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace tranship {

class RangeAllocator {
 public:
  explicit RangeAllocator(std::size_t size_bytes) : size_bytes_(size_bytes) {
    if (size_bytes > 0) free_[0] = size_bytes;
  }

  /// The offset of `size_bytes` > 0, a multiple of `alignment`, which is a power of two; the lowest there is. None when
  /// no part that is free is large enough.
  std::optional<std::size_t> allocate(std::size_t size_bytes, std::size_t alignment);
  /// Of an offset that allocate has given. Returns its size.
  std::size_t release(std::size_t offset);

  /// The size of the allocation that the offset lies in and where it begins; none where nothing is allocated.
  struct Found {
    std::size_t offset = 0;
    std::size_t size_bytes = 0;
  };
  std::optional<Found> find(std::size_t offset) const;

  std::size_t size_bytes() const noexcept { return size_bytes_; }
  std::size_t used_bytes() const noexcept { return used_bytes_; }
  std::size_t used_bytes_max() const noexcept { return used_bytes_max_; }
  std::size_t largest_free_bytes() const;

 private:
  std::size_t size_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t used_bytes_max_ = 0;
  std::map<std::size_t, std::size_t> free_;  // offset to size; neighbours are one
  std::map<std::size_t, std::size_t> used_;
};

}  // namespace tranship
