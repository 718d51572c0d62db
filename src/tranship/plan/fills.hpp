// Private: The work of a plan that a rank does alone: zeros and replicated cells beyond the edges of the array.
#pragma once

#include <tranship/plan/axis_match.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Appends the fills of one product of pieces, one list of pieces per dimension of the slot. A cell beyond a zero edge
/// in any dimension becomes zero; any other cell beyond a replicated edge becomes a copy of the cell at that edge.
void append_fills(int slot, const std::vector<std::vector<AxisPiece>>& pieces, std::vector<LocalFill>& fills);

/// The fills that a plan makes after all data has arrived, separated by the source of their values.
struct FillsBySource {
  std::vector<LocalFill> of_kept;     ///< copies of cells that the plan does not change
  std::vector<LocalFill> of_written;  ///< all others, in the order of the plan
};
/// Separates the fills. Together they have the same effect as the plan's fills, if `of_kept` runs first.
FillsBySource fills_by_source(const TransferPlan& plan);

}  // namespace tranship
