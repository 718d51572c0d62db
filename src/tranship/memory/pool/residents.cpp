#include "tranship/memory/pool/residents.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <utility>

namespace tranship {

void Residents::add(Resident& resident) {
  release_kept();
  const std::lock_guard lock(mutex_);
  all_.push_back(&resident);
}

void Residents::remove(Resident& resident) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = std::find(all_.begin(), all_.end(), &resident);
  std::swap(*at, all_.back());
  all_.pop_back();
}

bool Residents::release_one(MemoryId memory, const Resident* except) {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::uint64_t, Resident*>> candidates;
  for (Resident* resident : all_)
    if (const std::uint64_t use = resident == except ? 0 : resident->last_use(memory))
      candidates.emplace_back(use, resident);
  std::sort(candidates.begin(), candidates.end());
  for (const auto& [use, resident] : candidates)
    if (resident->try_release(memory)) return true;
  return false;
}

void Residents::keep(ForeignMemory memory) {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(memory));
}

void Residents::release_kept() noexcept {
  std::vector<ForeignMemory> released;  // its owners are the program's
  const std::lock_guard lock(mutex_);
  const auto used = std::partition(kept_.begin(), kept_.end(), [](const ForeignMemory& one) {
    return !std::all_of(one.uses.begin(), one.uses.end(), [](const Event& use) { return is_at_rest(use); });
  });
  std::move(used, kept_.end(), std::back_inserter(released));
  kept_.erase(used, kept_.end());
}

std::uint64_t Residents::now() noexcept {
  std::atomic_ref<std::uint64_t> uses(uses_);
  const std::uint64_t next = uses.load(std::memory_order_relaxed) + 1;
  uses.store(next, std::memory_order_relaxed);
  return next;
}

}  // namespace tranship
