// Collective calls of kernels: against a loop over members, at every scope, in teams of all kinds; and what happens
// when members or lanes do not do the same.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <support/kernels_on_ranks.hpp>

#include <tranship/base/random.hpp>
#include <tranship/fabric/lanes/kernel_team.hpp>

#include "support/thinned.hpp"

namespace tranship {
namespace {

using test::error_of_rank;
using test::next;
using test::On;
using test::previous;
using test::require;
using test::require_says;

class Collectives : public test::BlockOnRanks {};
TRANSHIP_KERNELS_ON_RANKS(Collectives);

/// Calls `f(team, kernel_team)` for teams of all ranks, of every other one, of all in reverse order, of one, and of a
/// list.
template <class F>
void in_each_team(World& world, F&& f) {
  const auto use = [&](std::optional<Team> team) {
    if (!team) return;
    const KernelTeam kernel_team(*team);
    f(*team, kernel_team.view());
  };
  Team& all = world.team();
  use(all);
  use(all.split_strided({.first = 0, .stride = 2, .count = (all.size() + 1) / 2}));
  use(all.split_strided({.first = all.size() - 1, .stride = -1, .count = all.size()}));
  use(all.split_strided({.first = all.size() / 2, .stride = 1, .count = 1}));
  if (all.size() > 2) use(all.split_listed({all.size() - 1, 0, 1}));
}

/// Runs `f(group)` once, by lane 0, a warp, and a block.
template <class F>
void by_each_scope(World& world, F&& f) {
  run_block(world, {.lanes = 1}, [&](const CpuLane& lane) { f(lane.thread()); });
  run_block(world, {.lanes = 40}, [&](const CpuLane& lane) {
    if (lane.index() >= 32) f(lane.warp());
  });
  run_block(world, {.lanes = 33}, [&](const CpuLane& lane) { f(lane.block()); });
}

/// What member m has at element i.
template <class T>
T element(int rank, Index i, int round) {
  SplitMix64 random(std::uint64_t(rank) * 1000003 + std::uint64_t(i) * 17 + std::uint64_t(round));
  if constexpr (std::is_floating_point_v<T>)
    return static_cast<T>(static_cast<double>(random.below(2001)) / 7.0 - 140);
  else
    return static_cast<T>(random.next());
}

constexpr Reduction reductions[] = {Reduction::sum,     Reduction::product, Reduction::minimum, Reduction::maximum,
                                    Reduction::bit_and, Reduction::bit_or,  Reduction::bit_xor};

template <class T>
T combined(Reduction op, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    const auto x = std::uint64_t(U(a)), y = std::uint64_t(U(b));
    switch (op) {
      case Reduction::sum:
        return static_cast<T>(x + y);
      case Reduction::product:
        return static_cast<T>(x * y);
      case Reduction::bit_and:
        return static_cast<T>(x & y);
      case Reduction::bit_or:
        return static_cast<T>(x | y);
      case Reduction::bit_xor:
        return static_cast<T>(x ^ y);
      default:
        break;
    }
  }
  if (op == Reduction::sum) return static_cast<T>(a + b);
  if (op == Reduction::product) return static_cast<T>(a * b);
  return op == Reduction::minimum ? std::min(a, b) : std::max(a, b);
}

template <class T, class F>
void require_elements(Span<T> target, const char* what, F&& wanted) {
  for (Index i = 0; i < target.size; ++i)
    require(target[i] == wanted(i), "{}: element {} of {} is {}, not {}", what, i, target.size, target[i], wanted(i));
}

/// Simulated ranks take their time for each piece of a transfer.
std::vector<Index> counts_in(const World& world) {
  if (!heap_view(world).heaps.is_complete) return {0, 1, 5, 300};
  if (test::is_brief()) return {0, 1, 7, 300};
  return {0, 1, 2, 3, 7, 300, 1025};
}

/// All that moves elements of one type, of several counts, in one team. The arrays are those of the world.
template <class T>
void move_in(World& world, const HeapView& heap, Team& team, const TeamView& view, Span<T> source, Span<T> target) {
  const int n = team.size(), me = team.rank();
  by_each_scope(world, [&](const auto& group) {
    const bool checks = group.lane() == 0;
    for (const Index count : counts_in(world)) {
      const Index all = count * n;
      const int seed = int(count);
      const auto fill = [&](Index size) {
        group.sync();
        // Each lane writes some of what the call reads.
        for (Index i = group.lane(); i < size; i += group.lanes()) source[i] = element<T>(world.rank(), i, seed);
        for (Index i = group.lane(); i < target.size; i += group.lanes()) target[i] = T{};
        sync(group, heap, view);
      };
      const int root = seed % n;
      fill(count);
      broadcast(group, heap, view, Span(target.data, count + 3), Span(source.data, count), root);
      if (checks)
        require_elements(Span(target.data, count + 3), "broadcast",
                         [&](Index i) { return i < count ? element<T>(team.world_rank(root), i, seed) : T{}; });
      fill(count);
      broadcast(group, heap, view, Span(source.data, count), Span(source.data, count), root);
      if (checks)
        require_elements(Span(source.data, count), "broadcast in place",
                         [&](Index i) { return element<T>(team.world_rank(root), i, seed); });
      fill(count);
      fcollect(group, heap, view, Span(target.data, all + 1), Span(source.data, count));
      if (checks)
        require_elements(Span(target.data, all + 1), "fcollect", [&](Index i) {
          return i < all ? element<T>(team.world_rank(int(i / count)), i % count, seed) : T{};
        });
      fill(all);
      alltoall(group, heap, view, Span(target.data, all + 1), Span(source.data, all));
      if (checks)
        require_elements(Span(target.data, all + 1), "alltoall", [&](Index i) {
          return i < all ? element<T>(team.world_rank(int(i / count)), me * count + i % count, seed) : T{};
        });
      group.sync();
    }
  });
}

TEST_P(Collectives, move_what_members_have) {
  run([](World& world, const HeapView& heap) {
    const Index room = 1025 * world.size() + 8;
    const auto source = world.allocate<int>(room), target = world.allocate<int>(room);
    const auto narrow = world.allocate<signed char>(room), bytes = world.allocate<signed char>(room);
    in_each_team(world, [&](Team& team, const TeamView& view) {
      move_in(world, heap, team, view, span_of(source), span_of(target));
      move_in(world, heap, team, view, span_of(narrow), span_of(bytes));
    });
    world.barrier();
  });
}

template <class T>
void reduce_in(World& world, const HeapView& heap, Team& team, const TeamView& view, Span<T> source, Span<T> target) {
  const int n = team.size(), me = team.rank();
  const auto wanted = [&](Reduction op, Index i, int seed) {
    T value = element<T>(team.world_rank(0), i, seed);
    for (int m = 1; m < n; ++m) value = combined(op, value, element<T>(team.world_rank(m), i, seed));
    return value;
  };
  by_each_scope(world, [&](const auto& group) {
    for (const Index count : test::is_brief() ? std::vector<Index>{0, 5, 300} : std::vector<Index>{0, 1, 2, 5, 300})
      for (const Reduction op : reductions) {
        if (count == 300 && op != Reduction::sum) continue;
        if (op >= Reduction::bit_and && std::is_floating_point_v<T>) continue;
        const int seed = int(count) + int(op);
        const auto fill = [&](Index size) {
          group.sync();
          for (Index i = group.lane(); i < size; i += group.lanes()) source[i] = element<T>(world.rank(), i, seed);
          for (Index i = group.lane(); i < count + 1; i += group.lanes()) target[i] = T{};
          sync(group, heap, view);
        };
        fill(count);
        reduce(group, heap, view, Span(target.data, count + 1), Span(source.data, count), op);
        if (group.lane() == 0)
          require_elements(Span(target.data, count + 1), "reduce",
                           [&](Index i) { return i < count ? wanted(op, i, seed) : T{}; });
        group.sync();
        reduce(group, heap, view, Span(source.data, count), Span(source.data, count), op);
        if (group.lane() == 0)
          require_elements(Span(source.data, count), "reduce in place", [&](Index i) { return wanted(op, i, seed); });
        fill(count * n);
        reducescatter(group, heap, view, Span(target.data, count + 1), Span(source.data, count * n), op);
        if (group.lane() == 0)
          require_elements(Span(target.data, count + 1), "reducescatter",
                           [&](Index i) { return i < count ? wanted(op, me * count + i, seed) : T{}; });
        group.sync();
      }
  });
}

TEST_P(Collectives, reduce_in_the_order_of_members) {
  run([](World& world, const HeapView& heap) {
    const Index room = 300 * world.size() + 8;
    const auto first = world.allocate<double>(room), second = world.allocate<double>(room);
    in_each_team(world, [&](Team& team, const TeamView& view) {
      const auto as = [&](auto like, auto&& array) {
        return Span<decltype(like)>(reinterpret_cast<decltype(like)*>(array.local()), room);
      };
      reduce_in(world, heap, team, view, as(double{}, first), as(double{}, second));
      reduce_in(world, heap, team, view, as(std::int64_t{}, first), as(std::int64_t{}, second));
      if (&team != &world.team() && team.size() > 1) return;  // the other types once
      reduce_in(world, heap, team, view, as(float{}, first), as(float{}, second));
      reduce_in(world, heap, team, view, as(std::uint8_t{}, first), as(std::uint8_t{}, second));
      reduce_in(world, heap, team, view, as(std::int16_t{}, first), as(std::int16_t{}, second));
      reduce_in(world, heap, team, view, as(std::uint32_t{}, first), as(std::uint32_t{}, second));
    });
    world.barrier();
  });
}

TEST_P(Collectives, sync_shows_what_lanes_store_and_barrier_what_they_put) {
  run([](World& world, const HeapView& heap) {
    const auto cells = world.allocate<int>(64);
    const KernelTeam team(world.team());
    run_block(world, {.lanes = 20}, [&, view = team.view()](const CpuLane& lane) {
      const auto block = lane.block();
      for (int round = 1; round <= 10; ++round) {
        cells[lane.index()] = round * 100 + world.rank();
        sync(block, heap, view);
        int seen[20];
        heap.get(lane.thread(), Span(seen, 20), Span<const int>(cells.local(), 20), next(world));
        for (const int one : seen)
          if (one != round * 100 + next(world)) throw make_error(ErrorCode::internal, "saw {} in {}", one, round);
        heap.p(lane.thread(), &cells[32 + lane.index()], round, next(world));
        barrier(block, heap, view);
        for (Index i = 32; i < 52; ++i)
          if (cells[i] != round) throw make_error(ErrorCode::internal, "{} was put in {}", cells[i], round);
        sync(block, heap, view);
      }
    });
    world.barrier();
  });
}

TEST_P(Collectives, of_blocks_in_teams_of_their_own) {
  run([](World& world, const HeapView& heap) {
    const auto values = world.allocate<int>(3);
    const KernelTeam teams[] = {KernelTeam(world.team()), KernelTeam(world.team()), KernelTeam(world.team())};
    run_grid(world, {.blocks = 3, .block = {.lanes = 4}}, [&](const CpuLane& lane) {
      const int at = lane.block_index();
      for (int round = 0; round < 20; ++round) {
        if (lane.index() == 0) values[at] = at + round;
        reduce(lane.block(), heap, teams[at].view(), Span(&values[at], 1), Span<const int>(&values[at], 1),
               Reduction::sum);
        if (values[at] != (at + round) * world.size()) throw make_error(ErrorCode::internal, "sum {}", values[at]);
        lane.block().sync();
      }
    });
    world.barrier();
  });
}

TEST_P(Collectives, ten_thousand_in_a_row) {
  const auto& [on, ranks, route] = GetParam();
  const int rounds = on == On::processes && ranks <= 2 && route == test::Route::memory ? 10'000 : 500;
  run([&](World& world, const HeapView& heap) {
    const auto turn = world.allocate<int>(1);
    const KernelTeam team(world.team());
    run_block(world, {.lanes = 1}, [&](const CpuLane& lane) {
      for (int round = 1; round <= rounds; ++round) {
        turn[0] = round;
        sync(lane.block(), heap, team.view());
        // No member is a whole meeting ahead.
        const int seen = heap.g(lane.block(), turn.local(), next(world));
        if (seen != round) throw make_error(ErrorCode::internal, "saw {} in round {}", seen, round);
        barrier(lane.block(), heap, team.view());
      }
    });
    world.barrier();
  });
}

TEST_P(Collectives, teams_come_and_go) {
  run([](World& world, const HeapView& heap) {
    // Words that others have had are zero again.
    for (int round = 0; round < 5; ++round) {
      const KernelTeam first(world.team());
      std::optional<Team> pair = world.team().split_strided({.count = (world.size() + 1) / 2});
      std::optional<KernelTeam> second;
      if (pair) second.emplace(*pair);
      run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
        for (int i = 0; i <= round; ++i) {
          sync(lane.block(), heap, first.view());
          if (second) barrier(lane.block(), heap, second->view());
        }
      });
    }
    world.barrier();
    require(world.heap_usage().blocks == 0, "{} blocks are left", world.heap_usage().blocks);
  });
}

