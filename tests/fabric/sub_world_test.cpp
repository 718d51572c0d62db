// Worlds of some ranks of another one. That they promise what every world promises is in contract_test.cpp; here is
// what they owe to those around them.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/pages.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/seam/heap_place.hpp>
#include <tranship/fabric/sub_world.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

constexpr std::size_t kibi = 1024, mebi = 1024 * kibi;

class SubWorlds : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, SubWorlds,
                         ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart,
                                           On::dealt, On::sub_messaged),
                         [](const ::testing::TestParamInfo<On>& info) { return std::string(name_of(info.param)); });

/// The lower ranks and the upper ones.
Team half_of(World& world) {
  const int n = world.size(), lower = n / 2;
  std::optional<Team> first = world.team().split_strided({.first = 0, .count = lower});
  std::optional<Team> second = world.team().split_strided({.first = lower, .count = n - lower});
  return first ? *first : *second;
}
std::size_t offset_in(const World& world, const void* memory) {
  const HeapPlace& place = world.heap().place();
  return std::size_t(static_cast<const std::byte*>(memory) - place.own);
}
/// Puts this rank's number to the next one, and requires that of the one before.
void require_ring(World& world, Symmetric<int> array) {
  const int n = world.size();
  for (Index i = 0; i < array.size(); ++i)
    world.context().p(array.from(i), world.rank() + 100 * int(i), (world.rank() + 1) % n);
  world.barrier();
  for (Index i = 0; i < array.size(); ++i)
    require(array[i] == (world.rank() + n - 1) % n + 100 * int(i), "element {} is {}", i, array[i]);
  world.barrier();
}

/// What a launch throws: an exception of the program's own as it is, where it can be.
template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST_P(SubWorlds, live_by_themselves) {
  run_on(GetParam(), 5, [](World& world) {
    Team half = half_of(world);
    SubWorld sub(half, {.heap_bytes = mebi});
    World& mine = sub.world();
    require(mine.size() == half.size() && mine.rank() == half.rank(), "numbers");
    require(mine.heap().usage().reserved_bytes == mebi, "{} bytes", mine.heap().usage().reserved_bytes);
    // Not the same number of calls in both.
    std::vector<SymmetricArray<int>> arrays;
    for (int i = 0; i < 2 + 5 * (world.rank() == 0 || world.rank() == 1); ++i) {
      arrays.push_back(mine.allocate<int>(10 + i));
      require_ring(mine, arrays.back());
      if (i % 3 == 1) mine.free(std::move(arrays.back())), arrays.pop_back();
    }
    const SharedFlags flags = mine.shared_flags(1, "own");
    flags.fetch_add(0, 0, 1);
    mine.barrier();
    require(mine.rank() != 0 || flags.load(0, 0) == std::uint64_t(mine.size()), "counted");
    const std::vector<int> ranks = mine.all_gather(world.rank());
    for (int i = 0; i < mine.size(); ++i) require(ranks[std::size_t(i)] == half.world_rank(i), "rank {}", i);
    // The whole world goes on as before, at the same places on all ranks.
    const auto whole = world.allocate<int>(1000);
    require_ring(world, Symmetric<int>::at(whole.local(), 3));
    for (const std::size_t offset : world.all_gather(offset_in(world, whole.local())))
      require(offset == offset_in(world, whole.local()), "offset {}", offset);
    for (auto& array : arrays) require_ring(mine, array);
  });
}

TEST_P(SubWorlds, have_sub_worlds_and_teams) {
  run_on(GetParam(), 7, [](World& world) {
    std::optional<Team> odd = world.team().split_strided({.first = 1, .stride = 2, .count = 3});
    std::optional<Team> even = world.team().split_strided({.first = 0, .stride = 2, .count = 4});
    SubWorld outer(odd ? *odd : *even, {.heap_bytes = 4 * mebi});
    World& mine = outer.world();
    std::optional<Team> last = mine.team().split_strided({.first = 1, .count = mine.size() - 1});
    if (last) {
      SubWorld inner(*last, {.heap_bytes = mebi});
      require(inner.world().rank() == mine.rank() - 1, "rank {}", inner.world().rank());
      const auto array = inner.world().allocate<int>(5);
      require_ring(inner.world(), array);
      auto [row, column] = inner.world().team().split_2d(2);
      row.barrier();
      column.barrier();
      inner.world().shared_team().barrier();
      inner.world().node_team().barrier();
      const auto in_outer = offset_in(mine, array.local()), in_world = offset_in(world, array.local());
      require(in_outer >= 3 * mebi && in_outer < 4 * mebi, "at {}", in_outer);
      require(in_world > in_outer, "{} {}", in_world, in_outer);
    }
    mine.barrier();
    const auto array = mine.allocate<int>(5);
    require_ring(mine, array);
  });
}

