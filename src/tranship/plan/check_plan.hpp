// Private: Checks a plan before it runs. A plan that passes reads and writes only inside the local arrays of its rank.
//
// Plans of the planners always pass. The check is for plan files and hand-made plans. It does not check the peers'
// ends; each peer checks its own.
#pragma once

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Limit on the transfers of one group: more than any world has ranks.
inline constexpr Index transfers_per_group_max = Index(1) << 24;

/// Fails with `invalid_use`, naming the fault, its place in the plan and the numbers, unless
/// - slots, grids, dimensions, peers and element maps fit each other and the kind of the plan;
/// - every index lies within the slot's local extents on this rank's side; on both sides where the peer is this rank;
/// - no count of cells or bytes overflows;
/// - no cell of this rank is written twice by received values, unless the plan combines them. This is exact for plans
///   of the planners. For other plans it is exact up to some millions of comparisons and some ten thousand stretches; a
///   plan that needs more is not checked further in this respect.
/// Time grows with the runs and lattices of the plan, not with the cells.
Result<void> check_plan(const TransferPlan& plan);

}  // namespace tranship
