// Private: layouts whose elements consist of several units. The inside of an element becomes one more dimension, the
// last and fastest, which is never cut.
#pragma once

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Returns the layout with that dimension; an element is `units` units. Strides and the offset of the memory then count
/// units. `align` is kept, so callers must refuse a value other than 1.
Distribution with_inner_dimension(const Distribution& distribution, Index units);

}  // namespace tranship
