// Worlds on several hosts that share nothing.
#include "support/hosts.hpp"

#include <csignal>
#include <fstream>
#include <functional>
#include <numeric>
#include <set>
#include <sstream>

#include <gtest/gtest.h>

#include <tranship/fabric/context.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

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

/// The files and memories that this process shares with whoever maps them too: device and inode.
std::set<std::pair<std::string, std::uint64_t>> shared_mappings() {
  std::set<std::pair<std::string, std::uint64_t>> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, access, offset, device;
    std::uint64_t inode = 0;
    words >> range >> access >> offset >> device >> inode;
    if (access.size() == 4 && access[3] == 's' && inode != 0) out.emplace(device, inode);
  }
  return out;
}

TEST(Hosts, share_no_memory) {
  const std::vector<int> host_of = hosts_in_turn(5, 2);
  launch_hosts({.host_of = host_of}, [&](World& world) {
    std::uint64_t mine[64] = {};
    std::size_t count = 0;
    for (const auto& [device, inode] : shared_mappings()) {
      require(count < std::size(mine), "more than {} mappings", std::size(mine));
      mine[count++] = inode * 4096 + std::hash<std::string>()(device) % 4096;
    }
    require(count > 0, "rank {} shares nothing with its own host", world.rank());
    std::vector<std::uint64_t> all(std::size(mine) * std::size_t(world.size()));
    world.all_gather(mine, sizeof mine, all.data());
    for (Rank peer = 0; peer < world.size(); ++peer) {
      bool shares = false;
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t j = 0; j < std::size(mine); ++j)
          shares |= mine[i] == all[std::size_t(peer) * std::size(mine) + j];
      require(shares == (host_of[std::size_t(peer)] == host_of[std::size_t(world.rank())]), "ranks {} and {}",
              world.rank(), peer);
      require((world.peer_kind(peer) == PeerKind::reachable) == shares, "what rank {} is", peer);
    }
    require(world.node_team().size() == (world.rank() % 2 == 0 ? 3 : 2), "{} on this host", world.node_team().size());
  });
}

TEST(Hosts, many_ranks_on_many_of_them) {
  const int ranks = is_thinned() ? 16 : 48;
  for (const auto& host_of : {hosts_in_blocks(ranks, 8), hosts_in_turn(ranks, 6)})
    launch_hosts({.host_of = host_of, .heap_bytes = std::size_t(4) << 20}, [](World& world) {
      const int size = world.size();
      const auto cells = world.allocate<int>(size);
      for (Rank peer = 0; peer < size; ++peer) world.context().p(cells.from(world.rank()), 100 + world.rank(), peer);
      world.barrier();
      for (Rank peer = 0; peer < size; ++peer) require(cells[peer] == 100 + peer, "{} of {}", cells[peer], peer);
      std::optional<Team> odd = world.team().split_strided({.first = 1, .stride = 2, .count = size / 2});
      if (odd) require(odd->all_gather(world.rank())[3] == 7, "of the odd ones");
    });
}

// A rank ends without a word while the others wait for it in different ways. They learn its name at once.
TEST(Hosts, a_rank_that_is_killed_is_named_by_all) {
  for (const auto& host_of : {hosts_in_blocks(5, 2), hosts_in_turn(5, 3)})
    for (const Rank killed : {0, 1, 4}) {
      const Error error = error_of_rank([&] {
        launch_hosts({.host_of = host_of, .timeout_ns = INT64_MAX}, [&](World& world) {
          const auto word = world.allocate<std::uint64_t>(1);
          world.barrier();
          if (world.rank() == killed) std::raise(SIGKILL);
          const Error seen = error_of_rank([&] {
            if (world.rank() == 2) world.context().signal_wait(word, Comparison::equal, 1);
            if (world.rank() == 3)
              for (;;) world.context().g(word, killed);
            world.barrier();
          });
          require_says(seen, ErrorCode::peer_lost, {fmt::format("rank {}", killed).c_str()});
          require(seen.peer == killed, "rank {} says {}", world.rank(), seen.peer);
        });
      });
      EXPECT_EQ(error.code(), ErrorCode::peer_lost) << error.message();
      EXPECT_EQ(error.rank, killed) << error.message();
    }
}

TEST(Hosts, end_together_by_global_exit) {
  // Of the ranks that do not call it one waits, one polls, the others are at a barrier.
  for (const auto& host_of : {hosts_in_blocks(5, 2), hosts_in_turn(5, 2), hosts_in_turn(5, 3)})
    for (const int status : {41, 0})
      for (const Rank first : {0, 4}) {
        std::string message = "nothing";
        try {
          launch_hosts({.host_of = host_of, .timeout_ns = INT64_MAX}, [&](World& world) {
            const auto word = world.allocate<std::uint64_t>(1);
            world.barrier();
            if (world.rank() == first) world.global_exit(status + 256);
            if (world.rank() == 1) world.context().wait_until(word, Comparison::equal, 1);
            if (world.rank() == 2)
              while (!world.context().test(word, Comparison::equal, 1)) {
              }
            world.barrier();
          });
        } catch (const Error& error) {
          EXPECT_EQ(error.rank, first);
          message = error.message();
        }
        if (status == 0) EXPECT_EQ(message, "nothing");
        if (status != 0)
          EXPECT_NE(message.find("it has ended all ranks by global_exit(41)"), std::string::npos) << message;
      }
}

}  // namespace
}  // namespace tranship::test
