// Private: the check that the elements of an array can be combined, which every adjoint needs.
#pragma once

#include <tranship/array/array_plan.hpp>

namespace tranship {

/// Throws `invalid_use` for sums of bools, and for structs, because these are moved as bytes.
void check_can_combine(const NamedArray& array, Combine combine);

}  // namespace tranship
