// Private: Storage, the memory of one copy of a buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tranship/memory/checks/guard.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/pool/pool.hpp>
#include <tranship/memory/pool/residents.hpp>
#include <tranship/memory/state/cell_state.hpp>

namespace tranship::detail {

/// How long the host waits for a device before it throws `timeout`.
inline constexpr std::int64_t device_timeout_ns = 60'000'000'000;

/// The memory of one copy. After a duplicate several buffers share it until one of them writes.
struct Storage {
  Pool* pool = nullptr;  ///< null: foreign memory, or an array that the device made
  PoolBlock block;
  void* data = nullptr;
  std::unique_ptr<Guard> guard;    ///< null: not guarded
  std::shared_ptr<void> owner;     ///< keeps memory alive that does not come from the pool
  bool is_foreign = false;         ///< the program's own memory, which is never evicted
  Residents* residents = nullptr;  ///< keep foreign memory that cannot be waited for
  /// Another buffer has shared this storage, so the cell states of one buffer do not know all uses.
  std::atomic<bool> was_shared = false;
  std::atomic<std::uint64_t> last_use = 0;  ///< Residents::now() at the last use

  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  /// Waits for the streams that use foreign memory, except in a kernel.
  ~Storage();
  /// Records a use, for the next user of the memory and for the buffer that remains its only holder.
  void note(Event event);
  std::vector<Event> uses() const;
  /// Registers the foreign bytes with the driver of another memory, at the first call for each memory.
  void register_with(MemoryId memory, Driver& driver, void* lowest, std::size_t bytes);

 private:
  bool settle_uses() noexcept;

  mutable std::mutex mutex_;
  std::vector<Event> uses_;  // at most one event for each stream
  MemorySet registered_;
  std::vector<std::shared_ptr<void>> registrations_;
};

}  // namespace tranship::detail
