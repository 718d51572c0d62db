// Private: RangeAllocator: records which parts of a range of offsets are in use. It touches no memory. The same calls
// in the same order give the same offsets, so ranks that make the same calls need not communicate. Every call takes
// time logarithmic in the number of parts.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace tranship {

class RangeAllocator {
 public:
  /// `first` is the address of offset 0, from which alignments count. Ranks may pass different addresses if these are
  /// equal modulo all alignments in use.
  explicit RangeAllocator(std::size_t size_bytes, std::size_t first = 0) : first_(first), size_bytes_(size_bytes) {
    if (size_bytes > 0) add_free(0, size_bytes);
  }

  /// Returns the offset of `size_bytes` > 0 such that `first` plus the offset is a multiple of `alignment`, a power of
  /// two. It lies in the smallest free part that has room at any alignment, or in a smaller one that has room; of equal
  /// parts in the lowest. Returns nothing if no free part has room; if only the alignment prevents it, this may take
  /// longer.
  std::optional<std::size_t> allocate(std::size_t size_bytes, std::size_t alignment);
  /// Releases an offset that allocate() returned. Returns its size.
  std::size_t release(std::size_t offset);

  /// Moves the end of the range, which must not be below used_end().
  void resize(std::size_t size_bytes);

  std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// Returns the end of the last part in use.
  std::size_t used_end() const noexcept;
  std::size_t used_bytes() const noexcept { return used_bytes_; }
  std::size_t used_bytes_max() const noexcept { return used_bytes_max_; }
  std::size_t largest_free_bytes() const noexcept { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  using Part = std::pair<std::size_t, std::size_t>;  // size and offset

  void add_free(std::size_t offset, std::size_t size_bytes);
  void remove_free(std::map<std::size_t, std::size_t>::iterator part);
  /// Returns the offset within a free part, or nothing if it has no room.
  std::optional<std::size_t> place_in(const Part& part, std::size_t size_bytes, std::size_t alignment) const;
  std::optional<Part> find(std::size_t size_bytes, std::size_t alignment) const;

  std::size_t first_;
  std::size_t size_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t used_bytes_max_ = 0;
  std::map<std::size_t, std::size_t> free_;  // offset to size; adjacent parts are merged
  std::set<Part> by_size_;                   // the parts of free_, sorted by size
  std::unordered_map<std::size_t, std::size_t> used_;
};

}  // namespace tranship
