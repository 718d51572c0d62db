// Private: how a process ends when a rank has ended all of them (World::global_exit).
#pragma once

#include <tranship/fabric/seam/board.hpp>

namespace tranship {

/// Ends this process with the status of the board, which has one: what the streams of stdio hold is written, and
/// nothing that lives in the program is destroyed, since other threads may use it. Ranks of other machines learn the
/// status from each rank that ends so, before they find that it is gone.
[[noreturn]] void end_process(const Board& board) noexcept;

/// Where a rank finds that others have failed: that may be because they have ended all ranks.
inline void end_with_all(const Board& board) noexcept {
  if (board.exit_status()) end_process(board);
}

}  // namespace tranship
