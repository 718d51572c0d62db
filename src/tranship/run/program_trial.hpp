// Private: tries a program: fills inputs, times launches, and compares outputs with what the collective promises,
// computed element by element from its definition.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/run/program_executor.hpp>

namespace tranship {

struct ProgramTrial {
  ProgramOptions program;
  Index elements = 0;  ///< as in ProgramExecutor
  int launches = 1;
};

struct ProgramTrialResult {
  std::vector<std::int64_t> launches_ns;  ///< each is the longest of all ranks
  Index compared = 0;                     ///< elements, of all launches, on this rank
  Index output_elements = 0;
  Index steps = 0;  ///< of this rank
};

/// Collective. Throws `internal` for the first element that is not as promised, with both values.
ProgramTrialResult try_program(World& world, const Program& program, const ProgramTrial& trial);

}  // namespace tranship
