// Private: how a process ends when a rank has ended all of them (World::global_exit).
#pragma once

#include <tranship/fabric/seam/board.hpp>

namespace tranship {

/// Ends this process as soon as any rank has asked for it: what the streams of stdio hold is written, and nothing that
/// lives in the program is destroyed, since other threads may use it.
[[noreturn]] void end_process(int status) noexcept;

/// Where a rank finds that others have failed: that may be because they have ended all ranks.
inline void end_with_all(const Board& board) noexcept {
  if (const std::optional<int> status = board.exit_status()) end_process(*status);
}

}  // namespace tranship
