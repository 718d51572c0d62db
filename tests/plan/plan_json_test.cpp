// Plans as files: they come back equal; what does not make sense is refused, saying what and where.
#include <algorithm>
#include <functional>

#include <gtest/gtest.h>

#include <tranship/layout/json.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/plan_json.hpp>

#include "fuzz/plan_check.hpp"
#include "support/golden.hpp"
#include "support/random_plans.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;

/// Rank 1 of a redistribution from four blocks to 2 x 2 cyclic tiles with overlap.
TransferPlan tiles_plan() {
  const ArraySpec rows{ElementType::f64, Distribution({16, 12}, grid(4, 1), {block(), whole()})};
  const ArraySpec tiles{ElementType::f64, Distribution({16, 12}, grid(2, 2),
                                                       {cyclic(2).with_overlap(1, 1, EdgePolicy::zero), cyclic(3)})};
  return plan_redistribution(rows, tiles, 1);
}

/// Rank 0 of the halos of two fields, periodic in one dimension, together.
TransferPlan halo_plan() {
  const std::vector<Partition> cut = {block().with_overlap(1, 2, EdgePolicy::toroidal),
                                      block().with_overlap(1, 1, EdgePolicy::replicate)};
  const std::vector<ArraySpec> fields = {{ElementType::f32, Distribution({8, 9}, grid(2, 3), cut)},
                                         {ElementType::i16, Distribution({9, 9}, grid(2, 3), cut)}};
  return plan_halo(fields, 0);
}

/// Rank 2 of a redistribution from id lists to blocks.
TransferPlan lists_plan() {
  const ArraySpec lists{ElementType::i32,
                        Distribution::indexed({7, 2}, 1, grid(3), {{{0, 6, 2}, {3}}, {{5, 1}, {}}, {{3, 4}, {0, 1}}})};
  const ArraySpec blocks{ElementType::i32, Distribution({7, 2}, grid(3, 1), {block(), whole()})};
  return plan_redistribution(lists, blocks, 2);
}

/// One group of runs along one dimension, from a peer, into an array of `extent` cells.
TransferPlan plan_of_runs(std::vector<Run> runs, Index extent) {
  TransferPlan plan;
  plan.rank = 0;
  plan.slots = {{ElementType::u8, {extent}}, {ElementType::u8, {extent}}};
  plan.receives = {{.source_slot = 0,
                    .target_slot = 1,
                    .source_dims = {0},
                    .target_dims = {0},
                    .axes = {{{.peer = 0, .runs = std::move(runs)}}},
                    .peers = {1}}};
  return plan;
}

TEST(PlanJson, Golden) {
  EXPECT_TRUE(matches_golden("plan/tiles.json", save_plan(tiles_plan())));
  EXPECT_TRUE(matches_golden("plan/halo.json", save_plan(halo_plan())));
  EXPECT_TRUE(matches_golden("plan/lists.json", save_plan(lists_plan())));
  EXPECT_TRUE(matches_golden("plan/halo_minimum.json", save_plan(adjoint(halo_plan(), Combine::minimum))));
}

TEST(PlanJson, PlansComeBackEqual) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const TransferPlan plan = random_plan(random);
                          if (const Result<void> ok = check_plan(plan); !ok) return "refused: " + ok.error().message();
                          const auto verdict = testing::check_plan_text(save_plan(plan));
                          if (!verdict.accepted) return "the saved plan is refused";
                          if (!(load_plan(save_plan(plan)) == plan)) return "the loaded plan is another";
                          return verdict.violation;
                        }),
            "");
}

TEST(PlanJson, PlansOnTilingsComeBackEqual) {
  const Tiling cube = cubed_sphere(6);
  std::vector<TiledField> fields(2);
  for (TiledField& field : fields) {
    field.tile_dims = {0, 1};
    for (int t = 0; t < 6; ++t)
      field.tiles.push_back({ElementType::f64, Distribution({6, 6}, Grid({2, 1}, {.first = 2 * t}),
                                                            {block().with_overlap(2, 2, EdgePolicy::open),
                                                             block().with_overlap(2, 2, EdgePolicy::open)})});
  }
  for (Rank rank = 0; rank < 12; ++rank) {
    const TransferPlan plan =
        plan_halo(cube, fields, rank, {.vectors = {{{.field = 0, .along = 0}, {.field = 1, .along = 1}}}});
    for (const TransferPlan& one : {plan, adjoint(plan)}) {
      const auto verdict = testing::check_plan_text(save_plan(one));
      EXPECT_TRUE(verdict.accepted) << check_plan(one).error().message();
      EXPECT_EQ(verdict.violation, "");
      EXPECT_TRUE(load_plan(save_plan(one)) == one);
    }
  }
}