// Ranks at no equal steps, again and again: 0, 1, 3, 4, 6 of 8; of these 1, 4, 6; of these 1, 6.
TEST_P(SubWorlds, are_of_any_ranks) {
  run_on(GetParam(), 8, [](World& world) {
    std::optional<Team> five = world.team().split_listed({0, 1, 3, 4, 6});
    if (!five) return world.barrier();
    {
      SubWorld outer(*five, {.heap_bytes = 4 * mebi});
      World& mine = outer.world();
      require_ring(mine, mine.allocate<int>(5));
      std::optional<Team> three = mine.team().split_listed({1, 3, 4});
      if (three) {
        SubWorld middle(*three, {.heap_bytes = 2 * mebi});
        require(middle.world().rank() == (world.rank() == 1 ? 0 : world.rank() == 4 ? 1 : 2), "place in the middle");
        require_ring(middle.world(), middle.world().allocate<int>(5));
        std::optional<Team> two = middle.world().team().split_strided({.first = 0, .stride = 2, .count = 2});
        if (two) {
          SubWorld inner(*two, {.heap_bytes = mebi});
          require(inner.world().size() == 2 && inner.world().rank() == (world.rank() == 6), "place within");
          require_ring(inner.world(), inner.world().allocate<int>(5));
          const SharedFlags flags = inner.world().shared_flags(2, "test");
          inner.world().barrier();
          flags.fetch_add(1 - inner.world().rank(), 1, 5);
          inner.world().barrier();
          require(flags.load(inner.world().rank(), 1) == 5, "raised by the other");
        }
        middle.world().node_team().barrier();
      }
      mine.barrier();
    }
    world.barrier();
  });
}

TEST_P(SubWorlds, their_memory_lives_as_long_as_it_is_held) {
  run_on(GetParam(), 4, [](World& world) {
    Team half = half_of(world);
    const std::size_t all = world.heap().place().size_bytes;
    SymmetricArray<int> kept;
    {
      SubWorld sub(half, {.heap_bytes = mebi});
      kept = sub.world().allocate<int>(100);
      std::fill_n(kept.local(), 100, 7);
      sub.world().barrier();
    }
    const std::size_t first = offset_in(world, kept.local());
    {
      SubWorld next(half, {.heap_bytes = mebi});
      const auto other = next.world().allocate<int>(100);
      require(offset_in(world, other.local()) + mebi <= first, "{} {}", offset_in(world, other.local()), first);
      require_ring(next.world(), other);
    }
    require(std::all_of(kept.local(), kept.local() + 100, [](int x) { return x == 7; }), "kept");
    // Only the whole world's own part is left to it, on all ranks alike.
    const Error full = error_of_rank([&] { (void)world.allocate<std::uint8_t>(Index(all)); });
    require_says(full, ErrorCode::no_memory, {"at its end belong to sub-worlds"});
    kept = {};
    world.barrier();
    // As the first one, and zeroed again.
    SubWorld again(half, {.heap_bytes = mebi});
    const auto array = again.world().allocate<int>(100);
    require(offset_in(world, array.local()) == first, "{} {}", offset_in(world, array.local()), first);
    require(std::all_of(array.local(), array.local() + 100, [](int x) { return x == 0; }), "zeros");
  });
}

TEST_P(SubWorlds, leave_zeros_to_the_world_around_them) {
  run_on(GetParam(), 3, [](World& world) {
    const std::size_t all = world.heap().place().size_bytes;
    std::optional<Team> two = world.team().split_strided({.first = 0, .count = 2});
    if (two) {
      SubWorld sub(*two, {.heap_bytes = all / 2});
      const auto array = sub.world().allocate<std::uint8_t>(Index(all / 2) - 4096);
      std::fill_n(array.local(), array.size(), std::uint8_t(7));
      sub.world().barrier();
    }
    const auto array = world.allocate<std::uint8_t>(Index(all) - 4096);
    // Each byte is the one before it, and the first one is 0.
    const std::uint8_t* const bytes = array.local();
    require(bytes[0] == 0 && std::memcmp(bytes, bytes + 1, std::size_t(array.size()) - 1) == 0, "zeros");
  });
}

