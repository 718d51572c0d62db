// Detail: SubWorld: a world of the members of a team. Everything that a World serves (arrays, exchanges, symmetric
// memory, flags, teams) then involves these ranks only; the other ranks take no part.
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
  /// Size of each member's symmetric heap, rounded up to whole pages; an eighth of the world's heap if not set.
  std::optional<std::size_t> heap_bytes = {};
};

/// Used by the thread of its rank. The world of its team must outlive it; its own arrays, exchanges, teams and contexts
/// must be destroyed before it. Destroying it is not collective.
///
/// Member i of the team is rank i of the sub-world: calls take these ranks, and errors and messages name them. If a
/// rank outside fails, waits of members fail, too, and name it by its rank in the whole world. The heap of the
/// sub-world is a part of the heap of the team's world, so its memory is symmetric for the members only. That part
/// becomes free when the sub-world and all its memory are gone on all members: at once for sub-worlds of the same
/// ranks, otherwise at the next allocation of all ranks of the team's world. A barrier of the sub-world completes only
/// transfers of the sub-world's default context.
class SubWorld {
 public:
  /// Collective over the team. The timeout is the present one of the team's world. Throws `no_memory` on all members
  /// when the heap has no room, `mismatch` when they request different sizes, `unsupported` for a team whose members
  /// are not in the order of their ranks, and whatever Team::split_strided throws.
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
