// Detail: How the calls of a Context act on memory: the enumerations that tell them apart, atomic operations on a
// reachable word of 4 or 8 bytes, and fences. kernels/word.hpp has the operations whose type is known at compile time.
#pragma once

#include <atomic>
#include <cstdint>

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// When a call may return: once its buffers may be reused, or earlier, in which case only a quiet says when.
enum class Completion : std::uint8_t { blocking, nonblocking };
/// Interpretation of an atomic's word. Atomics of one word are atomic with each other only if they agree in it.
enum class WordKind : std::uint8_t { integer, floating };
/// Access of a rank to its own memory.
enum class Touch : std::uint8_t { loads, stores, frees };

/// Applies an operation that is known at run time to a word of `width` bytes. Stores the previous value in `before`
/// unless that is nullptr; after `set` the stored value is meaningless.
void apply_atomic(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before);

// Fences between plain loads and stores, for code that has no word to release or acquire.

/// Makes earlier stores visible before later stores.
inline void release_fence() noexcept {
#if !defined(TRANSHIP_TSAN)  // ThreadSanitizer does not model fences
  std::atomic_thread_fence(std::memory_order_release);
#endif
}
/// Makes earlier stores visible to all before any later load or store.
inline void full_fence() noexcept {
#if defined(TRANSHIP_TSAN)
  static std::atomic<int> all = 0;
  all.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

}  // namespace tranship