TEST_P(SubWorlds, do_not_take_what_a_rank_of_another_one_still_has) {
  run_on(GetParam(), 3, [](World& world) {
    std::optional<Team> low = world.team().split_strided({.first = 0, .count = 2});
    std::optional<Team> ends = world.team().split_strided({.first = 0, .stride = 2, .count = 2});
    std::optional<SubWorld> first;
    SymmetricArray<int> array;
    if (low) {
      first.emplace(*low, SubWorldOptions{.heap_bytes = mebi});
      array = first->world().allocate<int>(1);
    }
    if (world.rank() == 0) {
      array = {};
      first.reset();
    }
    if (ends) {
      SubWorld second(*ends, {.heap_bytes = mebi});
      const auto other = second.world().allocate<int>(1);
      world.barrier();
      world.barrier();
      require(*other.local() == 0, "{}", *other.local());
    } else {
      world.barrier();
      first->world().context().p(array, 9, 0);  // rank 0 has released it, this rank has not
      first->world().context().quiet();
      world.barrier();
    }
    array = {};
    first.reset();
    // All have released it; after an allocation of all ranks all know.
    const auto whole = world.allocate<int>(1);
    const std::size_t all = world.heap().place().size_bytes;
    const SubWorld again(world.team(), {.heap_bytes = all - 2 * mebi});
    require(again.world().size() == 3, "all of it");
    world.barrier();
  });
}

TEST_P(SubWorlds, come_and_go) {
  run_once(GetParam(), {.ranks = 3}, 1, [](World& world) {
    std::optional<Team> two = world.team().split_strided({.first = world.size() - 2, .count = 2});
    for (int i = 0; two && i < 300; ++i) {
      const SubWorld sub(*two);
      const auto array = sub.world().allocate<int>(1 + i);
      if (i % 50 == 0) require_ring(sub.world(), array);
    }
    world.barrier();
    const auto whole = world.allocate<std::uint8_t>(Index(world.heap().place().size_bytes / 2));
    require(whole.size() > 0, "the heap is whole again");
  });
}

TEST_P(SubWorlds, refuse_what_has_no_room_and_go_on) {
  run_on(GetParam(), 4, [](World& world) {
    Team half = half_of(world);
    const std::size_t all = world.heap().place().size_bytes;
    const auto used = world.allocate<std::uint8_t>(Index(all / 2));
    for (const std::size_t bytes : {all / 2 + 1, all, all + 1, SIZE_MAX - 10, SIZE_MAX}) {
      const Error error = error_of_rank([&] { SubWorld{half, {.heap_bytes = bytes}}; });
      require_says(error, ErrorCode::no_memory, {"no room for the heap of a sub-world of", "are free in one piece"});
    }
    {
      const SubWorld half_of_rest(half, {.heap_bytes = all / 4});
      require_says(error_of_rank([&] {
                     SubWorld{half, {.heap_bytes = all / 2}};
                   }),
                   ErrorCode::no_memory, {std::to_string(all / 4).c_str()});
      const SubWorld rest(half, {.heap_bytes = all / 4});
      require_ring(rest.world(), rest.world().allocate<int>(1));
      require_says(error_of_rank([&] { (void)rest.world().allocate<std::uint8_t>(Index(all / 4) + 1); }),
                   ErrorCode::no_memory, {std::to_string(all / 4).c_str()});
    }
    world.barrier();
    const SubWorld least(half, {.heap_bytes = 0});
    require(least.world().heap().place().size_bytes == page_bytes(), "a page");
    world.barrier();
  });
}

TEST_P(SubWorlds, need_their_members_in_order_and_the_same_call) {
  run_on(GetParam(), 3, [](World& world) {
    std::optional<Team> reversed = world.team().split_strided({.first = 2, .stride = -1, .count = 3});
    require_says(error_of_rank([&] { SubWorld{*reversed}; }), ErrorCode::unsupported,
                 {"members 0 and 2 are ranks 2 and 0"});
    const std::size_t bytes = world.rank() == 1 ? 2 * mebi : mebi;
    require_says(error_of_rank([&] { SubWorld(world.team(), {.heap_bytes = bytes}); }), ErrorCode::mismatch,
                 {"sub_world of"});
  });
}

