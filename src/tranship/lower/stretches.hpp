// Private: lists the bytes of an array that a lowered move reads or writes, as stretches, for code that inspects moves.
#pragma once

#include <tranship/base/function_ref.hpp>
#include <tranship/lower/lowering.hpp>
#include <tranship/lower/move_list.hpp>

namespace tranship {

/// Calls `f(offset_bytes, size_bytes)` for the stretches of the array on one side of a move that has been lowered but
/// not routed. Offsets count from the first byte of the slot. Consecutive stretches within a loop are joined.
void for_each_stretch(const LoweredMove& move, MoveSide side, FunctionRef<void(Index, Index)> f);

}  // namespace tranship
