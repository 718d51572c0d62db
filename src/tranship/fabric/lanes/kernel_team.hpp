// KernelTeam: a team whose members meet in kernels. Its view is a value for kernels; this object keeps the words by
// which they meet.
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

/// Moves, does not copy. Used by the thread of its rank; the world must outlive it.
class KernelTeam {
 public:
  /// Collective over the team; other ranks need not know. Takes a page of the symmetric heap of each member. Several of
  /// one team are independent of each other: a block that runs side by side with another one needs its own. Throws
  /// `no_memory` on all members, and what collective calls throw.
  explicit KernelTeam(Team& team, CallSite where = CallSite::here());

  /// For kernels of this rank that end before this object. Costs nothing.
  const TeamView& view() const noexcept { return view_; }

 private:
  std::shared_ptr<void> words_;
  Members members_;
  TeamView view_;
};

}  // namespace tranship
