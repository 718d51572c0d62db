// Random programs of channel operations that are right by construction: collectives along random trees, whose edges are
// puts, gets, packets and port channels, with blocks that hand their chunks to each other.
#pragma once

#include <cstdint>

#include <tranship/program/program.hpp>

namespace tranship::test {

/// Returns an allreduce, reducescatter, allgather or alltoall of 2 to `ranks_max` ranks.
Program random_channel_program(std::uint64_t seed, Rank ranks_max = 4);

}  // namespace tranship::test