TEST(CollectiveValues, nan_is_a_result_and_halves_are_summed) {
  test::run_on(On::threads, 3, [](World& world) {
    const HeapView heap = heap_view(world);
    const KernelTeam team(world.team());
    const auto reals = world.allocate<double>(2);
    const auto halves = world.allocate<float16>(2);
    const auto brains = world.allocate<bfloat16>(3);
    reals[0] = world.rank() == 1 ? std::numeric_limits<double>::quiet_NaN() : 3.0;
    reals[1] = world.rank() == 2 ? -0.5 : 3.0;
    halves[0].bits = halves[1].bits = 0x3c00;                                                    // 1
    for (bfloat16& one : brains.span()) one.bits = std::uint16_t(0x3f80 + 0x80 * world.rank());  // 1, 2, 4
    run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
      const auto all = [&](auto array, Reduction op) { reduce(lane.block(), heap, team.view(), array, array, op); };
      all(span_of(reals), Reduction::minimum);
      all(span_of(halves), Reduction::sum);
      all(span_of(brains), Reduction::product);
    });
    require(std::isnan(reals[0]) && !std::signbit(reals[0]) && reals[1] == -0.5, "{} {}", reals[0], reals[1]);
    require(halves[1].bits == 0x4200, "{:x}", halves[1].bits);  // 3
    require(brains[2].bits == 0x4100, "{:x}", brains[2].bits);  // 8
    world.barrier();
  });
}

