// Private: Mutex, what std::mutex is, for sections that take less time than a call into the C library. A thread that
// finds it taken sleeps until it is free, as there (Drepper, "Futexes Are Tricky", its second mutex).
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
  /// The next owner may destroy it at once: all that is done after the exchange is to wake who sleeps at its address.
  void unlock() noexcept {
    if (state_.exchange(State::free, std::memory_order_release) == State::awaited) state_.notify_one();
  }

 private:
  enum class State : int { free, taken, awaited };
  std::atomic<State> state_ = State::free;
};

}  // namespace tranship
