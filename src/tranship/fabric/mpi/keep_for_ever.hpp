// Private: memory that MPI may still read or write when its owner goes stays for ever, where checkers of leaks find it.
#pragma once

#include <atomic>
#include <new>
#include <utility>

namespace tranship {

template <class Memory>
void keep_for_ever(Memory memory) noexcept {
  struct Kept {
    Memory memory;
    const Kept* before = nullptr;
  };
  static std::atomic<const Kept*> last = nullptr;
  if (auto* const kept = new (std::nothrow) Kept{.memory = std::move(memory)}) kept->before = last.exchange(kept);
}

}  // namespace tranship
