// Private: Pool, memory of one device in size classes, reused as soon as, and not before, the work that uses it is
// over.
//
// A class is a quarter of a power of two wide, so at most a fifth of a block is wasted. A block that is freed keeps the
// events of its last users; its next user must wait for them, or gets another block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include <tranship/memory/device/driver.hpp>

namespace tranship {

struct PoolOptions {
  /// What allocate() refuses to go beyond, in blocks in use and kept together.
  std::int64_t limit_bytes = INT64_MAX;
  /// Blocks that are freed while more is kept go back to the driver, as soon as their users are over.
  std::int64_t kept_bytes_max = INT64_MAX;
  /// The timeout of all waits of one call for last users.
  std::int64_t wait_timeout_ns = 30'000'000'000;
};

struct PoolCounts {
  std::int64_t in_use_bytes = 0;  ///< of blocks that are allocated now, in whole classes
  std::int64_t in_use_bytes_max = 0;
  std::int64_t kept_bytes = 0;   ///< of free blocks that wait to be reused
  std::int64_t allocations = 0;  ///< calls that succeeded
  std::int64_t reuses = 0;       ///< of these, served by a kept block
  std::int64_t driver_allocations = 0;
  std::int64_t driver_frees = 0;
};

/// A piece of a pool. Plain: it does not free itself.
struct PoolBlock {
  void* memory = nullptr;
  std::size_t size_bytes = 0;  ///< asked for
  void* record = nullptr;      ///< the pool's own
};

/// Thread-safe.
class Pool {
 public:
  explicit Pool(Driver& driver, PoolOptions options = {});
  /// Waits for the last users of kept blocks and gives all memory back, but for what is still used when the timeout has
  /// passed. Blocks still in use are a fault of the caller's.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// 256-byte aligned; zero bytes are a block of the smallest class. What `stream` is given afterwards may use the
  /// block at once (null: the host may, when this returns). Reuses a kept block whose users are over; then asks the
  /// driver; then gives kept blocks of other classes back; then waits for kept blocks. A block whose
  /// users are over, for `stream`, is also one that only `stream` itself uses. Throws `no_memory` with the bytes asked
  /// for, in use, kept and allowed, and `timeout`.
  PoolBlock allocate(std::size_t size_bytes, Stream* stream = nullptr);
  /// Never allocates, never waits, never throws. Gives back what is kept beyond the bound and idle. `last_uses` are the
  /// points after which the block is not used; at most `last_uses_max` streams, and more are waited for; if in vain,
  /// the block is never used again. An empty block is nothing.
  void free(PoolBlock block, std::span<const Event> last_uses = {}) noexcept;
  static constexpr int last_uses_max = 4;

  /// Gives kept blocks whose users are over back to the driver, the largest first, until at most `keep_bytes` are kept.
  void trim(std::int64_t keep_bytes = 0) noexcept;
  /// Also gives back what is kept beyond it and idle.
  void limit(std::int64_t limit_bytes) noexcept;
  PoolCounts counts() const noexcept;
  Driver& driver() const noexcept;

  /// What a block of `size_bytes` takes.
  static std::size_t class_bytes(std::size_t size_bytes);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