TEST(CollectiveValues, are_the_same_on_all_members_to_the_bit) {
  for (const On on : {On::threads, On::messaged})
    test::run_on(on, 4, [](World& world) {
      HeapView heap = heap_view(world);
      const KernelTeam team(world.team());
      const auto values = world.allocate<float>(501), sums = world.allocate<float>(501);
      for (Index i = 0; i < 501; ++i)
        values[i] = std::ldexp(1.0f + float(i % 7) / 9.0f, (world.rank() * 11 + int(i)) % 40 - 20);
      run_block(world, {.lanes = 5}, [&](const CpuLane& lane) {
        reduce(lane.block(), heap, team.view(), span_of(sums), span_of(values), Reduction::sum);
      });
      std::vector<float> all(501 * 4);
      world.all_gather(sums.local(), 501 * sizeof(float), all.data());
      for (std::size_t i = 0; i < 501; ++i)
        for (std::size_t m = 1; m < 4; ++m)
          require(std::memcmp(&all[i], &all[m * 501 + i], sizeof(float)) == 0, "element {} of member {}", i, m);
    });
}

// Misuse.

/// What `call(block, heap, team, array)` throws, on one rank with an array of 8.
template <class F>
void expect_refused(std::initializer_list<const char*> parts, F&& call) {
  test::run_on(On::threads, 1, [&](World& world) {
    const auto array = world.allocate<int>(8);
    const KernelTeam team(world.team());
    const Error error = error_of_rank([&] {
      run_block(world, {.lanes = 3},
                [&](const CpuLane& lane) { call(lane.block(), heap_view(world), team.view(), array.local()); });
    });
    require_says(error, ErrorCode::invalid_use, parts);
    // Nothing has happened: the team is as good as before.
    run_block(world, {.lanes = 3}, [&](const CpuLane& lane) { sync(lane.block(), heap_view(world), team.view()); });
  });
}

