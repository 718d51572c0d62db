// Private: Cutting what a part wants along one dimension to an interval of cells.
#pragma once

#include <vector>

#include <tranship/plan/axis_match.hpp>

namespace tranship {

/// What pieces have of an interval of cells: of the source's where they are given, else of the cells at the edge of an
/// array of `extent` cells, of which they are copies, or beyond which they lie.
std::vector<AxisPiece> cut_pieces(const std::vector<AxisPiece>& pieces, Index extent, Interval cells);

}  // namespace tranship
