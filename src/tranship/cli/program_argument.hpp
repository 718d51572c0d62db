// Private: The program that an argument names: a plan file, or a ready algorithm for so many ranks.
#pragma once

#include <optional>
#include <string>

#include <tranship/program/program.hpp>

namespace tranship::cli {

/// What the options --ranks and --ranks-per-node say; the second is for algorithms only.
struct ProgramRanks {
  std::optional<int> ranks;
  std::optional<int> ranks_per_node;
};

/// "allreduce/ring" is an algorithm unless a file has that name. Throws UsageError where the options do not fit it.
Program program_argument(const std::string& argument, const ProgramRanks& options);

}  // namespace tranship::cli
