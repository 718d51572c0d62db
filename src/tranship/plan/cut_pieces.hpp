// Private: Cuts what a part wants along one dimension to an interval of cells.
#pragma once

#include <vector>

#include <tranship/plan/axis_match.hpp>

namespace tranship {

/// Returns what pieces have in the interval `cells`. Given pieces are cut to the source cells in the interval. Other
/// pieces are kept whole if the interval contains the edge cell that they copy, or beyond which they lie, in an array
/// of `extent` cells.
std::vector<AxisPiece> cut_pieces(const std::vector<AxisPiece>& pieces, Index extent, Interval cells);

}  // namespace tranship
