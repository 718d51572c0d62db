// Combinations of elements, in the terms of the kernels: which of them there are, and the element that changes nothing.
#pragma once

#include <tranship/base/combine.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/kernels/arithmetic.hpp>
#include <tranship/memory/region.hpp>
#include <tranship/memory/stream.hpp>

namespace tranship::detail {

/// Of a number; of a complex one, of its parts.
Arithmetic arithmetic_of(ElementType type);
Move move_of(Combine combine);

/// Whether elements of a type can be combined so: complex numbers have no order.
bool can_combine(Combine combine, ElementType type);

/// The element of a type that is not complex that changes nothing: 0, 1, the largest, the smallest (of floats the
/// infinities). 16 bytes of which the last may be zeros; they stay as long as the program runs.
const void* identity_of(Combine combine, ElementType type);

/// Writes the element that changes nothing to `count` consecutive elements.
void write_identity(Combine combine, ElementType type, Index count, void* target);

/// Gives a stream what writes it to a region of a view. Needs no kernels of the device.
void fill_identity(Combine combine, const StridedView& view, const Region& region, Stream& stream);

/// target = combine(target, source) for `count` consecutive elements, which must not overlap.
void combine_row(Combine combine, ElementType type, Index count, const void* source, void* target);
/// What Stream::combine does on the host.
void combine_block(Combine combine, ElementType type, const CopyBlock& block, const void* source, void* target);
/// Throws `invalid_use` where can_combine says no.
void check_combination(Combine combine, ElementType type);

}  // namespace tranship::detail
