// Private: the scheduler of a replay: which worker acts next, and what its step waits for. Costs are those of cost.hpp.
#pragma once

#include <tranship/program/replay.hpp>

namespace tranship::replays {

/// Replays a program whose structure has been checked.
Replay schedule(const Program& program, const MachineModel& machine, const ReplayOptions& options);

}  // namespace tranship::replays
