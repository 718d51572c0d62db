// Private: translates the element types and combinations of the upper layers for the kernels.
#pragma once

#include <cstddef>
#include <span>

#include <tranship/base/combine.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/kernels/arithmetic.hpp>

namespace tranship::detail {

/// Returns the arithmetic of a number; for a complex number, the arithmetic of its parts.
Arithmetic arithmetic_of(ElementType type);

/// Returns true if elements of a type can be combined this way. Complex numbers have no order.
bool can_combine(Combine combine, ElementType type);

/// Returns the identity of a combination for a type that is not complex: 0, 1, the largest or the smallest value
/// (infinities for floats). It points to 16 static bytes, of which the last may be zeros.
const void* identity_of(Combine combine, ElementType type);
/// Returns all identities, one after the other.
std::span<const std::byte> identities();

}  // namespace tranship::detail
