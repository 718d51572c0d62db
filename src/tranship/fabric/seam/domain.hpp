// Private: Domain: the memory that a back-end gives to one rank: its symmetric heap and its local memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/fabric/seam/heap_place.hpp>

namespace tranship {

enum class MemoryContent : std::uint8_t;

class Domain {
 public:
  Domain() = default;
  virtual ~Domain() = default;
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  virtual HeapPlace heap() const = 0;
  /// Returns the memory that the ranks of this machine together can still obtain after `granted_bytes` have been
  /// granted to their heaps, as far as it is known; at most INT64_MAX.
  virtual Index available_bytes(Index granted_bytes) const = 0;
  /// Blocks of this size or more are sparse: the system grants their memory page by page on first touch, so a program
  /// may allocate more than the machine has and touch a part.
  static constexpr std::size_t sparse_bytes_min = std::size_t(256) << 20;
  /// Obtains the memory of a part of the heap, unless it is sparse. Fails with `no_memory`.
  virtual Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) = 0;
  virtual void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept = 0;
  /// Makes a part of the heap and the `size_bytes` bytes at `memory`, both in whole pages, one memory that holds the
  /// content of `memory`. Releasing the result separates them again and releases the part's `block`; if the system has
  /// no pages for `memory` at that time, they stay joined for ever. Fails with `invalid_use`, `no_memory` or
  /// `unsupported`.
  virtual Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                             std::size_t size_bytes, void* memory) = 0;
  /// Implements World::local_memory().
  virtual std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) = 0;
  /// Returns an owner that keeps the heaps mapped, even after this object is gone.
  virtual std::shared_ptr<void> lifetime() const = 0;
};

}  // namespace tranship
