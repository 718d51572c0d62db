// Private: Redistribution from or to lists of ids, cell by cell. plan_redistribution uses it when a side is indexed.
#pragma once

#include <optional>
#include <vector>

#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// Returns the number of leading dimensions whose cells the lists count: all that one side indexes or does not store
/// whole. The trailing dimensions move along with each cell.
int dims_counted(const Distribution& source, const Distribution& target);

/// Returns the nearest of several owners; the reader's rank decides ties, so that they are spread evenly. Without a
/// distance, a rank is nearest to itself.
Rank nearest_owner(const std::vector<Rank>& owners, Rank reader, const std::optional<Distance>& distance);

/// Appends the moves that touch `plan.rank` from slot 0 to slot 1, at least one of which is indexed. Lists are in the
/// order of the target's local array. Time grows with the cells of the counted dimensions that the rank holds on either
/// side, and with the extents of these dimensions in a structured target.
void plan_indexed_redistribution(const Distribution& source, const Distribution& target,
                                 const RedistributionOptions& options, TransferPlan& plan);

}  // namespace tranship
