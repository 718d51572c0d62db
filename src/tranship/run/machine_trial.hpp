// Private: What this machine takes for the steps of programs, measured with small programs through ProgramExecutor: the
// constants are those of the executor as it is, on inputs that each rank has just written.
#pragma once

#include <tranship/fabric/world.hpp>
#include <tranship/program/machine_model.hpp>

namespace tranship {

struct MachineTrial {
  Index input_bytes_max = 16 << 20;  ///< of each rank; larger messages are as fast as these
  int launches = 4;                  ///< of each program with the largest input; more of smaller ones
  int passes = 3;                    ///< over all of them, while cores are as near to each other as they ever are
};

/// About so much memory measure_machine() takes, of all ranks together.
Index measured_bytes(Rank ranks, const MachineTrial& trial = {});

/// Collective over at least 2 ranks, no more than there are cores. All ranks return the same.
MachineModel measure_machine(World& world, const MachineTrial& trial = {});

/// Collective over more ranks than there are cores: how long a core needs until it goes on with another rank, where the
/// rest of the model is known.
double measure_core_switch_ns(World& world, const MachineModel& machine, const MachineTrial& trial = {});

}  // namespace tranship
