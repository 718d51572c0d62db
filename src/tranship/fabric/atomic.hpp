// Detail: How the calls of a Context act on memory: the words that tell them apart, atomic operations on a reachable
// word of 4 or 8 bytes, and fences. kernels/word.hpp has the operations that are known by type.
#pragma once

#include <atomic>
#include <cstdint>

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// Whether a call returns when its buffers may be used again, or only a quiet says so.
enum class Completion : std::uint8_t { blocking, nonblocking };
/// What an atomic takes its word for. Atomics of one word that differ in it are not atomic with each other.
enum class WordKind : std::uint8_t { integer, floating };
/// What a rank does to memory of its own.
enum class Touch : std::uint8_t { loads, stores, frees };

/// On a word of `width` bytes, for operations that are not known before they come. What it held before goes to
/// `before`, unless that is nullptr; of `set`, nothing of use.
void apply_atomic(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before);

// Between plain stores and loads, where there is no word to be released or acquired.

/// Stores before it are seen before stores after it.
inline void release_fence() noexcept {
#if !defined(TRANSHIP_TSAN)  // which knows no fences
  std::atomic_thread_fence(std::memory_order_release);
#endif
}
/// Stores before it are seen by all before any load or store after it is made.
inline void full_fence() noexcept {
#if defined(TRANSHIP_TSAN)
  static std::atomic<int> all = 0;
  all.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace tranship
