// Private: layouts of elements that are several of their type each. The inside of an element is one more dimension, the
// last and fastest, which is never cut.
#pragma once

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// The layout with that dimension; an element is `units` units. Strides and the offset of its memory then count units;
/// `align` stays what it is, and is to be refused where it is not 1.
Distribution with_inner_dimension(const Distribution& distribution, Index units);

}  // namespace tranship
