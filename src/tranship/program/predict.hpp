// Private: predicts how long a program takes on a machine model, and why: its critical path is the chain of steps that
// each waited for the one before.
#pragma once

#include <string>
#include <vector>

#include <tranship/program/replay.hpp>

namespace tranship {

/// Consecutive steps of one block on the critical path.
struct PathStretch {
  Rank rank = 0;
  std::int32_t block = -1;           ///< -1: the beginning or the end of a launch
  std::int32_t first = 0, last = 0;  ///< index in the block
  std::string words;                 ///< words of the steps in plan files, "put signal"
  Index executions = 0;              ///< executed steps; steps of loops count each time
  double begin_ns = 0, end_ns = 0;   ///< it begins when what it waited for ended
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;
};

struct Prediction {
  Index input_bytes = 0;
  double duration_ns = 0;  ///< time of the slowest rank, from its own beginning
  /// The parts of the critical path, which starts when its first rank does: fixed costs, moving bytes, and waiting for
  /// links and cores that others use.
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;
  std::vector<PathStretch> path;
  Index executions = 0;  ///< executed steps, on all ranks
};

/// `input_bytes` is the size of each rank's input. Throws what replay() throws, and `invalid_use` for a program that
/// does not end.
Prediction predict(const Program& program, const MachineModel& machine, Index input_bytes);

}  // namespace tranship
