// Private: Checks the limits of extents before anything is computed from them, so that errors name the caller's
// numbers.
#pragma once

#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// Throws `invalid_use` for a negative extent; throws `overflow` for one above extent_max, and when the number of cells
/// does not fit in 63 bits.
void check_extents(const Indices& extents);

/// Throws `overflow`, naming the type and the extents, when the bytes of the array do not fit in 63 bits.
void check_bytes(ElementType type, const Indices& extents);

}  // namespace tranship
