// Private: how elements and combinations of the upper layers are called by the kernels.
#pragma once

#include <cstddef>
#include <span>

#include <tranship/base/combine.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/kernels/arithmetic.hpp>

namespace tranship::detail {

/// The arithmetic of a number; for a complex number, that of its parts.
Arithmetic arithmetic_of(ElementType type);

/// Whether elements of a type can be combined so: complex numbers have no order.
bool can_combine(Combine combine, ElementType type);

/// The element of a type that is not complex that changes nothing: 0, 1, the largest, the smallest (of floats the
/// infinities). 16 bytes of which the last may be zeros; they stay as long as the program runs.
const void* identity_of(Combine combine, ElementType type);
/// All of them, one after the other.
std::span<const std::byte> identities();

}  // namespace tranship::detail
