// Private: Storage, a piece of a memory that holds a copy of a buffer.
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
#include <tranship/memory/state/cell_state.hpp>

namespace tranship::detail {

/// A piece of a memory that holds a copy. Several buffers hold it together after a duplicate, until one of them writes.
struct Storage {
  Pool* pool = nullptr;  ///< none: foreign memory
  PoolBlock block;
  void* data = nullptr;
  std::unique_ptr<Guard> guard;  ///< none: any code can touch it
  std::shared_ptr<void> owner;   ///< of what is not the pool's
  bool is_foreign = false;       ///< the program's own memory, which stays
  /// Another buffer has held it, too: its uses are unknown to the cells of this one.
  std::atomic<bool> was_shared = false;
  std::atomic<std::uint64_t> last_use = 0;  ///< by Residents::now()

  Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  ~Storage();
  /// Remembers a use for the next user of the memory, or the buffer that is left alone with it.
  void note(Event event);
  std::vector<Event> uses() const;
  /// Tells the driver of another memory, once, of the foreign bytes that it copies from or to.
  void register_with(MemoryId memory, Driver& driver, void* lowest, std::size_t bytes);

 private:
  mutable std::mutex mutex_;
  std::vector<Event> uses_;  // at most one for each stream
  MemorySet registered_;
  std::vector<std::shared_ptr<void>> registrations_;
};

}  // namespace tranship::detail
