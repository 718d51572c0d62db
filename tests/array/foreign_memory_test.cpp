// Redistributions and halos over foreign memory of every kind, in worlds of 1 to 16 ranks.
#include "array/foreign_memory.hpp"

#include <memory>

#include <gtest/gtest.h>

#include <tranship/tranship.hpp>

namespace tranship::test::foreign_memory_test {
namespace {

double value_of(const Indices& cell) {
  double out = 1;
  for (const Index i : cell) out = out * 1009 + double(i);
  return out;
}

/// Stored elements that differ from the value of their cell on an array that is periodic in all dimensions.
Index count_wrong_periodic(const Array<double>& array) {
  Index wrong = 0;
  for_each_stored(array.distribution(), array.world().rank(),
                  [&](const Indices& local, const Distribution::Cell& cell) {
                    Indices at = cell.at;
                    for (int d = 0; d < at.size(); ++d) at[d] = floor_modulo(at[d], array.distribution().extents()[d]);
                    wrong += array.get(local) != value_of(at);
                  });
  return wrong;
}

struct Case {
  int ranks;
  Indices grid;
};

class ForeignWorlds : public ::testing::TestWithParam<Case> {};

TEST_P(ForeignWorlds, RedistributionsFillEveryElementAndNothingElse) {
  const auto& [ranks, shape] = GetParam();
  const Distribution rows({29, 17}, Grid({ranks, 1}), {block(), whole()});
  const Distribution tiles(
      {29, 17}, Grid(shape),
      {cyclic(3).with_overlap(1, 2, EdgePolicy::toroidal), cyclic(2).with_overlap(2, 0, EdgePolicy::toroidal)});
  launch(ranks, [&](World& world) {
    for (const Lie from : all_lies)
      for (const Lie to : all_lies)
        for (const Schedule schedule : {Schedule::direct, Schedule::staged}) {
          const std::string what = name_of(from) + " to " + name_of(to) + " on rank " + std::to_string(world.rank());
          ForeignMemory there(rows.local_extents(world.rank()), from), here(tiles.local_extents(world.rank()), to),
              back(rows.local_extents(world.rank()), to);
          const Array<double> a(world, rows, there.view()), b(world, tiles, here.view()), c(world, rows, back.view());
          a.fill_owned(value_of);
          Redistribution(a, b, {.schedule = schedule})();
          EXPECT_EQ(count_wrong_periodic(b), 0) << what;
          Redistribution(b, c, {.schedule = schedule})();
          EXPECT_EQ(c.count_wrong(value_of), 0) << what;
          EXPECT_EQ(a.count_wrong(value_of), 0) << what;
          // Nobody reads or writes the memory any more once all have finished.
          world.barrier();
          EXPECT_EQ(there.count_touched() + here.count_touched() + back.count_touched(), 0) << what;
        }
  });
}

TEST_P(ForeignWorlds, HalosOfArraysThatLieDifferentlyInOneExchange) {
  const auto& [ranks, shape] = GetParam();
  const Partition cells = block().with_overlap(1, 1, EdgePolicy::toroidal);
  const Distribution boxes({9, 8, 5}, Grid({shape[0], shape[1], 1}), {cells, cells, cells});
  launch(ranks, [&](World& world) {
    for (const Schedule schedule : {Schedule::direct, Schedule::staged}) {
      std::vector<std::unique_ptr<ForeignMemory>> memories;
      std::vector<Array<double>> arrays;
      std::vector<ArrayRef> fields;
      for (const Lie lie : all_lies) {
        memories.push_back(std::make_unique<ForeignMemory>(boxes.local_extents(world.rank()), lie));
        arrays.emplace_back(world, boxes, memories.back()->view());
        fields.push_back(arrays.back());
      }
      HaloExchange halo(fields, {}, HaloDirection::update, {.schedule = schedule});
      for (int repeat = 0; repeat < 2; ++repeat) {
        for (const auto& array : arrays) array.fill_owned(value_of);
        halo();
        for (const auto& array : arrays) EXPECT_EQ(count_wrong_periodic(array), 0);
        for (const auto& memory : memories) EXPECT_EQ(memory->count_touched(), 0);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Worlds, ForeignWorlds,
                         ::testing::Values(Case{1, {1, 1}}, Case{2, {1, 2}}, Case{3, {3, 1}}, Case{4, {2, 2}},
                                           Case{8, {4, 2}}, Case{16, {4, 4}}),
                         [](const auto& info) { return std::to_string(info.param.ranks) + "_ranks"; });

TEST(ForeignMemory, FieldsThatLieInterleavedShareOneExchange) {
  const Distribution ring({24}, grid(3), {block().with_overlap(1, 1, EdgePolicy::toroidal)});
  launch(3, [&](World& world) {
    struct Cell {
      double u, v;
    };
    std::vector<Cell> cells(10);
    auto view = [&](double& first) {
      return StridedView{.data = &first, .type = ElementType::f64, .extents = {10}, .strides = {2}};
    };
    const Array<double> u(world, ring, view(cells[0].u)), v(world, ring, view(cells[0].v));
    u.fill_owned(value_of);
    v.fill_owned([](const Indices& cell) { return -value_of(cell); });
    HaloExchange({u, v})();
    EXPECT_EQ(count_wrong_periodic(u), 0);
    for (const Cell& cell : cells) EXPECT_EQ(cell.v, -cell.u);
  });
}

}  // namespace
}  // namespace tranship::test::foreign_memory_test
