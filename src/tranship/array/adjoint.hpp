// Private: which arrays have an adjoint.
#pragma once

#include <tranship/array/array_plan.hpp>

namespace tranship {

/// Throws `invalid_use` for elements that have no addition: bools, and structs, which are moved as bytes.
void check_can_add(const NamedArray& array);

}  // namespace tranship
