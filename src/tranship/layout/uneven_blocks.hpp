// Private: Blocks whose first and last part have one size and all others another. Weather models cut the tiles of a
// cubed sphere like this when edges cost more (or less) than the interior. The bounds make an irregular partition.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Returns parts + 1 bounds of `extent` cells in which the edge parts are as near to `edge_interior_ratio` times the
/// interior parts as whole cells allow. The search is NDSL's: from the ideal edge size, rounded half to even, down to 1
/// and then up. (NDSL does not enlarge an ideal of one cell or less, and so misses some cuts.) Throws `invalid_use` for
/// an odd extent with an even number of parts, which has no symmetric cut, and when no cut exists. Time grows only with
/// `parts`.
std::vector<Index> uneven_block_bounds(Index extent, Index parts, double edge_interior_ratio);

}  // namespace tranship
