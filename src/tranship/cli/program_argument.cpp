#include "tranship/cli/program_argument.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/cli/arguments.hpp>
#include <tranship/cli/did_you_mean.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>

namespace tranship::cli {

void add_program_argument(Command& command, ProgramArgument& argument) {
  command.positional("PLAN", argument.name, "An execution plan, as JSON, or the name of a ready algorithm").required();
  command.option("--ranks", argument.ranks, "Number of ranks; a plan fixes it, an algorithm takes any")
      .value_name("N")
      .in_range(1, 1 << 20);
  command
      .option("--ranks-per-node", argument.ranks_per_node,
              "Number of ranks on each node, for an algorithm that has nodes")
      .value_name("N")
      .in_range(1, 1 << 20);
}

Program program_of(const ProgramArgument& argument) {
  std::error_code ignored;
  const auto& ready = algorithms();
  const auto named =
      std::find_if(ready.begin(), ready.end(), [&](const Algorithm& one) { return one.name == argument.name; });
  if (named != ready.end() && !std::filesystem::exists(argument.name, ignored)) {
    if (!argument.ranks)
      throw UsageError{
          fmt::format("{} is defined for any number of ranks: give the number with --ranks", argument.name)};
    if (argument.ranks_per_node && !named->has_nodes)
      throw UsageError{fmt::format("--ranks-per-node: {} has no nodes; allreduce/hierarchical has", argument.name)};
    const Result<Program> made = attempt([&] {
      return make_program(argument.name,
                          {.ranks = *argument.ranks, .ranks_per_node = argument.ranks_per_node.value_or(0)});
    });
    if (!made && made.error().code() == ErrorCode::invalid_use)
      throw UsageError{fmt::format("{}: {}", argument.name, made.error().message())};
    return made.value();
  }
  if (argument.ranks && !std::filesystem::exists(argument.name, ignored)) {
    std::vector<std::string_view> names;
    for (const Algorithm& one : ready) names.push_back(one.name);
    throw UsageError{fmt::format("PLAN: there is no file '{}' and no such algorithm{}; there are {}",
                                 printable(argument.name), did_you_mean(argument.name, names), join_text(names, ", "))};
  }
  if (!std::filesystem::exists(argument.name, ignored)) {
    std::vector<std::string_view> names;
    for (const Algorithm& one : ready) names.push_back(one.name);
    if (const std::string meant = did_you_mean(argument.name, names); !meant.empty())
      throw UsageError{fmt::format("PLAN: there is no file '{}'{}", printable(argument.name), meant)};
  }
  Program program = read_argument("PLAN", argument.name, read_program);
  if (argument.ranks && *argument.ranks != static_cast<int>(program.ranks.size()))
    throw UsageError{fmt::format("--ranks: the plan is for {}, not for {}; write a plan for {}",
                                 amount(program.ranks.size(), "rank"), *argument.ranks, *argument.ranks)};
  if (argument.ranks_per_node)
    throw UsageError{"--ranks-per-node applies to algorithms: a plan file already says which ranks share memory"};
  return program;
}

}  // namespace tranship::cli
