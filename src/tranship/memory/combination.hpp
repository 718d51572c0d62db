// Combinations of partial values: sum, product, minimum, maximum, and the element that changes nothing.
#pragma once

#include <tranship/base/element_type.hpp>
#include <tranship/kernels/block.hpp>
#include <tranship/memory/buffer.hpp>

namespace tranship::detail {

/// Whether elements of a type can be combined so: complex numbers have no order.
bool can_combine(Combine combine, ElementType type);

/// Writes the element that changes nothing to `count` consecutive elements: 0, 1, the largest, the smallest (of floats
/// the infinities).
void write_identity(Combine combine, ElementType type, Index count, void* target);

/// target = combine(target, source) for `count` consecutive elements. Integers wrap; of bools the sum is "or" and the
/// product "and"; a minimum or maximum with a NaN is a NaN.
void combine_row(Combine combine, ElementType type, Index count, const void* source, void* target);

}  // namespace tranship::detail