TEST_P(SubWorlds, can_be_written_from_the_world_around_them) {
  run_on(GetParam(), 4, [](World& world) {
    Team half = half_of(world);
    SubWorld sub(half, {.heap_bytes = mebi});
    const auto array = sub.world().allocate<int>(1);
    world.barrier();
    // Both halves have it at one place, because both have made the same calls.
    world.context().p(array, 10 + world.rank(), (world.rank() + 2) % 4);
    world.barrier();
    require(array[0] == 10 + (world.rank() + 2) % 4, "{}", array[0]);
    // What is of the whole world has no place in a sub-world.
    const auto outside = world.allocate<int>(1);
    require_says(error_of_rank([&] { sub.world().context().p(outside, 1, 0); }), ErrorCode::invalid_use,
                 {"does not lie in the symmetric heap"});
    world.barrier();
  });
}

TEST_P(SubWorlds, name_failed_members_by_their_own_ranks) {
  const On on = GetParam();
  for (std::uint64_t seed = 1; seed <= seeds_per_test(on); ++seed) {
    const auto program = [](World& world) {
      std::optional<Team> upper = world.team().split_strided({.first = 2, .count = 3});
      if (!upper) {
        world.barrier();
        return;
      }
      SubWorld sub(*upper, {.heap_bytes = mebi});
      if (world.rank() == 3) throw std::runtime_error("out of salt");
      const Error error = error_of_rank([&] { sub.world().barrier(); });
      require_says(error, ErrorCode::peer_lost, {"rank 1 failed", "out of salt"});
      require(error.peer == 1 && error.rank == sub.world().rank(), "rank {}, peer {}", error.rank, error.peer);
      throw error;
    };
    const std::string message = message_of([&] { run_once(on, {.ranks = 5}, seed, program); });
    if (IsSkipped()) return;
    EXPECT_NE(message.find("out of salt"), std::string::npos) << message;
    EXPECT_EQ(message.find("test:"), std::string::npos) << message;
  }
}

TEST_P(SubWorlds, end_when_a_rank_outside_fails) {
  const On on = GetParam();
  for (std::uint64_t seed = 1; seed <= seeds_per_test(on); ++seed) {
    const auto program = [](World& world) {
      std::optional<Team> upper = world.team().split_strided({.first = 1, .count = 2});
      if (!upper) {
        world.wait_until([&] { return world.activity_of(2).rfind("waiting for", 0) == 0; }, "rank 2");
        throw std::runtime_error("no wind");
      }
      SubWorld sub(*upper, {.heap_bytes = mebi});
      const auto word = sub.world().allocate<std::uint64_t>(1);
      const Error error = error_of_rank([&] {
        if (sub.world().rank() == 1)
          sub.world().context().signal_wait(word, Comparison::equal, 1);
        else
          while (!sub.world().context().test(word, Comparison::equal, 1)) {
          }
      });
      require_says(error, ErrorCode::peer_lost, {"of the whole world failed", "no wind"});
      require(error.peer == -1, "peer {}", error.peer);
      throw error;
    };
    const std::string message = message_of([&] { run_once(on, {.ranks = 3}, seed, program); });
    if (IsSkipped()) return;
    EXPECT_NE(message.find("no wind"), std::string::npos) << message;
    EXPECT_EQ(message.find("test:"), std::string::npos) << message;
  }
}

TEST_P(SubWorlds, say_by_their_own_ranks_who_is_missing) {
  const On on = GetParam();
  for (std::uint64_t seed = 1; seed <= seeds_per_test(on); ++seed) {
    const auto program = [](World& world) {
      std::optional<Team> odd = world.team().split_strided({.first = 1, .stride = 2, .count = 2});
      if (odd) {
        SubWorld sub(*odd, {.heap_bytes = mebi});
        World& mine = sub.world();
        if (mine.rank() == 0) {
          mine.wait_until([&] { return mine.activity_of(1).rfind("waiting for signal_wait", 0) == 0; }, "rank 1");
          mine.set_timeout_ns(20'000'000);
          require_says(
              error_of_rank([&] { mine.barrier(); }), ErrorCode::timeout,
              {"rank 0 waited", "for barrier (rank 1,", "; rank 1 waiting for signal_wait", "rank 0 should raise it"});
          throw Error(ErrorCode::timeout, "as it should");
        }
        mine.wait_until([] { return false; }, {"signal_wait", 0});
      }
      world.barrier();
    };
    const std::string message = message_of([&] { run_once(on, {.ranks = 5}, seed, program); });
    if (IsSkipped()) return;
    EXPECT_NE(message.find("as it should"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tranship::test
