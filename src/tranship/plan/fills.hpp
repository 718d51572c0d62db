// Private: The part of a plan that a rank does alone: zeros and replicated cells beyond the edges of the array.
#pragma once

#include <tranship/plan/axis_match.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Appends the fills of one product of pieces, one list of pieces per dimension of the slot. A cell that is beyond a
/// zero edge in any dimension is zero; any other beyond a replicated edge copies the cell that lies at that edge.
void append_fills(int slot, const std::vector<std::vector<AxisPiece>>& pieces, std::vector<LocalFill>& fills);

/// The fills that a plan makes after everything has arrived, cut by where their values come from.
struct FillsBySource {
  std::vector<LocalFill> of_kept;     ///< copies of cells that the plan leaves as they are
  std::vector<LocalFill> of_written;  ///< all others, in the order of the plan
};
/// Together they fill the same cells with the same values, if those of kept cells are filled first.
FillsBySource fills_by_source(const TransferPlan& plan);

}  // namespace tranship
