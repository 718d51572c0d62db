// Private: Domain, the memory that a back-end gives to one rank: its symmetric heap, and its local memory.
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
  /// What the ranks of this machine together can still obtain, when they have been granted so many bytes for their
  /// heaps, as far as is known; never more than INT64_MAX.
  virtual Index available_bytes(Index granted_bytes) const = 0;
  /// The memory of blocks of this size and more is granted page by page, when it is touched: a program may ask for
  /// more of it than the machine has, and touch a part.
  static constexpr std::size_t sparse_bytes_min = std::size_t(256) << 20;
  /// Obtains the memory of a part of the heap, where it is not sparse; fails with `no_memory`.
  virtual Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes) = 0;
  virtual void give_back(std::size_t offset_bytes, std::size_t size_bytes) noexcept = 0;
  /// Makes a part of the heap and as many bytes at `memory`, both of whole pages, one memory that holds what `memory`
  /// holds. They part when what is returned goes, and with them the part's `block`, which it keeps; where the system
  /// has no pages for `memory` then, never. Fails with `invalid_use`, `no_memory` or `unsupported`.
  virtual Result<std::shared_ptr<void>> join(std::shared_ptr<void> block, std::size_t offset_bytes,
                                             std::size_t size_bytes, void* memory) = 0;
  /// What World::local_memory says.
  virtual std::shared_ptr<void> local_memory(std::size_t size_bytes, MemoryContent content) = 0;
  /// Keeps the heaps mapped for as long as it is held, even after this object is gone.
  virtual std::shared_ptr<void> lifetime() const = 0;
};

}  // namespace tranship
