// Private: The program that an argument names: a plan file, or a built-in algorithm for a number of ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tranship/cli/command_line.hpp>
#include <tranship/program/program.hpp>

namespace tranship::cli {

/// More than any machine has; the bytes of all ranks together fit in 63 bits.
inline constexpr std::int64_t input_bytes_max = std::int64_t(1) << 46;

/// PLAN, --ranks and --ranks-per-node; the last is only for algorithms.
struct ProgramArgument {
  std::string name;
  std::optional<int> ranks;
  std::optional<int> ranks_per_node;
};
void add_program_argument(Command& command, ProgramArgument& argument);

/// Returns the program. "allreduce/ring" is an algorithm unless a file has that name. Throws UsageError if the options
/// do not fit the program.
Program program_of(const ProgramArgument& argument);

}  // namespace tranship::cli
