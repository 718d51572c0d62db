// Private: The seam of all lock-free code. A protocol is a template on a `Sync`, so tests can explore its
// interleavings.
//
// RealSync is std::atomic and plain memory. ExploredSync of the tests runs the same protocol under a controlled
// scheduler and models what release and acquire guarantee. Payload goes through the seam too; otherwise a flag that is
// raised too early would not be found. The memory order is part of each name, so none is used by default.
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>

#if defined(__unix__)
#include <sched.h>
#endif

namespace tranship {

/// The operations of a protocol: 64-bit words shared by ranks, payload that the words guard, and a pause for spin
/// loops.
template <class S>
concept SyncSeam = requires(typename S::Word& word, typename S::template Payload<int>& payload, std::uint64_t value) {
  { word.load_acquire() } -> std::same_as<std::uint64_t>;
  { word.load_relaxed() } -> std::same_as<std::uint64_t>;
  word.store_release(value);
  word.store_relaxed(value);
  { word.compare_exchange(value, value) } -> std::same_as<bool>;
  { word.fetch_add(value) } -> std::same_as<std::uint64_t>;
  { payload.read() } -> std::same_as<int>;
  payload.write(0);
  S::pause();
};

struct RealSync {
  /// A word on its own cache line. It is lock-free, so it works in memory that processes share.
  class alignas(64) Word {
   public:
    std::uint64_t load_acquire() const noexcept { return value_.load(std::memory_order_acquire); }
    std::uint64_t load_relaxed() const noexcept { return value_.load(std::memory_order_relaxed); }
    void store_release(std::uint64_t value) noexcept { value_.store(value, std::memory_order_release); }
    void store_relaxed(std::uint64_t value) noexcept { value_.store(value, std::memory_order_relaxed); }
    /// Returns true on success; never fails spuriously. Acquires and releases on success, acquires on failure.
    bool compare_exchange(std::uint64_t expected, std::uint64_t desired) noexcept {
      return value_.compare_exchange_strong(expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
    }
    /// Returns the previous value. Acquires and releases.
    std::uint64_t fetch_add(std::uint64_t by) noexcept { return value_.fetch_add(by, std::memory_order_acq_rel); }

   private:
    std::atomic<std::uint64_t> value_ = 0;
    static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  };

  template <class T>
  class Payload {
   public:
    T read() const noexcept { return value_; }
    void write(T value) noexcept { value_ = value; }

   private:
    T value_{};
  };

  /// Tells the core that the caller spins.
  static void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }
  /// Lets another runnable thread have the core.
  static void yield() noexcept {
#if defined(__unix__)
    sched_yield();
#else
    pause();
#endif
  }
};
static_assert(SyncSeam<RealSync>);

}  // namespace tranship