TEST(CollectiveMisuse, is_found_before_anything_happens) {
  int local[8] = {};
  using Ints = Span<const int>;
  expect_refused({"broadcast(team 0x", "root 1", "there is no such member", "collectives_test.cpp:"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   broadcast(b, h, t, Span(a, 4), Ints(a + 4, 4), 1);
                 });
  expect_refused({"target elements 3, source elements 4", "fewer elements than the source"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   broadcast(b, h, t, Span(a, 3), Ints(a + 4, 4), 0);
                 });
  expect_refused({"reduce(", "the target overlaps the source"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   reduce(b, h, t, Span(a + 1, 4), Ints(a, 4), Reduction::sum);
                 });
  expect_refused(
      {"fcollect(", "the target overlaps the source"},
      [](const auto& b, const HeapView& h, const TeamView& t, int* a) { fcollect(b, h, t, Span(a, 4), Ints(a, 4)); });
  expect_refused({"alltoall(", "the source lies outside the symmetric heap"},
                 [&](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   alltoall(b, h, t, Span(a, 4), Ints(local, 4));
                 });
  expect_refused({"reducescatter(", "the target lies outside the symmetric heap"},
                 [&](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   reducescatter(b, h, t, Span(local, 4), Ints(a, 4), Reduction::sum);
                 });
  expect_refused({"reduce(", "these elements have no such operation"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   const Span<float> reals(reinterpret_cast<float*>(a), 4);
                   reduce(b, h, t, reals, reals, Reduction::bit_xor);
                 });
  expect_refused({"reduce(", "op 9", "no such operation"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   reduce(b, h, t, Span(a, 4), Ints(a, 4), static_cast<Reduction>(9));
                 });
  expect_refused({"reduce(", "not aligned to its elements"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
                   auto* odd = reinterpret_cast<int*>(reinterpret_cast<char*>(a) + 2);
                   reduce(b, h, t, Span(odd, 4), Ints(odd, 4), Reduction::sum);
                 });
  expect_refused({"sync(team 0", "no member of that team"},
                 [](const auto& b, const HeapView& h, const TeamView&, int*) { sync(b, h, TeamView{}); });
  expect_refused({"sync(team 0x", "no member of that team"}, [](const auto& b, const HeapView& h, TeamView t, int*) {
    t.first = 1;
    sync(b, h, t);
  });
  expect_refused({"barrier(team 0x", "no member of that team"},
                 [&](const auto& b, const HeapView& h, TeamView t, int*) {
                   t.words = reinterpret_cast<unsigned long long*>(local);
                   barrier(b, h, t);
                 });
}

