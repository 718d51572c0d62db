// Private: the bytes of an array that a lowered move reads or writes, as stretches, for those who look at what is moved
// and do not move it.
#pragma once

#include <tranship/base/function_ref.hpp>
#include <tranship/lower/lowering.hpp>
#include <tranship/lower/move_list.hpp>

namespace tranship {

/// Calls `f(offset_bytes, size_bytes)` for stretches of the array on one side of a move that has been lowered and not
/// routed; offsets count from the first byte of its slot. Stretches that follow each other within a loop are one.
void for_each_stretch(const LoweredMove& move, MoveSide side, FunctionRef<void(Index, Index)> f);

}  // namespace tranship
