// Private: Residents, the buffers that have copies on a device. When a memory is full, the least recently used copy
// that is clean is released. It also keeps memory of others that streams used when its buffer went.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <tranship/base/device.hpp>
#include <tranship/memory/device/stream.hpp>

namespace tranship {

class Resident {
 public:
  /// Residents::now() at the last use of its copy in a memory; 0 when it has none there that may go.
  virtual std::uint64_t last_use(MemoryId memory) noexcept = 0;
  /// Gives the copy back unless it is in use or holds the only value of a cell. Must not block.
  virtual bool try_release(MemoryId memory) noexcept = 0;

 protected:
  ~Resident() = default;
};

/// Objects that must live until no stream uses memory of others any more.
struct ForeignMemory {
  std::vector<Event> uses;
  std::shared_ptr<void> owner;
  std::vector<std::shared_ptr<void>> registrations;  ///< must end before the owner does
};

/// Thread-safe.
class Residents {
 public:
  void add(Resident& resident);
  /// No member of `resident` is called after this returns.
  void remove(Resident& resident) noexcept;
  /// Makes one resident release its copy in a memory, the least recently used first. Returns false when none can;
  /// `except` is not asked.
  bool release_one(MemoryId memory, const Resident* except = nullptr);

  /// Keeps the memory until its uses are at rest, or for good where a stream hangs.
  void keep(ForeignMemory memory);
  /// Releases kept memory whose uses are at rest.
  void release_kept() noexcept;

  /// A counter that advances with every use. Not exact between threads: it orders only uses that are far apart.
  std::uint64_t now() noexcept;

 private:
  std::mutex mutex_;
  std::vector<Resident*> all_;
  std::vector<ForeignMemory> kept_;
  std::uint64_t uses_ = 0;
};

}  // namespace tranship
