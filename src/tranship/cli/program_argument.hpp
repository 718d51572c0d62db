// Private: The program that an argument names: a plan file, or a ready algorithm for so many ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tranship/cli/command_line.hpp>
#include <tranship/program/program.hpp>

namespace tranship::cli {

/// More than a machine has. What all ranks have together is a number of 63 bits.
inline constexpr std::int64_t input_bytes_max = std::int64_t(1) << 46;

/// PLAN, --ranks and --ranks-per-node; the last is for algorithms only.
struct ProgramArgument {
  std::string name;
  std::optional<int> ranks;
  std::optional<int> ranks_per_node;
};
void add_program_argument(Command& command, ProgramArgument& argument);

/// "allreduce/ring" is an algorithm unless a file has that name. Throws UsageError where the options do not fit it.
Program program_of(const ProgramArgument& argument);

}  // namespace tranship::cli
