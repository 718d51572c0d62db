// Private: Redistribution from or to lists of ids, cell by cell: the part of plan_redistribution where no family helps.
#pragma once

#include <optional>
#include <vector>

#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// The number of leading dimensions that the lists of such a plan count through, in the local arrays of both sides: all
/// that one side indexes or does not store whole. The dimensions behind them go along with each cell.
int dims_counted(const Distribution& source, const Distribution& target);

/// The nearest of several owners; ties are shared out by the reader's rank. Without a distance a rank is nearest to
/// itself.
Rank nearest_owner(const std::vector<Rank>& owners, Rank reader, const std::optional<Distance>& distance);

/// Appends the moves that touch `plan.rank`, slot 0 to slot 1, at least one of them indexed. Lists are in the order of
/// the target's local array. Costs time in proportion to the cells of the dimensions counted that the rank holds on
/// either side, and to these extents of a structured target.
void plan_indexed_redistribution(const Distribution& source, const Distribution& target,
                                 const RedistributionOptions& options, TransferPlan& plan);

}  // namespace tranship
