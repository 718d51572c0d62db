#include <algorithm>
#include <filesystem>

#include <tranship/base/fail.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/program_argument.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>

namespace tranship::cli {

Program program_argument(const std::string& argument, const ProgramRanks& options) {
  std::error_code ignored;
  const auto& ready = algorithms();
  const bool is_ready =
      std::any_of(ready.begin(), ready.end(), [&](const Algorithm& one) { return one.name == argument; });
  if (is_ready && !std::filesystem::exists(argument, ignored)) {
    if (!options.ranks) throw UsageError{fmt::format("{} is for any number of ranks: --ranks says how many", argument)};
    return make_program(argument, {.ranks = *options.ranks, .ranks_per_node = options.ranks_per_node.value_or(0)});
  }
  Program program = read_program(text_in_file("PLAN", argument));
  if (options.ranks && *options.ranks != static_cast<int>(program.ranks.size()))
    throw UsageError{fmt::format("--ranks: the plan is for {} ranks, not for {}; write a plan for {}",
                                 program.ranks.size(), *options.ranks, *options.ranks)};
  if (options.ranks_per_node) throw UsageError{"--ranks-per-node: a plan says itself which ranks share memory"};
  return program;
}

}  // namespace tranship::cli