TEST(PlanJson, TheCheckOfTextsNoticesAWrongWriter) {
  const std::string text = save_plan(tiles_plan());
  EXPECT_EQ(testing::check_plan_text(text).violation, "");
  auto forgetful = [](const TransferPlan& plan) {
    TransferPlan other = plan;
    other.sends.clear();
    return save_plan(other);
  };
  EXPECT_NE(testing::check_plan_text(text, forgetful).violation.find("sends"), std::string::npos);
}

TEST(CheckPlan, SizesDoNotMatter) {
  const ArraySpec source{ElementType::f32,
                         Distribution({1'000'000'000'000}, grid(16), {cyclic(64).with_overlap(3, 3)})};
  const ArraySpec target{ElementType::f32, Distribution({1'000'000'000'000}, grid(24),
                                                        {cyclic(100).with_overlap(3, 3, EdgePolicy::toroidal)})};
  const TransferPlan plan = plan_redistribution(source, target, 5);
  EXPECT_TRUE(check_plan(plan).ok());
  EXPECT_TRUE(load_plan(save_plan(plan)) == plan);
  // One cell more on one of many runs of 10^9 stretches: it meets the next run.
  TransferPlan wrong = plan;
  tranship::Run& run = wrong.receives[0].axes[0][3].runs[1];
  ASSERT_GT(run.count, 1'000'000);
  run.target -= 1;
  const Result<void> result = check_plan(wrong);
  ASSERT_FALSE(result.ok());
  EXPECT_NE(result.error().message().find("twice"), std::string::npos) << result.error().message();
}

TransferPlan lattice_plan() {
  const ArraySpec source{ElementType::f32, Distribution({3001, 2}, grid(3, 1), {cyclic(19), whole()})};
  const ArraySpec target{ElementType::f32, Distribution({3001, 2}, grid(2, 2), {cyclic(23), block()})};
  return plan_redistribution(source, target, 1);
}

TEST(PlanJson, LatticesComeBack) {
  const TransferPlan plan = lattice_plan();
  ASSERT_FALSE(plan.receives[0].axes[0][0].lattices.empty());
  const std::string text = save_plan(plan);
  EXPECT_LT(text.size(), 3000u);
  EXPECT_TRUE(load_plan(text) == plan);
  EXPECT_EQ(testing::check_plan_text(text).violation, "");
  TransferPlan other = plan;
  other.receives[0].axes[0][0].lattices[0].distance += 1;
  EXPECT_NE(diff_plans(plan, other).find("receives[0].axes[0][0].lattices[0][10]"), std::string::npos)
      << diff_plans(plan, other);
  std::string short_text = text;
  const std::size_t at = short_text.find("\"lattices\":[[") + 13;
  short_text.erase(at, short_text.find(',', at) + 1 - at);
  const Result<TransferPlan> loaded = try_load_plan(short_text);
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().message().find("a lattice has 10 numbers; expected 11"), std::string::npos)
      << loaded.error().message();
}

TEST(CheckPlan, SaysWhatIsWrongWithLattices) {
  const TransferPlan right = lattice_plan();
  EXPECT_TRUE(check_plan(right).ok());
  const auto fault_with = [&](auto change) {
    TransferPlan plan = right;
    change(plan.receives[0].axes[0][0].lattices[0]);
    const Result<void> result = check_plan(plan);
    return result.ok() ? std::string() : result.error().message();
  };
  const auto expect = [&](const char* message, auto change) {
    const std::string fault = fault_with(change);
    EXPECT_NE(fault.find(message), std::string::npos) << message << ", not: " << fault;
  };
  expect("receives[0].axes[0][0].lattices[0]: target cells", [](RunLattice& l) { l.target.start = 3000; });
  expect("receives[0].axes[0][0].lattices[0]: target cells", [](RunLattice& l) { l.target.pitch = INT64_MAX; });
  expect("source cells", [](RunLattice& l) { l.source.start = -1; });
  expect("do not form a lattice", [](RunLattice& l) { l.source.period = 18; });
  expect("do not form a lattice", [](RunLattice& l) { l.source.count = 0; });
  expect("do not form a lattice", [](RunLattice& l) { l.distance = INT64_MIN; });
  expect("do not form a lattice", [](RunLattice& l) { l.source.period = l.target.period = 23 * 46; });
  expect("gives 0 stretches", [](RunLattice& l) { l.distance = INT64_MAX / 4; });
  // Another cell of the source for each of the target: some of these another part gives.
  expect("twice", [](RunLattice& l) { l.distance += 19; });
}

