// Private: how processes that were started apart become the ranks of one world of the processes back-end.
//
// The process that has made the id is the host: once it joins itself, it takes the others at the socket that the id
// names, compares what they say, makes the shared memory when all are there, and hands its descriptor to each. All
// begin when each has mapped it; when anything is wrong before, all are told and none begins. Afterwards no process is
// special: PeerWatch serves all of them.
#pragma once

#include <optional>

#include <tranship/fabric/rank_scope.hpp>

namespace tranship {

/// WorldId::make, and RankScope::join of an id; empty where the id is not one that make_world_id() has made.
WorldId make_world_id();
std::optional<RankScope> join_world(const WorldId& id, Rank rank, int size, const JoinOptions& options);

}  // namespace tranship
