// Private: Pool allocates memory of one device in size classes. A freed block is reused once the work that uses it has
// completed, and never before.
//
// Classes are a quarter of a power of two apart, so a block wastes at most a fifth. A freed block keeps the events of
// its last users; its next user waits for them or gets another block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tranship/memory/device/driver.hpp>

namespace tranship {

struct PoolOptions {
  /// Limit of blocks in use and kept blocks together.
  std::int64_t limit_bytes = INT64_MAX;
  /// When more than this is kept, freed blocks go back to the driver once their users have finished.
  std::int64_t kept_bytes_max = INT64_MAX;
  /// Timeout for all waits of one call together.
  std::int64_t wait_timeout_ns = 30'000'000'000;
};

struct PoolCounts {
  std::int64_t in_use_bytes = 0;  ///< allocated blocks, in whole classes
  std::int64_t in_use_bytes_max = 0;
  std::int64_t kept_bytes = 0;   ///< free blocks that can be reused
  std::int64_t allocations = 0;  ///< successful calls
  std::int64_t reuses = 0;       ///< those that a kept block served
  std::int64_t driver_allocations = 0;
  std::int64_t driver_frees = 0;
};

/// An allocated block. It does not free itself.
struct PoolBlock {
  void* memory = nullptr;
  std::size_t size_bytes = 0;  ///< as requested
  void* record = nullptr;      ///< private to the pool
};

/// Thread-safe.
class Pool {
 public:
  explicit Pool(Driver& driver, PoolOptions options = {});
  /// Waits for the last users of kept blocks and returns all memory to the driver, except blocks that are still used
  /// after the timeout. All allocated blocks must have been freed.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// Returns a 256-byte aligned block; zero bytes give a block of the smallest class. Work that is enqueued on `stream`
  /// afterwards may use it at once (null: the host may, when this returns). Tries in order: a kept block whose users
  /// have finished, or which only `stream` itself uses; the driver; the driver after kept blocks of other classes went
  /// back; a kept block that is still used, after a wait. Throws `no_memory`, with the bytes requested, in use, kept
  /// and allowed, and `timeout`.
  PoolBlock allocate(std::size_t size_bytes, Stream* stream = nullptr);
  /// Frees a block. `last_uses` are the points after which it is unused, of at most `last_uses_max` streams; further
  /// ones are waited for here, and when that fails, the block is never used again. Returns idle blocks beyond
  /// kept_bytes_max to the driver. Allocates nothing and never throws. An empty block is ignored.
  void free(PoolBlock block, std::span<const Event> last_uses = {}) noexcept;
  static constexpr int last_uses_max = 4;

  /// Returns idle kept blocks to the driver, largest first, until at most `keep_bytes` are kept.
  void trim(std::int64_t keep_bytes = 0) noexcept;
  /// Sets the limit and returns idle blocks beyond it to the driver.
  void limit(std::int64_t limit_bytes) noexcept;
  PoolCounts counts() const noexcept;
  Driver& driver() const noexcept;

  /// The size of a block that holds `size_bytes`.
  static std::size_t class_bytes(std::size_t size_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
