// Runs small programs under every schedule, on numbers: what the verifier says is compared with what can happen.
//
// The machine, which only follows what the documents of programs say (steps.def, verify.hpp):
// - A thread block has threads. Each takes some units of a step, packets by their number, plain data by another rule at
//   each step, and goes on to the next step by itself. At a nop or a barrier all threads meet. Signals and waits are
//   done by threads of their own.
// - Memory is weak: each place has a history of writes, and a thread may read any write that is not older than the ones
//   that it has seen. A signal makes seen what its block had seen when it last met; a relaxed signal only what its rank
//   had seen when the launch began. It does say what has been executed, which is seen after the launch.
// - A port channel is one more thread, which does what it was asked to in that order.
// - The host of a rank reads the output when all of that has ended, and writes the next input. As MSCCL++ launches,
// that
//   is when its blocks have ended: port channels go on, a flush does nothing, and no fence makes seen what others did.
//
// Schedules that differ only in the order of steps that do not touch each other are run once (stubborn sets).
#pragma once

#include <string>

#include <tranship/program/program.hpp>

namespace tranship::test {

enum class BetweenLaunches { nothing, all_ranks_meet, as_mscclpp };

struct ProgramExploreOptions {
  int launches = 3;
  Index units = 3;           ///< of a chunk
  Index iterations = 2;      ///< of a loop
  Index states_max = 4'000;  ///< at which schedules part
  BetweenLaunches between = BetweenLaunches::nothing;
};

struct ProgramExploration {
  enum class Outcome {
    right,        ///< every schedule ends, with what the collective promises, or else always with the same
    wrong,        ///< `text` says how
    undecided,    ///< too many schedules
    unsupported,  ///< what the machine has no rule for
  };
  Outcome outcome = Outcome::right;
  std::string text;
  Index states = 0;
};

ProgramExploration explore(const Program& program, const ProgramExploreOptions& options = {});

}  // namespace tranship::test
