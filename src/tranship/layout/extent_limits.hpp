// Private: The limits of extents, checked before anything is computed from them, so that an error names what was given.
#pragma once

#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// Throws `invalid_use` for a negative extent, and `overflow` for one above extent_max and where the cells of all
/// dimensions together do not fit in 63 bits.
void check_extents(const Indices& extents);

/// Throws `overflow`, naming the type and the extents, where the bytes of such an array do not fit in 63 bits.
void check_bytes(ElementType type, const Indices& extents);

}  // namespace tranship
