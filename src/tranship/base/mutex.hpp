// Private: Mutex, a std::mutex for critical sections shorter than a call into the C library. A thread that finds it
// taken sleeps until it is free (Drepper, "Futexes Are Tricky", its second mutex).
#pragma once

#include <atomic>

namespace tranship {

class Mutex {
 public:
  void lock() noexcept {
    if (try_lock()) return;
    while (state_.exchange(State::awaited, std::memory_order_acquire) != State::free)
      state_.wait(State::awaited, std::memory_order_relaxed);
  }
  bool try_lock() noexcept {
    State expected = State::free;
    return state_.compare_exchange_strong(expected, State::taken, std::memory_order_acquire, std::memory_order_relaxed);
  }
  /// The next owner may destroy the mutex at once: after the exchange, this only wakes a thread that sleeps on its
  /// address.
  void unlock() noexcept {
    if (state_.exchange(State::free, std::memory_order_release) == State::awaited) state_.notify_one();
  }

 private:
  enum class State : int { free, taken, awaited };
  std::atomic<State> state_ = State::free;
};

}  // namespace tranship
