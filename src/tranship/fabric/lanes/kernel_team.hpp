// KernelTeam: a team whose members meet in kernels. The view is a value for kernels; this object owns the words by
// which the members meet.
//
//   ts::KernelTeam team(world.team());
//   ts::run_block(world, {.lanes = 64}, [&, view = team.view()](const ts::CpuLane& lane) {
//     ts::sync(lane.block(), ts::heap_view(world), view);
//   });
#pragma once

#include <memory>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/team.hpp>
#include <tranship/lanes/collectives.hpp>
#include <tranship/lanes/team_view.hpp>

namespace tranship {

/// Movable only. Used by the thread of its rank; the world must outlive it.
class KernelTeam {
 public:
  /// Collective over the team; other ranks take no part. Takes a page of the symmetric heap of each member. Several
  /// KernelTeams of one team are independent: blocks that run concurrently need one each. Throws `no_memory` on all
  /// members, and otherwise as collective calls do.
  explicit KernelTeam(Team& team, CallSite where = CallSite::here());

  /// Returns the view for kernels of this rank, which must end before this object is destroyed. Costs nothing.
  const TeamView& view() const noexcept { return view_; }

 private:
  std::shared_ptr<void> words_;
  Members members_;
  TeamView view_;
};

}  // namespace tranship