TEST(CollectiveMisuse, lanes_that_diverge_are_named) {
  expect_refused(
      {"lanes 0 and 2 of block 0 call reduce (collectives_test.cpp:", "of their block with different", "op 0 and op 2"},
      [](const auto& b, const HeapView& h, const TeamView& t, int* a) {
        reduce(b, h, t, Span(a, 4), Span<const int>(a, 4), b.lane() < 2 ? Reduction::sum : Reduction::minimum);
      });
  expect_refused({"lane 2 has ended, but lane 0 is at sync (", "of its block, which all 3 lanes"},
                 [](const auto& b, const HeapView& h, const TeamView& t, int*) {
                   if (b.lane() < 2) sync(b, h, t);
                 });
  expect_refused({"lane 0 is at barrier (", "lane 1 at sync ("},
                 [](const auto& b, const HeapView& h, const TeamView& t, int*) {
                   if (b.lane() == 0)
                     barrier(b, h, t);
                   else
                     sync(b, h, t);
                 });
}

TEST(CollectiveMisuse, two_groups_in_one_team_are_refused) {
  const auto run = [](const LaneGrid& shape, auto&& kernel) {
    Error error(ErrorCode::internal, "nothing");
    try {
      test::run_on(On::threads, 2, [&](World& world) {
        const KernelTeam team(world.team());
        // Without the other member the first group stays in its call.
        if (world.rank() == 1) return world.wait_until([] { return false; }, "the end");
        run_grid(world, shape, [&](const CpuLane& lane) { kernel(lane, heap_view(world), team.view()); });
      });
    } catch (const Error& thrown) {
      error = thrown;
    }
    require_says(error, ErrorCode::invalid_use, {"sync(team 0x", "another group of lanes of this rank"});
  };
  run({.blocks = 1, .block = {.lanes = 2}},
      [](const CpuLane& lane, const HeapView& heap, const TeamView& team) { sync(lane.thread(), heap, team); });
  run({.blocks = 2, .block = {.lanes = 2}},
      [](const CpuLane& lane, const HeapView& heap, const TeamView& team) { sync(lane.block(), heap, team); });
}

TEST(KernelTeams, say_who_is_who) {
  test::run_on(On::threads, 5, [](World& world) {
    std::optional<Team> odd = world.team().split_strided({.first = 3, .stride = -2, .count = 2});
    if (!odd) return;
    const KernelTeam team(*odd);
    const TeamView& view = team.view();
    require(view.count == 2 && view.member == (world.rank() == 3 ? 0 : 1), "member {}", view.member);
    require(view.translate(0) == 3 && view.translate(1) == 1 && view.translate(2) == -1 && view.translate(-1) == -1,
            "ranks {} {}", view.translate(0), view.translate(1));
    require(view.member_of(3) == 0 && view.member_of(1) == 1, "{} {}", view.member_of(3), view.member_of(1));
    for (const int none : {0, 2, 4, 5, -1}) require(view.member_of(none) == -1, "rank {} is none", none);
  });
  static_assert(__is_trivially_copyable(TeamView));
}

