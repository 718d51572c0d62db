#include "tranship/memory/buffer/storage.hpp"

#include <algorithm>
#include <utility>

#include <tranship/memory/device/host_device.hpp>

namespace tranship::detail {

Storage::~Storage() {
  guard.reset();
  if (pool) pool->free(block, uses_);
  if (is_foreign && !settle_uses()) residents->keep({std::move(uses_), std::move(owner), std::move(registrations_)});
}

/// Waits until no stream uses the memory: from now on the program may use it for something else. Returns false where a
/// stream hangs, and where the calling thread must not wait.
bool Storage::settle_uses() noexcept {
  const Deadline deadline = Deadline::after_ns(device_timeout_ns);
  try {
    for (const Event& use : uses_) {
      if (is_at_rest(use)) continue;
      if (is_in_kernel) return false;
      settle(use, deadline);
    }
  } catch (const Error&) {
    return false;
  }
  return true;
}

void Storage::note(Event event) {
  if (is_over(event)) return;
  const std::lock_guard lock(mutex_);
  std::erase_if(uses_, is_over);
  const auto same =
      std::find_if(uses_.begin(), uses_.end(), [&](const Event& old) { return old.stream == event.stream; });
  if (same == uses_.end())
    uses_.push_back(event);
  else
    same->number = std::max(same->number, event.number);  // buffers that share the copy may report in any order
}

std::vector<Event> Storage::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void Storage::register_with(MemoryId memory, Driver& driver, void* lowest, std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  if (registered_.has(memory)) return;
  if (auto registration = driver.register_foreign(lowest, bytes)) registrations_.push_back(std::move(registration));
  registered_.add(memory);
}

}  // namespace tranship::detail