struct Wrong {
  const char* message;
  std::function<void(TransferPlan&)> make;
};

TEST(CheckPlan, SaysWhatIsWrongAndWhere) {
  using G = ElementMap;
  const Wrong cases[] = {
      {"rank: -1 is below 0", [](TransferPlan& p) { p.rank = -1; }},
      {"slots[0]: has 0 dimensions", [](TransferPlan& p) { p.slots[0].local_extents = {}; }},
      {"slots[1]: has extents [-3, 6]; one is below 0",
       [](TransferPlan& p) {
         p.slots[1].local_extents = {-3, 6};
       }},
      {"slots[0]:",
       [](TransferPlan& p) {
         p.slots[0].local_extents = {INT64_MAX / 2, 4};
       }},
      {"receives[0]: names slot 2 of 2", [](TransferPlan& p) { p.receives[0].source_slot = 2; }},
      {"sends[0]: names slot -1 of 2", [](TransferPlan& p) { p.sends[0].target_slot = -1; }},
      {"receives[0]: the source has elements i8, the target f64",
       [](TransferPlan& p) { p.slots[0].type = ElementType::i8; }},
      {"receives[0]: element map accumulate does not fit a plan of kind redistribution",
       [](TransferPlan& p) { p.receives[0].map = G::accumulate; }},
      {"sends[0]: element map copy does not fit a plan of kind halo_adjoint",
       [](TransferPlan& p) {
         p.kind = PlanKind::halo_adjoint;
         for (TransferGroup& g : p.receives) g.map = G::accumulate;
       }},
      {"receives[0]: element map negate cannot be applied to elements bool8",
       [](TransferPlan& p) {
         p.slots[0].type = p.slots[1].type = ElementType::bool8;
         p.receives[0].map = G::negate;
       }},
      {"receives[0]: 1 table for a source of 2 dimensions", [](TransferPlan& p) { p.receives[0].axes.pop_back(); }},
      {"receives[0]: source dimensions [0, 0] are not a permutation of 0 to 1",
       [](TransferPlan& p) {
         p.receives[0].source_dims = {0, 0};
       }},
      {"sends[0]: target dimensions [1, 0, 2] are not a permutation of 0 to 1",
       [](TransferPlan& p) {
         p.sends[0].target_dims = {1, 0, 2};
       }},
      {"receives[0]: names grid 2 of 2", [](TransferPlan& p) { p.receives[0].peer_grid = 2; }},
      {"receives[0]: names grid -2; -1 means none",
       [](TransferPlan& p) {
         p.receives[0].peer_grid = -2;
         p.receives[0].peers.assign(p.receives[0].combinations(), 0);
       }},
      {"receives[0]: names replica 1 of 1", [](TransferPlan& p) { p.receives[0].peer_replica = 1; }},
      {"receives[0]: the group has a list of 1 peer and names grid 0",
       [](TransferPlan& p) { p.receives[0].peers = {0}; }},
      {"receives[0]: 0 peers for", [](TransferPlan& p) { p.receives[0].peer_grid = -1; }},
      {"sends[0]: peer -2 is below -1",
       [](TransferPlan& p) {
         p.sends[0].peer_grid = -1;
         p.sends[0].peers.assign(p.sends[0].combinations(), -2);
       }},
      {"receives[0]: peer coordinate 4 of table 0 is outside the grid's 4",
       [](TransferPlan& p) { p.receives[0].axes[0].back().peer = 4; }},
      {"receives[0]: peer coordinate 0 of table 0 follows 0; they must increase",
       [](TransferPlan& p) { p.receives[0].axes[0][1].peer = 0; }},
      {"receives[0]: peer coordinate -5 of table 1 is below 0",
       [](TransferPlan& p) { p.receives[0].axes[1][0].peer = -5; }},
      {"receives[0].axes[0][1]: gives 0 runs", [](TransferPlan& p) { p.receives[0].axes[0][1].runs.clear(); }},
      {"receives[0].axes[0][0].runs[0]: 1 stretch of 0 cells",
       [](TransferPlan& p) { p.receives[0].axes[0][0].runs[0] = {.length = 0}; }},
      {"receives[0].axes[0][0].runs[0]: -7 stretches of 1 cell",
       [](TransferPlan& p) { p.receives[0].axes[0][0].runs[0] = {.length = 1, .count = -7}; }},
      {"receives[0].axes[0][0].runs[0]: step 2 is not -1, 0 or 1",
       [](TransferPlan& p) { p.receives[0].axes[0][0].runs[0].target_step = 2; }},
      {"sends[0].axes[0][0].runs[0]: source cells 1 to 4 are outside [0, 4)",
       [](TransferPlan& p) { p.sends[0].axes[0][0].runs[0] = {.source = 1, .length = 4}; }},
      {"sends[0].axes[0][0].runs[0]: target cells -1 to 0 are outside",
       [](TransferPlan& p) { p.sends[0].axes[0][0].runs[0] = {.target = -1, .length = 2}; }},
      {"sends[0].axes[0][0].runs[0]: source cells",
       [](TransferPlan& p) {
         p.sends[0].axes[0][0].runs[0] = {.length = 1, .count = INT64_MAX, .source_pitch = INT64_MAX};
       }},
      {"sends[0].axes[0][0].runs[0]: source cells",
       [](TransferPlan& p) {
         p.sends[0].axes[0][0].runs[0] = {.length = INT64_MAX, .count = INT64_MAX, .source_pitch = INT64_MIN};
       }},
      {"receives[0]: element map minimum cannot be applied to elements c128",
       [](TransferPlan& p) {
         p = adjoint(p);
         p.slots[0].type = p.slots[1].type = ElementType::c128;
         p.receives[0].map = G::minimum;
       }},
      {"fills_after[0]: elements c128 cannot be combined by product",
       [](TransferPlan& p) {
         p.receives.clear();
         p.sends.clear();
         p.slots[1].type = ElementType::c128;
         p.fills_after[0].combine = Combine::product;
       }},
      {"fills_after[0]: a fill that replicates cannot combine by maximum",
       [](TransferPlan& p) {
         p.fills_after[0].kind = LocalFillKind::replicate;
         p.fills_after[0].combine = Combine::maximum;
       }},
      {"fills_after[0]: names slot 9 of 2", [](TransferPlan& p) { p.fills_after[0].slot = 9; }},
      {"fills_after[0]: 1 table for a slot of 2 dimensions", [](TransferPlan& p) { p.fills_after[0].axes.pop_back(); }},
      {"fills_after[0].axes[0][0]: target cells",
       [](TransferPlan& p) { p.fills_after[0].axes[0][0].target = INT64_MAX; }},
      {"fills_after[0].axes[0][0]: source cells",
       [](TransferPlan& p) {
         p.fills_after[0].kind = LocalFillKind::replicate;
         p.fills_after[0].axes[0][0].source = -1;
       }},
      {"receives[0].axes[1]: writes a cell of dimension 1 of slot 1 twice",
       [](TransferPlan& p) {
         auto& runs = p.receives[0].axes[1][0].runs;
         runs.push_back(runs[0]);
       }},
      {"receives[1]: writes a cell of slot 1 that receives[0] writes too",
       [](TransferPlan& p) { p.receives.push_back(p.receives[0]); }},
  };
  const TransferPlan good = tiles_plan();
  ASSERT_TRUE(check_plan(good).ok()) << check_plan(good).error().message();
  ASSERT_FALSE(good.fills_after.empty());
  for (const Wrong& wrong : cases) {
    TransferPlan plan = good;
    wrong.make(plan);
    const Result<void> result = check_plan(plan);
    ASSERT_FALSE(result.ok()) << wrong.message;
    EXPECT_EQ(result.error().code(), ErrorCode::invalid_use);
    EXPECT_TRUE(result.error().message().starts_with(wrong.message))
        << result.error().message() << "\nnot " << wrong.message;
    const Result<TransferPlan> loaded = try_load_plan(save_plan(plan));
    ASSERT_FALSE(loaded.ok()) << wrong.message;
    EXPECT_EQ(loaded.error().code(), ErrorCode::bad_file) << loaded.error().message();
  }
}

