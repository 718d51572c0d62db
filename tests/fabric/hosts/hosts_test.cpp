// Worlds on several hosts that share nothing.
#include "support/hosts.hpp"

#include <numeric>

#include <gtest/gtest.h>

#include <tranship/fabric/context.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

TEST(Hosts, meet_put_get_and_count) {
  for (const auto& host_of : {hosts_in_blocks(4, 2), hosts_in_turn(4, 2), hosts_in_turn(5, 3)})
    launch_hosts({.host_of = host_of}, [](World& world) {
      const int ranks = world.size();
      const Rank next = (world.rank() + 1) % ranks, before = (world.rank() + ranks - 1) % ranks;
      const auto cells = world.allocate<std::int64_t>(100);
      const auto counter = world.allocate<std::uint64_t>(1);
      std::vector<std::int64_t> mine(100);
      std::iota(mine.begin(), mine.end(), 1000 * world.rank());
      world.context().put(cells, std::span(mine), next);
      world.context().add<std::uint64_t>(counter, 1, 0);
      world.barrier();
      for (Index i = 0; i < 100; ++i) require(cells[i] == 1000 * before + i, "{} at {}", cells[i], i);
      if (world.rank() == 0) require(counter[0] == std::uint64_t(ranks), "{}", counter[0]);
      std::vector<std::int64_t> theirs(100);
      world.context().get(std::span(theirs), cells, before);
      require(theirs[5] == 1000 * ((before + ranks - 1) % ranks) + 5, "{}", theirs[5]);
      world.barrier();
    });
}

}  // namespace
}  // namespace tranship::test
