#include "tranship/memory/buffer/storage.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace tranship::detail {

Storage::~Storage() {
  guard.reset();
  if (pool) {
    pool->free(block, uses_);
    return;
  }
  // The program may use the memory for something else from now on.
  try {
    for (const Event& event : uses_) settle(event, Deadline::after_ns(device_timeout_ns));
  } catch (const Error&) {
    // A stream that hangs keeps what it may use, for good.
    [[maybe_unused]] const auto* const kept = new (std::nothrow) std::pair(std::move(owner), std::move(registrations_));
  }
  registrations_.clear();  // must end before the memory does
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