TEST(CheckPlan, ListsToo) {
  const Wrong cases[] = {
      {"indexed_receives[0]: peer -1 is below 0", [](TransferPlan& p) { p.indexed_receives[0].peer = -1; }},
      {"indexed_receives[0]: 2 source cells for 1 target cell",
       [](TransferPlan& p) { p.indexed_receives[0].source_cells.push_back(0); }},
      {"indexed_receives[0]: target cell 2 is outside [0, 2)",
       [](TransferPlan& p) { p.indexed_receives[0].target_cells[0] = 2; }},
      {"indexed_receives[0]: source cell -4 is outside",
       [](TransferPlan& p) { p.indexed_receives[0].source_cells[0] = -4; }},
      {"indexed_sends[0]: source cell 4 is outside [0, 4)",
       [](TransferPlan& p) { p.indexed_sends[0].source_cells[0] = 4; }},
      {"indexed_receives[0]: -2 elements per cell", [](TransferPlan& p) { p.indexed_receives[0].inner = -2; }},
      {"indexed_receives[0]: 3 elements per cell do not fill the last dimensions of [2, 2]",
       [](TransferPlan& p) { p.indexed_receives[0].inner = 3; }},
      {"indexed_receives: cell 0 of slot 1 is written twice",
       [](TransferPlan& p) {
         for (IndexedTransfer& list : p.indexed_receives) list.target_cells.assign(list.target_cells.size(), 0);
       }},
  };
  const TransferPlan good = lists_plan();
  ASSERT_TRUE(check_plan(good).ok()) << check_plan(good).error().message();
  for (const Wrong& wrong : cases) {
    TransferPlan plan = good;
    wrong.make(plan);
    const Result<void> result = check_plan(plan);
    ASSERT_FALSE(result.ok()) << wrong.message;
    EXPECT_TRUE(result.error().message().starts_with(wrong.message)) << result.error().message();
  }
}

