// Private: which arrays have an adjoint.
#pragma once

#include <tranship/array/array_plan.hpp>

namespace tranship {

/// Throws `invalid_use` for sums of bools, and for structs, which are moved as bytes.
void check_can_combine(const NamedArray& array, Combine combine);

}  // namespace tranship
