// Private: RangeAllocator, which parts of a range are in use. It knows offsets only, no memory; the same calls in the
// same order give the same offsets, so ranks that make them alike need not tell each other. All calls take the
// logarithm of the number of parts.
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
  /// `first` is what lies at offset 0, modulo all alignments that will be asked for: an address, or 0.
  explicit RangeAllocator(std::size_t size_bytes, std::size_t first = 0) : first_(first), size_bytes_(size_bytes) {
    if (size_bytes > 0) add_free(0, size_bytes);
  }

  /// The offset of `size_bytes` > 0; with `first` it is a multiple of `alignment`, which is a power of two. It lies in
  /// the smallest free part that has room for it wherever it begins, or in one that is smaller; of equal ones in the
  /// lowest. None when no free part has room; that alone may take longer, where the alignment decides it.
  std::optional<std::size_t> allocate(std::size_t size_bytes, std::size_t alignment);
  /// Releases an offset that allocate has given. Returns its size.
  std::size_t release(std::size_t offset);

  /// Another end of the range, not before used_end().
  void resize(std::size_t size_bytes);

  std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// Behind this, nothing is in use.
  std::size_t used_end() const noexcept;
  std::size_t used_bytes() const noexcept { return used_bytes_; }
  std::size_t used_bytes_max() const noexcept { return used_bytes_max_; }
  std::size_t largest_free_bytes() const noexcept { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  using Part = std::pair<std::size_t, std::size_t>;  // size and offset

  void add_free(std::size_t offset, std::size_t size_bytes);
  void remove_free(std::map<std::size_t, std::size_t>::iterator part);
  /// The place in a free part; none where it has no room.
  std::optional<std::size_t> place_in(const Part& part, std::size_t size_bytes, std::size_t alignment) const;
  std::optional<Part> find(std::size_t size_bytes, std::size_t alignment) const;

  std::size_t first_;
  std::size_t size_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t used_bytes_max_ = 0;
  std::map<std::size_t, std::size_t> free_;  // offset to size; neighbours are one
  std::set<Part> by_size_;                   // the same
  std::unordered_map<std::size_t, std::size_t> used_;
};

}  // namespace tranship
