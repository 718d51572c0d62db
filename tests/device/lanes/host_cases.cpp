// Instantiates all cases for lanes of the CPU.
#include "lanes/host_cases.hpp"

#include "lanes/all_cases.hpp"

namespace tranship::device {

std::vector<HostCase> host_cases() {
  std::vector<HostCase> cases;
  const std::vector<CpuRun> side_by_side = side_by_side_cases();
  for_each_case([&]<class Case, Scope scope>() {
    cases.push_back({.facts = {.name = Case::name,
                               .type = Case::type,
                               .scope = scope,
                               .variants = Case::variants,
                               .uses_team = Case::uses_team,
                               .needs_memory = Case::needs_memory,
                               .shape_width = Case::shape_width},
                     .run = [](const CpuLane& lane, const CaseArgs& args) { run_case<Case, scope>(lane, args); },
                     .run_side_by_side = side_by_side[cases.size()]});
  });
  return cases;
}

}  // namespace tranship::device
