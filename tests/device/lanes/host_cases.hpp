// Declares the cases of device_lanes on lanes of the CPU.
#pragma once

#include <vector>

#include <tranship/fabric/lanes/cpu_lanes.hpp>

#include "lanes/arena.hpp"

namespace tranship::device {

/// Is a group of lanes on the CPU that acts as a group on a card where the two differ: it goes through memory side by
/// side.
template <Scope scope>
class SideBySideGroup : public CpuGroup<scope> {
 public:
  explicit SideBySideGroup(const CpuGroup<scope>& group) : CpuGroup<scope>(group) {}
  static constexpr bool runs_side_by_side = true;
};
class SideBySideLane : public CpuLane {
 public:
  explicit SideBySideLane(const CpuLane& lane) : CpuLane(lane) {}
  SideBySideGroup<Scope::thread> thread() const { return SideBySideGroup(CpuLane::thread()); }
  SideBySideGroup<Scope::warp> warp() const { return SideBySideGroup(CpuLane::warp()); }
  SideBySideGroup<Scope::block> block() const { return SideBySideGroup(CpuLane::block()); }
};

using CpuRun = void (*)(const CpuLane& lane, const CaseArgs& args);
struct HostCase {
  CaseFacts facts;
  CpuRun run;
  CpuRun run_side_by_side;
};

/// Returns the cases in the order of the kernels of card.hpp.
std::vector<HostCase> host_cases();
/// Returns run_side_by_side of each HostCase; these are compiled separately.
std::vector<CpuRun> side_by_side_cases();

}  // namespace tranship::device
