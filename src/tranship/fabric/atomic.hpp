// Detail: Atomic operations on a reachable word of 4 or 8 bytes; kernels/word.hpp has those that are known by type.
#pragma once

#include <tranship/kernels/word.hpp>

namespace tranship {

/// On a word of `width` bytes, for operations that are not known before they come. What it held before goes to
/// `before`, unless that is nullptr; of `set`, nothing of use.
void apply_atomic(void* at, int width, AtomicOp op, const void* operand, const void* expected, void* before);

}  // namespace tranship
