// Private: a program tried out: inputs that are filled, launches that are timed, outputs that are compared with what
// the collective promises, computed element by element from its words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/run/program_executor.hpp>

namespace tranship {

struct ProgramTrial {
  ProgramOptions program;
  Index elements = 0;  ///< as ProgramExecutor takes them
  int launches = 1;
};

struct ProgramTrialResult {
  std::vector<std::int64_t> launches_ns;  ///< each the longest of all ranks
  Index compared = 0;                     ///< elements, of all launches, on this rank
  Index output_elements = 0;
  Index steps = 0;  ///< of this rank
};

/// Collective. Throws Error(internal) for the first element that is not as promised, with both values.
ProgramTrialResult try_program(World& world, const Program& program, const ProgramTrial& trial);

}  // namespace tranship
