// Private: Residents, who holds memory of a device and could do without it. When a memory is full, the copy that was
// used least recently and is clean goes.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include <tranship/base/device.hpp>

namespace tranship {

class Resident {
 public:
  /// When it last used its copy in a memory, by Residents::now(); 0 when it has none there that could go.
  virtual std::uint64_t last_use(MemoryId memory) noexcept = 0;
  /// Gives the copy back unless it is in use or holds the only value of something. Must not block.
  virtual bool try_release(MemoryId memory) noexcept = 0;

 protected:
  ~Resident() = default;
};

/// Thread-safe.
class Residents {
 public:
  void add(Resident& resident);
  /// After this it is not called.
  void remove(Resident& resident) noexcept;
  /// Makes one of them release its copy in a memory, the least recently used first. False when none can; `except` is
  /// not asked.
  bool release_one(MemoryId memory, const Resident* except = nullptr);

  /// A count that goes on with every use. Not exact between threads: it orders what is far apart.
  std::uint64_t now() noexcept;

 private:
  std::mutex mutex_;
  std::vector<Resident*> all_;
  std::uint64_t uses_ = 0;
};

}  // namespace tranship