TEST(CheckPlan, ChecksBothEndsOfWhatARankGivesItself) {
  TransferPlan plan = plan_of_runs({{.source = 6, .target = 0, .length = 4}}, 8);
  EXPECT_TRUE(check_plan(plan).ok());
  plan.receives[0].peers = {0};
  EXPECT_EQ(check_plan(plan).error().message(),
            "receives[0].axes[0][0].runs[0]: source cells 6 to 9 are outside [0, 8)");

  // By a grid: rank 0 is its own peer only where all its coordinates are in the tables.
  plan.receives[0].peers.clear();
  plan.receives[0].peer_grid = 0;
  plan.peer_grids = {grid(2)};
  EXPECT_FALSE(check_plan(plan).ok());
  plan.peer_grids = {Grid({2}, {.ranks = {1, 0}})};
  EXPECT_TRUE(check_plan(plan).ok());

  // A list.
  TransferPlan list;
  list.rank = 0;
  list.slots = {{ElementType::u8, {3}}, {ElementType::u8, {5}}};
  list.indexed_receives = {{.source_slot = 0, .target_slot = 1, .peer = 1, .source_cells = {4}, .target_cells = {4}}};
  EXPECT_TRUE(check_plan(list).ok());
  list.indexed_receives[0].peer = 0;
  EXPECT_EQ(check_plan(list).error().message(), "indexed_receives[0]: source cell 4 is outside [0, 3)");
}

TEST(CheckPlan, TooManyTransfersAreRefused) {
  TransferPlan plan = plan_of_runs({}, 8);
  plan.slots[0].local_extents = plan.slots[1].local_extents = {1000, 1000, 1000};
  TransferGroup& group = plan.receives[0];
  group.source_dims = group.target_dims = {0, 1, 2};
  std::vector<AxisEntry> table;
  for (Index k = 0; k < 1000; ++k) table.push_back({k, {{.source = k, .target = k, .length = 1}}});
  group.axes = {table, table, table};
  group.peers.clear();
  group.peer_grid = 0;
  plan.peer_grids = {grid(1000, 1000, 1000)};
  EXPECT_EQ(check_plan(plan).error().message(),
            "receives[0]: tables of [1000, 1000, 1000] entries stand for more than 16777216 transfers");
}

/// Runs of both ends anywhere, many of them inside the array; sometimes so many stretches that they are not listed.
std::vector<Run> random_runs(Random& random, Index extent) {
  std::vector<Run> runs;
  for (Index n = random.between(1, 4); n > 0; --n) {
    Run run{.length = random.between(1, 3), .count = random.between(1, 5)};
    run.source_pitch = run.target_pitch = random.between(-6, 6);
    run.source_step = run.target_step = random.one_in(6) ? 0 : random.one_in(3) ? -1 : 1;
    run.source = run.target = random.below(extent);
    runs.push_back(run);
  }
  return runs;
}

