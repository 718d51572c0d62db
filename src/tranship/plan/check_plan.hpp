// Private: Checking a plan before it is run: nothing that passes reads or writes outside the local arrays of its rank.
//
// Plans made by the planners pass; what is checked here is what a plan file, or a plan put together by hand, could get
// wrong. What a peer does with its end is the peer's to check.
#pragma once

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Transfers that one group may stand for: more than any world has ranks.
inline constexpr Index transfers_per_group_max = Index(1) << 24;

/// Fails with `invalid_use`, saying what is wrong, where in the plan and with which numbers, unless
/// - slots, grids, dimensions, peers and element maps fit each other and the kind of the plan;
/// - every index lies within the slot's local extents on this rank's side; on both sides where the peer is this rank;
/// - no count of cells or bytes overflows;
/// - no cell of this rank is written twice by what it receives, unless received values are added up. This is exact for
///   all that planners make, and for other plans up to some millions of comparisons and some ten thousand stretches; a
///   plan that would need more is not checked further in this one respect.
/// Takes time in proportion to the runs and lattices of the plan, not to the cells.
Result<void> check_plan(const TransferPlan& plan);

}  // namespace tranship
