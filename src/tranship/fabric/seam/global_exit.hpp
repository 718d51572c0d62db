// Private: The end of a process after a rank has ended all ranks (World::global_exit).
#pragma once

#include <tranship/fabric/seam/board.hpp>

namespace tranship {

/// Ends this process with the status on the board, which must have one. Flushes the streams of stdio and destroys no
/// object, since other threads may use it. Each rank that ends so tells the status to other machines before they find
/// that it is gone.
[[noreturn]] void end_process(const Board& board) noexcept;

/// Called when other ranks have failed: the reason may be that one of them has ended all ranks.
inline void end_with_all(const Board& board) noexcept {
  if (board.exit_status()) end_process(board);
}

}  // namespace tranship