TEST(CheckPlan, FindsEveryCellWrittenTwiceAndNoOther) {
  Index accepted = 0, twice = 0, outside = 0;
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    Random random(seed);
    const Index extent = random.between(5, 50);
    const std::vector<tranship::Run> runs = random_runs(random, extent);
    std::vector<Index> cells = testing::cells_of(runs, testing::RunEnd::target);
    std::sort(cells.begin(), cells.end());
    const bool inside = cells.front() >= 0 && cells.back() < extent;
    const bool once = std::adjacent_find(cells.begin(), cells.end()) == cells.end();
    const Result<void> result = check_plan(plan_of_runs(runs, extent));
    ASSERT_EQ(result.ok(), inside && once) << "seed " << seed << (result ? "" : ": " + result.error().message());
    accepted += result.ok();
    outside += !inside;
    twice += inside && !once;
  }
  EXPECT_GT(accepted, 500);
  EXPECT_GT(twice, 500);
  EXPECT_GT(outside, 500);
}

/// A lattice between a comb of the target and one part of a source that is dealt in turn, or anything near it.
RunLattice random_lattice(Random& random, const LocalComb& target, Index parts, Index size) {
  RunLattice out{.target = target};
  const Index part = random.below(parts);
  out.source = {random.below(5), size, parts * size, size, random.between(5, 40)};
  out.distance = random.between(0, size) - part * size;
  if (random.one_in(6)) out.source.length += random.between(-1, 1);
  if (random.one_in(6)) out.source.period += random.between(0, 3);
  if (random.one_in(6)) out.target.start += random.between(0, 9);
  if (random.one_in(9)) ++out.target.period;
  return out;
}

TEST(CheckPlan, FindsEveryCellThatLatticesWriteTwiceAndNoOther) {
  Index accepted = 0, twice = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Random random(seed);
    const Index extent = 4000, parts = random.between(2, 16), size = random.between(3, 19);
    LocalComb target{random.below(20), random.between(17, 30), 0, 0, random.between(10, 60)};
    target.period = target.length * random.between(1, 4) + random.between(0, 5);
    target.pitch = target.length + random.between(0, 2);
    std::vector<AxisEntry> entries;
    std::vector<Index> cells;
    // As planners have it, some parts of one source; and more of them, so that some meet.
    const Index phase = random.below(size);
    for (Index n = random.between(1, random.pick<Index>({2, 5, 15})), k = 0; k < n; ++k) {
      RunLattice lattice = random_lattice(random, target, parts, size);
      if (k < parts && random.one_in(2)) {
        lattice = {{0, size, parts * size, size, 60}, target, phase - k * size};
      }
      if (!lattice.is_sound() || lattice.stretches() == 0 || target_hull(lattice).upper > extent) continue;
      AxisEntry& entry = entries.emplace_back();
      entry.lattices.push_back(lattice);
      for (LatticeWalk walk(lattice); !walk.is_over(); walk.next())
        for (Index i = 0; i < walk.length(); ++i) cells.push_back(walk.target() + i);
    }
    for (Index n = random.between(0, 2); n > 0; --n) {
      // Within a stretch of the target, in the same place of several, or anywhere.
      tranship::Run run{
          .target = target.start + random.below(target.count) * target.pitch + random.below(target.length),
          .length = random.between(1, 4),
          .count = random.between(1, 4)};
      run.target_pitch = random.one_in(2) ? random.between(1, 3) * target.pitch : random.between(1, 9);
      if (run.count > 1 && run.target_pitch < run.length) run.count = 1;
      if (target_hull(run).upper > extent) continue;
      entries.emplace_back().runs.push_back(run);
      for (Index k = 0; k < run.count; ++k)
        for (Index i = 0; i < run.length; ++i) cells.push_back(run.target + k * run.target_pitch + i);
    }
    if (entries.empty()) continue;
    TransferPlan plan = plan_of_runs({}, extent);
    TransferGroup& group = plan.receives[0];
    for (std::size_t e = 0; e < entries.size(); ++e) entries[e].peer = Index(e);
    group.axes[0] = entries;
    group.peers.assign(entries.size(), 7);
    group.peer_grid = -1;
    std::sort(cells.begin(), cells.end());
    const bool once = std::adjacent_find(cells.begin(), cells.end()) == cells.end();
    const Result<void> result = check_plan(plan);
    ASSERT_EQ(result.ok(), once) << "seed " << seed << (result ? "" : ": " + result.error().message());
    (once ? accepted : twice) += 1;
  }
  EXPECT_GT(accepted, 300);
  EXPECT_GT(twice, 300);
}