TEST(KernelTeams, are_checked_as_blocks_are) {
  setenv("TRANSHIP_HEAP_CHECKS", "blocks", 1);
  for (const On on : {On::threads, On::processes, On::sim, On::messaged, On::hosts, On::sub, On::sub_messaged,
                      On::listed, On::listed_messaged})
    test::run_on(on, 3, [](World& world) {
      const auto value = world.allocate<int>(2);
      value[0] = value[1] = world.rank();
      const KernelTeam team(world.team());
      run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
        reduce(lane.block(), heap_view(world), team.view(), span_of(value), span_of(value), Reduction::sum);
      });
      require(value[1] == 3, "{}", value[1]);
      world.barrier();
    });
  unsetenv("TRANSHIP_HEAP_CHECKS");
}

TEST(KernelTeams, are_made_alike_or_not_at_all) {
  test::run_on(On::threads, 2, [](World& world) {
    const Error error = error_of_rank([&] {
      if (world.rank() == 0)
        KernelTeam team(world.team());
      else
        world.team().barrier();
    });
    require_says(error, ErrorCode::mismatch, {"kernel_team of ", "barrier ("});
  });
}

// Members that do not come.

TEST(CollectiveFailure, a_member_that_does_not_come_is_waited_for_until_the_deadline) {
  for (const On on : {On::threads, On::messaged}) {
    const Error error = error_of_rank([&] {
      test::run_on(on, {.ranks = 3}, [&](World& world) {
        const KernelTeam team(world.team());
        if (world.rank() == 2) return world.wait_until([] { return false; }, "something else");
        world.set_timeout_ns(50'000'000);
        run_block(world, {.lanes = 4},
                  [&](const CpuLane& lane) { barrier(lane.block(), heap_view(world), team.view()); });
      });
    });
    require_says(
        error, ErrorCode::timeout,
        {"for barrier of lane 0 of block 0 (rank ", ">= 1, sees 0; rank ", "should raise it", "collectives_test.cpp:"});
  }
}

TEST(CollectiveFailure, a_member_that_fails_or_finishes_is_named) {
  for (const On on : {On::threads, On::processes, On::sim, On::messaged, On::hosts})
    for (const bool fails : {true, false})
      for (const int lost : {0, 1, 2}) {
        const Error error = error_of_rank([&] {
          test::run_on(on, 3, [&](World& world) {
            const auto value = world.allocate<int>(4);
            const KernelTeam team(world.team());
            if (world.rank() == lost) {
              if (fails) throw Error(ErrorCode::io, "disk gone");
              return;
            }
            const Error mine = error_of_rank([&] {
              run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
                reduce(lane.block(), heap_view(world), team.view(), span_of(value), span_of(value), Reduction::sum);
              });
            });
            require_says(mine, ErrorCode::peer_lost, {fails ? "disk gone" : ""});
            if (!fails) throw mine;
          });
        });
        if (fails)
          require_says(error, ErrorCode::io, {"disk gone"});
        else
          require_says(error, ErrorCode::peer_lost,
                       {"has finished, but rank ", "waits for reduce of lane 0 of block 0"});
      }
}

TEST(CollectiveFailure, a_rank_that_dies_anywhere_leaves_no_one_waiting) {
  for (std::int64_t step = 20; step <= 120; step += 5) {
    const Error error = error_of_rank([&] {
      simulate({.ranks = 3, .seed = std::uint64_t(step), .peers = PeerKind::messaged, .death = {{1, step}}},
               [](World& world) {
                 const auto value = world.allocate<int>(16);
                 const KernelTeam team(world.team());
                 run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
                   for (int i = 0; i < 50; ++i)
                     reduce(lane.block(), heap_view(world), team.view(), span_of(value), span_of(value),
                            Reduction::maximum);
                 });
               });
    });
    require_says(error, ErrorCode::peer_lost, {"the simulation has ended it"});
  }
}

}  // namespace
}  // namespace tranship
