// Relabelling: which rank should hold which part of a target, so that the fewest cells move.
//
// Moving a distribution to other ranks changes nothing but names, so where the caller is free to choose them, the parts
// go to the ranks that already hold most of their cells. Solved exactly: it is an assignment problem.
#pragma once

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Parts that `relabel` takes: it costs memory and time by their square, and only at worst time by their cube.
inline constexpr Index relabel_parts_max = 8192;

struct Relabelled {
  Distribution target;           ///< the same parts on a permutation of the target grid's own ranks
  Index cells_moved = 0;         ///< cells that ranks receive from others when the source goes to `target`
  Index cells_moved_before = 0;  ///< likewise, to the target as it was given
};

/// The permutation of the target's ranks that moves the fewest cells, overlap included; of those the one that gives the
/// fewest parts to another rank. Cells are counted as plan_redistribution moves them: of a replicated source nothing
/// moves to a rank that holds a copy, and an interface between two parts comes from one of them. The ranks of the
/// source may be others in part or all; a rank that is not in the source receives all of its part. Local, and the same
/// on every rank that asks. Throws `mismatch` when the extents differ, `unsupported` above `relabel_parts_max` parts.
Relabelled relabel(const Distribution& source, const Distribution& target);

}  // namespace tranship
