// Halo exchanges as their users run them: started and finished apart, run backward, on tilings, moved from hand to
// hand.
#include <memory>

#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

namespace tranship::test {
namespace {

class Halos : public ::testing::TestWithParam<Schedule> {};

TEST_P(Halos, OverlapComputationWithSeveralExchangesInFlight) {
  const Distribution ring({12}, grid(4), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(4, [&](World& world) {
    const Array<double> u(world, ring), v(world, ring);
    HaloExchange first({u}, {}, HaloDirection::update, {.schedule = GetParam()});
    HaloExchange second({v}, {}, HaloDirection::update, {.schedule = GetParam()});
    for (int step = 0; step < 20; ++step) {
      u.fill_owned([&](const Indices& cell) { return 100 * step + double(cell[0]); });
      first.start();
      v.fill_owned([&](const Indices& cell) { return -100 * step - double(cell[0]); });
      second.start();
      // In whatever order; test() alone gets there, too.
      if (step % 2 == 0) {
        second.finish();
        first.finish();
      } else {
        WaitNote note("both halos");
        world.wait_until(
            [&] {
              const bool done = first.test();
              return second.test() && done;
            },
            note);
      }
      const Index left = (3 * world.rank() + 11) % 12, right = (3 * world.rank() + 3) % 12;
      EXPECT_EQ(u(0), 100 * step + left);
      EXPECT_EQ(u(4), 100 * step + right);
      EXPECT_EQ(v(0), -u(0));
      EXPECT_EQ(v(4), -u(4));
    }
  });
}

// Code for any width of overlap runs with none.
TEST_P(Halos, OfArraysWithoutOverlapMoveNothing) {
  const Distribution none({6, 4}, grid(2, 2), {block(), block()});
  const Distribution some({6, 4}, grid(2, 2), {block().with_overlap(1, 1, EdgePolicy::toroidal), block()});
  launch(4, [&](World& world) {
    const Array<double> a(world, none), b(world, some);
    const auto value = [](const Indices& cell) { return 1.5 + double(10 * cell[0] + cell[1]); };
    for (const HaloDirection direction : {HaloDirection::update, HaloDirection::adjoint}) {
      a.fill_owned(value);
      HaloExchange alone({a}, {}, direction, {.schedule = GetParam()});
      alone();
      EXPECT_EQ(a.count_wrong(value), 0);
    }
    a.fill_owned(value);
    b.fill_owned(value);
    HaloExchange both({a, b}, {}, HaloDirection::update, {.schedule = GetParam()});
    both();
    EXPECT_EQ(a.count_wrong(value), 0);
    EXPECT_EQ(b.count_wrong(value), 0);
  });
}

TEST_P(Halos, TheAdjointKeepsInnerProducts) {
  // <H x, y> = <x, H' y> for the halo H, in integers, so exactly.
  const Distribution boxes(
      {7, 6}, grid(2, 2),
      {block().with_overlap(2, 1, EdgePolicy::toroidal), block().with_overlap(1, 1, EdgePolicy::replicate)});
  launch(4, [&](World& world) {
    const Array<std::int64_t> x(world, boxes), y(world, boxes);
    Index seed = 17 * world.rank() + 1;
    auto random = [&] { return (seed = (seed * 1103515245 + 12345) % 2147483648) / 65536 % 19 - 9; };
    auto inner = [&](const Array<std::int64_t>& a, const Array<std::int64_t>& b) {
      std::int64_t sum = 0;
      for_each_coordinate(a.extents(), [&](const Indices& local) { sum += a.get(local) * b.get(local); });
      std::int64_t all = 0;
      for (const std::int64_t part : world.all_gather(sum)) all += part;
      return all;
    };
    HaloExchange forward({x}, {}, HaloDirection::update, {.schedule = GetParam()});
    HaloExchange backward({y}, {}, HaloDirection::adjoint, {.schedule = GetParam()});
    for (int repeat = 0; repeat < 3; ++repeat) {
      // Ghosts of x start at 0 and are overwritten; those of y are read and become 0.
      for_each_coordinate(x.extents(), [&](const Indices& local) { x.put(local, 0); });
      x.fill_owned([&](const Indices&) { return random(); });
      for_each_coordinate(y.extents(), [&](const Indices& local) { y.put(local, random()); });
      const Array<std::int64_t> x_before(world, boxes), y_before(world, boxes);
      for_each_coordinate(x.extents(), [&](const Indices& local) {
        x_before.put(local, x.get(local));
        y_before.put(local, y.get(local));
      });
      forward();
      backward();
      EXPECT_EQ(inner(x, y_before), inner(x_before, y));
    }
  });
}

TEST_P(Halos, GoOverTheEdgesOfTiles) {
  // Two ranks, each of which has half of the one tile, that is periodic both ways.
  const Tiling torus = doubly_periodic(4, 6);
  const Partition cells = block().with_overlap(1, 1, EdgePolicy::open);
  const Distribution tile({4, 6}, grid(1, 2), {cells, cells});
  launch(2, [&](World& world) {
    const Array<double> u(world, tile);
    u.fill_owned([](const Indices& cell) { return double(10 * cell[0] + cell[1]); });
    HaloExchange halo(torus, {{.tiles = {u}, .tile_dims = {0, 1}}}, {}, HaloDirection::update,
                      {.schedule = GetParam()});
    halo();
    for_each_stored(tile, world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
      EXPECT_EQ(u.get(local), 10 * floor_modulo(cell.at[0], 4) + floor_modulo(cell.at[1], 6));
    });
  });
}

TEST_P(Halos, KeepTheirArraysAndCanBeMovedInFlight) {
  const Distribution ring({8}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(2, [&](World& world) {
    std::vector<HaloExchange> halos;
    double* ghosts = nullptr;
    {
      const Array<double> u(world, ring);  // the exchange keeps its memory
      u.fill_owned([](const Indices& cell) { return double(cell[0]); });
      ghosts = u.data();
      HaloExchange halo({u}, {}, HaloDirection::update, {.schedule = GetParam()});
      halo.start();
      halos.push_back(std::move(halo));
    }
    halos[0].finish();
    EXPECT_EQ(ghosts[0], world.rank() == 0 ? 7 : 3);
    EXPECT_EQ(ghosts[5], world.rank() == 0 ? 4 : 0);
  });
}

TEST(HaloExchange, AMeasuredScheduleIsSaidAndCanBeRepeated) {
  launch(3, [](World& world) {
    const Distribution rows({30, 20}, grid(3, 1), {block().with_overlap(1, 1, EdgePolicy::toroidal), whole()});
    Array<float> field(world, rows);
    field.fill_owned([](const Indices& cell) { return float(cell[0]); });
    HaloExchange tuned({field}, {}, HaloDirection::update, {.schedule = Schedule::measured});
    for (const char* name : {"measured: automatic", "measured: direct", "measured: staged"})
      EXPECT_NE(tuned.explain().find(name), std::string::npos) << tuned.explain();
    HaloExchange again({field}, {}, HaloDirection::update, {.schedule = tuned.schedule()});
    EXPECT_EQ(again.schedule(), tuned.schedule());
    for (HaloExchange* halo : {&tuned, &again}) {
      field(0, 0) = field(11, 0) = -1;
      (*halo)();
      EXPECT_EQ(field(0, 0), float((10 * world.rank() + 29) % 30));
      EXPECT_EQ(field(11, 0), float((10 * world.rank() + 10) % 30));
    }
  });
}

/// Which is moved as bytes.
struct Pair {
  double first, second;
};

TEST(HaloExchange, StructsAreCutToCellsToo) {
  launch(2, [](World& world) {
    const Distribution ring({8}, grid(2), {block().with_overlap(2, 2, EdgePolicy::toroidal)});
    const Array<Pair> pairs(world, ring);
    const Array<double> numbers(world, ring);
    pairs.fill_owned([](const Indices& cell) { return Pair{double(cell[0] + 1), -double(cell[0] + 1)}; });
    numbers.fill_owned([](const Indices& cell) { return double(cell[0] + 1); });
    HaloExchange({pairs, numbers}, {.cells = {{Box{{3}, {5}}}, {Box{{3}, {5}}}}})();
    for_each_stored(ring, world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
      const Index at = floor_modulo(cell.at[0], 8);
      const double expected = cell.owned || at == 3 || at == 4 ? double(at + 1) : 0;
      EXPECT_EQ(numbers.get(local), expected) << cell.at[0];
      EXPECT_EQ(pairs.get(local).first, expected) << cell.at[0];
      EXPECT_EQ(pairs.get(local).second, -expected) << cell.at[0];
    });
  });
}

TEST(HaloExchange, MeasuringDoesNotAddUpAnAdjoint) {
  launch(2, [](World& world) {
    const Distribution ring({6}, grid(2), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
    Array<double> field(world, ring);
    for (Index i = 0; i < 5; ++i) field(i) = 1;
    HaloExchange back({field}, {}, HaloDirection::adjoint, {.schedule = Schedule::measured});
    back();
    EXPECT_EQ(field(1), 2);
    EXPECT_EQ(field(2), 1);
    EXPECT_EQ(field(0), 0);
  });
}

TEST(HaloExchange, ShortRunsAreStagedAndLongOnesGoStraight) {
  // 2 x 2 ranks, a ghost on each side: to the left and the right one cell a row, above and below whole rows.
  launch(4, [](World& world) {
    const Partition cells = block().with_overlap(1, 1, EdgePolicy::toroidal);
    const Distribution tiles({400, 400}, grid(2, 2), {cells, cells});
    Array<double> field(world, tiles);
    field.fill_owned([](const Indices& cell) { return double(1000 * cell[0] + cell[1]); });
    HaloExchange halo({field});
    EXPECT_EQ(halo.schedule(), Schedule::automatic);
    const std::string text = halo.explain();
    for (const char* part : {"direct and staged, by message", ", direct: ", ", staged: "})
      EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
    for (int turn = 0; turn < 3; ++turn) {
      halo();
      const Index row = 200 * (world.rank() / 2), column = 200 * (world.rank() % 2);
      for (Index i = 0; i < 202; ++i)
        for (Index j = 0; j < 202; ++j)
          ASSERT_EQ(field(i, j), double(1000 * ((row + i + 399) % 400) + (column + j + 399) % 400)) << i << ' ' << j;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Halos, ::testing::Values(Schedule::direct, Schedule::staged),
                         [](const auto& info) { return info.param == Schedule::direct ? "direct" : "staged"; });

}  // namespace
}  // namespace tranship::test