TEST(CheckPlan, FindsThemAmongMillionsOfStretches) {
  Index accepted = 0, twice = 0;
  const std::uint64_t seeds = test::is_brief() ? 40 : 100;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Random random(seed);
    // Two long combs, and a third that is short or not; all inside.
    const Index pitch = random.between(8, 12);
    std::vector<tranship::Run> runs;
    for (int n = 0; n < 3; ++n) {
      tranship::Run run{.length = random.between(1, 3), .count = n == 2 ? random.between(1, 3) : 50'000};
      run.target_pitch = n == 1 && random.one_in(4) ? pitch + random.between(0, 1) : pitch;
      run.target = random.below(20);
      if (random.one_in(3)) {
        run.target += (run.count - 1) * run.target_pitch;
        run.target_pitch *= -1;
      }
      runs.push_back(run);
    }
    bool once = true;
    std::vector<bool> written(1'000'000);
    for (const Index cell : testing::cells_of(runs, testing::RunEnd::target)) {
      once &= !written[cell];
      written[cell] = true;
    }
    const Result<void> result = check_plan(plan_of_runs(runs, Index(written.size())));
    ASSERT_EQ(result.ok(), once) << "seed " << seed;
    (once ? accepted : twice) += 1;
  }
  EXPECT_GT(accepted, Index(seeds / 5));
  EXPECT_GT(twice, Index(seeds / 5));
}

struct BadText {
  const char* text;
  ErrorCode code;
  const char* message;
};

TEST(PlanJson, RefusesWhatIsNoPlan) {
  const BadText cases[] = {
      {"", ErrorCode::bad_text, "column"},
      {"[]", ErrorCode::bad_text, "the document: expected an object"},
      {"{}", ErrorCode::bad_text, "tranship_plan is missing"},
      {R"({"tranship_plan": 2})", ErrorCode::bad_file, "tranship_plan: version 2; this build reads version 1"},
      {R"({"tranship_plan": 1, "kind": "teleport", "rank": 0})", ErrorCode::bad_text,
       "kind: expected redistribution, halo, redistribution_adjoint or halo_adjoint, found \"teleport\""},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 4294967296})", ErrorCode::bad_text, "rank: 4294967296"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 18446744073709551615})", ErrorCode::bad_file, "rank:"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "extra": 1})", ErrorCode::bad_text, "\"extra\" is unknown"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "slots": [{"type": "f65"}]})", ErrorCode::bad_text,
       "slots[0].type"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0,
           "slots": [{"type": "f64", "local_extents": [1], "fingerprint": "xyz"}]})",
       ErrorCode::bad_text, "slots[0].fingerprint: expected 16 hexadecimal digits"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0,
           "slots": [{"type": "f64", "local_extents": [1,1,1,1,1,1,1,1,1], "fingerprint": "0123456789abcdef"}]})",
       ErrorCode::bad_file, "slots[0].local_extents"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "peer_grids": [7]})", ErrorCode::bad_text,
       "peer_grids[0]: expected an object"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "peer_grids": [{"extents": [0]}]})", ErrorCode::bad_file,
       "peer_grids[0]: grid extent 0 of dimension 0 is below 1"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "peer_grids": [{"extents": [2], "ranks": [1, 1]}]})",
       ErrorCode::bad_file, "peer_grids[0]: rank 1 holds two parts"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "peer_grids": [{"extents": [4000000000, 4000000000]}]})",
       ErrorCode::bad_file, "peer_grids[0]:"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "fills_after": [{"kind": "zero", "combine": "least"}]})",
       ErrorCode::bad_text, "fills_after[0].combine: expected sum, product, minimum or maximum, found \"least\""},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "fills_after": [{"kind": "zero", "slot": 0,
           "axes": [[[1, 2]]]}]})",
       ErrorCode::bad_text, "fills_after[0].axes[0][0]: a run has 2 numbers; expected 3, 6 or 8"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "fills_after": [{"kind": "zero", "slot": 0,
           "axes": [[[1, 2, 0.5]]]}]})",
       ErrorCode::bad_text, "fills_after[0].axes[0][0]: expected an integer, found 0.5"},
      {R"({"tranship_plan": 1, "kind": "halo", "rank": 0, "receives": [{"source_slot": 0, "target_slot": 0,
           "source_dims": [], "target_dims": [], "axes": {}}]})",
       ErrorCode::bad_text, "receives[0].axes: expected an array, found object"},
  };
  for (const BadText& bad : cases) {
    const Result<TransferPlan> plan = try_load_plan(bad.text);
    ASSERT_FALSE(plan.ok()) << bad.text;
    EXPECT_EQ(plan.error().code(), bad.code) << plan.error().message();
    EXPECT_NE(plan.error().message().find(bad.message), std::string::npos) << plan.error().message();
  }
  EXPECT_THROW(load_plan("{"), Error);
}

