// Private: lowered moves as lists of BlockMove, which streams of devices take (memory/device/stream.hpp). A device runs
// the moves of a list in any order, so what depends on an order becomes several lists.
#pragma once

#include <span>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/kernels/block_move.hpp>
#include <tranship/lower/move_list.hpp>

namespace tranship {

/// Returns lists that make the routed moves, one list after the other. There is one list for moves in any order, or for
/// combinations one for each move and one more for each further element that is combined into the same one.
/// `base_of(side, slot)` numbers the slots. A stretch of a lattice becomes a move, and so do rows of an index list that
/// lie at equal distances.
std::vector<std::vector<BlockMove>> block_moves(std::span<const LoweredMove> moves, MoveOrder order,
                                                FunctionRef<unsigned(MoveSide, int)> base_of);

}  // namespace tranship
