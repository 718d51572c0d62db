// Private: The part of a plan that a rank does alone: zeros and replicated cells beyond the edges of the array.
#pragma once

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Appends the fills of one product of pieces, one list of pieces per dimension of the slot. A cell that is beyond a
/// zero edge in any dimension is zero; any other beyond a replicated edge copies the cell that lies at that edge.
void append_fills(int slot, const std::vector<std::vector<AxisPiece>>& pieces, std::vector<LocalFill>& fills);

}  // namespace tranship
