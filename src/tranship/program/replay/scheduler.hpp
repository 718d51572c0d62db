// Private: the scheduler of a replay decides which worker acts next, and when its step can run. cost.hpp has the costs.
#pragma once

#include <tranship/program/replay.hpp>

namespace tranship::replays {

/// Replays a program whose structure has been checked.
Replay schedule(const Program& program, const MachineModel& machine, const ReplayOptions& options);

}  // namespace tranship::replays