TEST(PlanJson, ACutTextIsRefusedWhereverItIsCut) {
  const std::string text = save_plan(tiles_plan());
  for (std::size_t size = 0; size + 1 < text.size(); ++size)
    ASSERT_FALSE(try_load_plan(text.substr(0, size)).ok()) << size;
}

std::string mutated(std::string text, Random& random) {
  for (Index n = random.between(1, 4); n > 0; --n) {
    const std::size_t at = std::size_t(random.below(Index(text.size())));
    const std::size_t digit = text.find_first_of("0123456789", at);
    switch (random.below(6)) {
      case 0:
      case 1:
      case 2: {  // another number
        if (digit == std::string::npos) break;
        const std::size_t end = text.find_first_not_of("0123456789", digit);
        text.replace(digit, end - digit,
                     random.one_in(8) ? random.pick<std::string>({"-1", "9223372036854775807", "1e3", "null", "[]"})
                                      : std::to_string(random.below(12)));
        break;
      }
      case 3:  // another byte
        text[at] = char(random.below(256));
        break;
      case 4:  // something twice
        text.insert(at, text.substr(at, std::size_t(random.below(40))));
        break;
      case 5:  // something missing
        text.erase(at, std::size_t(random.below(40)));
        break;
    }
    if (text.empty()) break;
  }
  return text;
}

TEST(PlanJson, MutatedTextsAreRefusedOrMakeSense) {
  Index accepted = 0, refused = 0;
  EXPECT_EQ(first_fault(0.5,
                        [&](std::uint64_t seed) {
                          Random random(seed);
                          TransferPlan plan = seed % 5 == 0   ? tiles_plan()
                                              : seed % 5 == 1 ? halo_plan()
                                              : seed % 5 == 2 ? lists_plan()
                                              : seed % 5 == 3 ? lattice_plan()
                                                              : random_plan(random);
                          const auto verdict = testing::check_plan_text(mutated(save_plan(plan), random));
                          (verdict.accepted ? accepted : refused) += 1;
                          return verdict.violation;
                        }),
            "");
  if (accepted + refused < 100) return;  // one seed, replayed
  EXPECT_GT(accepted * 50, refused);
  EXPECT_GT(refused, accepted);
}

TEST(DiffPlans, SaysWhatDiffers) {
  const TransferPlan plan = tiles_plan();
  EXPECT_EQ(diff_plans(plan, plan), "");
  TransferPlan other = plan;
  other.rank = 3;
  other.receives[0].axes[0][1].runs[0].length += 1;
  EXPECT_EQ(diff_plans(plan, other), "rank: 1, 3\nreceives[0].axes[0][1].runs[0]: [0,5,3], [0,5,4]\n");
  other = plan;
  other.fills_after.clear();
  EXPECT_TRUE(diff_plans(plan, other).starts_with("fills_after: [{\"kind\":\"zero\"")) << diff_plans(plan, other);
  EXPECT_TRUE(diff_plans(other, plan).starts_with("fills_after: nothing, [")) << diff_plans(other, plan);
}

TEST(DiffPlans, StopsAfterTheFirstTen) {
  TransferPlan a = plan_of_runs({}, 100), b = a;
  for (Index i = 0; i < 30; ++i) {
    a.receives[0].axes[0][0].runs.push_back({.length = 1});
    b.receives[0].axes[0][0].runs.push_back({.length = 2});
  }
  const std::string text = diff_plans(a, b);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 11);
  EXPECT_TRUE(text.ends_with("and more\n")) << text;
}

TEST(PlanJson, EqualLayoutsHaveEqualFingerprints) {
  EXPECT_EQ(first_fault(1,
                        [](Index seed) {
                          Random random(static_cast<std::uint64_t>(seed));
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          const ArraySpec spec{ElementType::f64, random_distribution(random, extents)};
                          const ArraySpec read = array_spec_from_json(to_json(spec));
                          if (!(read == spec)) return "another layout: " + to_json(spec);
                          return fingerprint_of(read) == fingerprint_of(spec) ? "" : "another number: " + to_json(spec);
                        }),
            "");
}

}  // namespace
}  // namespace tranship
