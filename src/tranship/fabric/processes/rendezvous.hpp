// Private: how separately started processes become the ranks of one world of the processes back-end.
//
// The process that made the id is the host. Once it joins itself, it accepts the others at the socket that the id
// names, compares their terms, makes the shared memory when all are there, and sends its descriptor to each. All begin
// when each has mapped it; if anything fails before that, all are told and none begins. Afterwards no process is
// special: each rank has a PeerWatch.
#pragma once

#include <optional>

#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

/// Implement WorldId::make and RankScope::join with an id; the latter returns nothing for an id that make_world_id()
/// has not made.
WorldId make_world_id();
std::optional<RankScope> join_world(const WorldId& id, Rank rank, int size, const JoinOptions& options);

}  // namespace tranship
