// Relabelling: decides which rank holds which part of a target, so that the fewest cells move.
//
// A caller that may choose the ranks of a distribution gives the parts to the ranks that already hold most of their
// cells. The choice is an assignment problem, solved exactly.
#pragma once

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Limit on the parts. Memory and time grow with their square, and time at worst with their cube.
inline constexpr Index relabel_parts_max = 8192;

struct Relabelled {
  Distribution target;           ///< the same parts on a permutation of the target grid's own ranks
  Index cells_moved = 0;         ///< cells that ranks receive from other ranks when the source goes to `target`
  Index cells_moved_before = 0;  ///< the same for the target as it was passed
};

/// Returns the permutation of the target's ranks that moves the fewest cells, overlap included, and among those the one
/// that gives the fewest parts to another rank. Cells are counted as plan_redistribution moves them: from a replicated
/// source nothing moves to a rank that holds a copy, and an interface between two parts comes from one of them. The
/// source may have other ranks; a rank that is not in the source receives all of its part. Local, with the same result
/// on every rank. Throws `mismatch` when the extents differ, and `unsupported` above `relabel_parts_max` parts.
Relabelled relabel(const Distribution& source, const Distribution& target);

}  // namespace tranship
