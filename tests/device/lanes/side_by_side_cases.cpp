// Instantiates all cases for lanes of the CPU that go through memory as those of a card do.
#include "lanes/all_cases.hpp"
#include "lanes/host_cases.hpp"

namespace tranship::device {

std::vector<CpuRun> side_by_side_cases() {
  std::vector<CpuRun> runs;
  for_each_case([&]<class Case, Scope scope>() {
    runs.push_back(
        [](const CpuLane& lane, const CaseArgs& args) { run_case<Case, scope>(SideBySideLane(lane), args); });
  });
  return runs;
}

}  // namespace tranship::device
