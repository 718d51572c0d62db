// Detail: SubWorld: a world of the members of a team. Whatever a World serves (arrays, exchanges, symmetric memory,
// flags, teams) then takes part of its members only; the other ranks need not know.
//
//   std::optional<Team> half = world.team().split_strided({.first = 0, .stride = 2, .count = 4});
//   if (half) {
//     SubWorld sub(*half);
//     Redistribution move(sub.world(), rows, columns);  // ranks 0 to 3 are ranks 0, 2, 4, 6 of the whole world
//     ...
//   }
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/team.hpp>

namespace tranship {

struct SubWorldOptions {
  /// Of the symmetric heap of each member, in whole pages; an eighth of that of the world where nothing is said.
  std::optional<std::size_t> heap_bytes = {};
};

/// Used by the thread of its rank. It lives less long than the world of its team; its own arrays, exchanges, teams and
/// contexts must be gone before it. Letting go of it is not collective.
///
/// In it, member i of the team is rank i: calls take such ranks, and errors and messages name them. A failure of a rank
/// that is no member ends waits of members, too, and is named as one of the whole world. Its heap is a part of the heap
/// of the team's world, so that its memory is symmetric for its members only. That part is free again when this and all
/// its memory are gone on all members: for sub-worlds of the same ranks at once, for all else at the next allocation of
/// all ranks of that world. Its barriers complete what was put by its own contexts.
class SubWorld {
 public:
  /// Collective over the team. Its timeout is that of the team's world at this time. Throws `no_memory` on all members
  /// when the heap has no room, `mismatch` when they ask for different sizes, `unsupported` for a team whose members
  /// are not in the order of their ranks, and what Team::split_strided throws.
  explicit SubWorld(Team& team, const SubWorldOptions& options = {}, CallSite where = CallSite::here());
  SubWorld(SubWorld&&) noexcept;
  SubWorld& operator=(SubWorld&&) = delete;
  ~SubWorld();

  World& world() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tranship
