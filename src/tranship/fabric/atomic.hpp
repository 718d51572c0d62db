// Atomic operations on a word of 4 or 8 bytes that is reachable.
#pragma once

#include <tranship/kernels/word.hpp>

namespace tranship {

/// What the word held before; of `set`, `operand`. Acquire and release.
template <AtomicOp op, class Word>
inline Word apply_atomic(Word* word, Word operand, Word expected) noexcept {
  if constexpr (op == AtomicOp::set) {
    __atomic_store_n(word, operand, __ATOMIC_RELEASE);
    return operand;
  } else if constexpr (op == AtomicOp::fetch) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
  } else if constexpr (op == AtomicOp::swap) {
    return __atomic_exchange_n(word, operand, __ATOMIC_ACQ_REL);
  } else if constexpr (op == AtomicOp::compare_swap) {
    __atomic_compare_exchange_n(word, &expected, operand, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
    return expected;
  } else if constexpr (op == AtomicOp::add) {
    return __atomic_fetch_add(word, operand, __ATOMIC_ACQ_REL);
  } else if constexpr (op == AtomicOp::bit_and) {
    return __atomic_fetch_and(word, operand, __ATOMIC_ACQ_REL);
  } else if constexpr (op == AtomicOp::bit_or) {
    return __atomic_fetch_or(word, operand, __ATOMIC_ACQ_REL);
  } else {
    static_assert(op == AtomicOp::bit_xor);
    return __atomic_fetch_xor(word, operand, __ATOMIC_ACQ_REL);
  }
}

/// The same of a word of `width` bytes. What it held before goes to `before`, unless that is nullptr.
void apply_atomic(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before);

}  // namespace tranship
