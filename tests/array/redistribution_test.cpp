#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

#include "support/thinned.hpp"

namespace tranship::redistribution_test {
namespace {

double value_of(const Indices& cell) {
  double out = 1;
  for (const Index i : cell) out = out * 1009 + double(i);
  return out;
}

class Schedules : public ::testing::TestWithParam<Schedule> {};

TEST_P(Schedules, RowsBecomeCyclicTilesAndComeBack) {
  launch(4, [](World& world) {
    const auto rows = distribution({37, 23}, grid(4, 1), {block(), whole()});
    const auto tiles =
        distribution({37, 23}, grid(2, 2), {cyclic(3).with_overlap(1, 2, EdgePolicy::toroidal), cyclic(5)});
    Array<double> a(world, rows), b(world, tiles), c(world, rows);
    a.fill_owned(value_of);
    Redistribution there(a, b, {.schedule = GetParam()}), back(b, c, {.schedule = GetParam()});
    for (int repeat = 0; repeat < 3; ++repeat) {
      there();
      EXPECT_EQ(b.count_wrong(value_of), 0);
      back();
      EXPECT_EQ(c.count_wrong(value_of), 0);
    }
  });
}

TEST_P(Schedules, HaloOfSeveralTypesInOneExchange) {
  launch(6, [](World& world) {
    const auto cells = distribution(
        {16, 9, 4}, grid(3, 2, 1),
        {block().with_overlap(2, 1, EdgePolicy::truncate), block().with_overlap(1, 1, EdgePolicy::replicate), whole()});
    Array<double> u(world, cells);
    Array<std::complex<float>> v(world, cells);
    u.fill_owned(value_of);
    v.fill_owned(
        [](const Indices& cell) { return std::complex<float>(float(cell[0]), float(cell[1] * 10 + cell[2])); });
    HaloExchange halo({u, v}, {}, HaloDirection::update, {.schedule = GetParam()});
    for (int repeat = 0; repeat < 3; ++repeat) halo();
    EXPECT_EQ(u.count_wrong(value_of), 0);
    EXPECT_EQ(v.count_wrong([](const Indices& cell) {
      return std::complex<float>(float(cell[0]), float(cell[1] * 10 + cell[2]));
    }),
              0);
  });
}

TEST_P(Schedules, TheAdjointCountsHowOftenACellIsStored) {
  launch(4, [](World& world) {
    const auto rows = distribution({11}, grid(4), {block()});
    const auto wide = distribution({11}, grid(4), {block().with_overlap(2, 1, EdgePolicy::truncate)});
    Array<int> a(world, rows), b(world, wide);
    RedistributionAdjoint add(a, b, {.schedule = GetParam()});
    a.fill_owned([](const Indices&) { return 1000; });
    for_each_coordinate(b.extents(), [&](const Indices& local) { b.put(local, 1); });
    add();
    EXPECT_EQ(a.count_wrong([&](const Indices& cell) {
      int stored = 0;
      for (Rank r = 0; r < 4; ++r) {
        const Slice part = wide.slice(r, 0);
        stored += cell[0] >= part.stored.lower[0] && cell[0] < part.stored.upper[0];
      }
      return 1000 + stored;
    }),
              0);
  });
}

TEST_P(Schedules, APlanIsUsedAgainForArraysOfItsLayoutsOnly) {
  launch(2, [](World& world) {
    const auto rows = distribution({6, 4}, grid(2, 1), {block(), whole()});
    const auto columns = distribution({6, 4}, grid(1, 2), {whole(), block()});
    // Its local extents are those of `rows`, its cells are others.
    const auto others = distribution({6, 4}, grid(2, 1), {cyclic(1), whole()});
    Array<double> a(world, rows), b(world, columns), c(world, others);
    const TransferPlan plan = plan_redistribution(*a.ref().spec, *b.ref().spec, world.rank());
    a.fill_owned(value_of);
    Redistribution(a, b, plan, {.schedule = GetParam()})();
    EXPECT_EQ(b.count_wrong(value_of), 0);
    for (const auto& wrong : {plan, adjoint(plan)}) {
      try {
        Redistribution(wrong.kind == plan.kind ? c : a, b, wrong, {.schedule = GetParam()});
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::mismatch) << error.what();
      }
    }
  });
}

TEST(Redistribution, ALargeMessageIsMovedByBothOfItsRanks) {
  // All cells go from rank 0 to rank 1, and back.
  launch(2, [](World& world) {
    const Indices extents = {1024, 700};
    const Distribution here(extents, Grid({1, 1}, {.ranks = {0}}), {block(), block()});
    const Distribution there(extents, Grid({1, 1}, {.ranks = {1}}), {block(), block()});
    const Array<double> a(world, here), b(world, there);
    Redistribution forth(a, b), back(b, a);
    for (int turn = 0; turn < (test::is_brief() ? 6 : 20); ++turn) {
      a.fill_owned([&](const Indices& cell) { return turn + 700.0 * double(cell[0]) + double(cell[1]); });
      forth();
      if (world.rank() == 1)
        for (Index i = 0; i < 1024 * 700; ++i) ASSERT_EQ(b.data()[i], turn + double(i));
      back();
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, Schedules, ::testing::Values(Schedule::direct, Schedule::staged),
                         [](const auto& info) { return info.param == Schedule::direct ? "direct" : "staged"; });

}  // namespace
}  // namespace tranship::redistribution_test
