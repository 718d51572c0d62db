// Relabelling against all permutations, and against what the planner then moves.
#include <algorithm>
#include <chrono>
#include <numeric>

#include <gtest/gtest.h>

#include <tranship/layout/text.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/plan/relabel.hpp>

#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;

/// Cells that ranks receive from others, counted by the planner.
Index planned_cells_moved(const Distribution& source, const Distribution& target) {
  Index out = 0;
  for (const Rank rank : target.grid().ranks()) {
    const TransferPlan plan = plan_redistribution({ElementType::u8, source}, {ElementType::u8, target}, rank);
    plan.for_each_receive([&](const Transfer& transfer) {
      if (transfer.peer != rank) out += transfer.cells();
    });
    for (const IndexedTransfer& list : plan.indexed_receives)
      if (list.peer != rank) out += Index(list.target_cells.size()) * list.inner;
  }
  return out;
}

Index renamed(const Distribution& a, const Distribution& b) {
  Index out = 0;
  for (Index i = 0; i < a.grid().size(); ++i) out += a.grid().rank_at(i) != b.grid().rank_at(i);
  return out;
}

/// The best of all permutations: (cells moved, parts renamed).
std::pair<Index, Index> best_of_all(const Distribution& source, const Distribution& target) {
  const std::vector<Rank> ranks = target.grid().ranks();
  std::vector<int> order(ranks.size());
  std::iota(order.begin(), order.end(), 0);
  std::pair<Index, Index> best{INT64_MAX, 0};
  do {
    std::vector<Rank> permuted;
    for (const int i : order) permuted.push_back(ranks[i]);
    const Distribution candidate = target.on_ranks(permuted);
    best = std::min(best, {planned_cells_moved(source, candidate), renamed(target, candidate)});
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(Relabel, RowMajorToColumnMajorMovesNothing) {
  const std::vector<Partition> blocks = {block(), block()};
  const Distribution source({1000, 16}, grid(8, 2), blocks);
  const Distribution target({1000, 16}, Grid({8, 2}, {.order = {1, 0}}), blocks);
  const Relabelled out = relabel(source, target);
  EXPECT_EQ(out.cells_moved, 0);
  EXPECT_EQ(out.cells_moved_before, 14000);
  EXPECT_EQ(planned_cells_moved(source, target), 14000);
  EXPECT_EQ(planned_cells_moved(source, out.target), 0);
  for (Index part = 0; part < 16; ++part)
    EXPECT_EQ(out.target.grid().rank_of(target.grid().place_at(part)),
              source.grid().rank_of(target.grid().place_at(part)));
}

TEST(Relabel, TiesRenameNothing) {
  // Every part of the target gets one row of each part of the source: all permutations are equally good.
  const Distribution source({16}, grid(4), {block()}), target({16}, grid(4), {cyclic()});
  const Relabelled out = relabel(source, target);
  EXPECT_TRUE(out.target == target);
  EXPECT_EQ(out.cells_moved, 12);
  EXPECT_EQ(out.cells_moved_before, 12);
}

TEST(Relabel, DisjointRanksMoveEverythingAndRenameNothing) {
  const Distribution source({30}, grid(3), {block()}), target({30}, Grid({5}, {.first = 3}), {block()});
  const Relabelled out = relabel(source, target);
  EXPECT_TRUE(out.target == target);
  EXPECT_EQ(out.cells_moved, 30);
}

TEST(Relabel, UsesTheRanksThatBothSidesShare) {
  // Ranks 2 and 3 hold all of the source; the target would give them the wrong halves.
  const Distribution source({8}, Grid({2}, {.first = 2}), {block()});
  const Distribution target({8}, Grid({4}, {.ranks = {3, 0, 1, 2}}), {irregular({0, 1, 4, 5, 8})});
  const Relabelled out = relabel(source, target);
  EXPECT_EQ(out.cells_moved, 2);
  EXPECT_EQ(out.target.grid().rank_at(1), 2);
  EXPECT_EQ(out.target.grid().rank_at(3), 3);
}

TEST(Relabel, ReplicatedSourcesAreLocalWhereverACopyIs) {
  const Distribution source({12, 6}, grid(2, 3), {block(), whole()});
  const Distribution target({12, 6}, Grid({6, 1}, {.ranks = {5, 4, 3, 2, 1, 0}}), {block(), whole()});
  const Relabelled out = relabel(source, target);
  EXPECT_EQ(out.cells_moved, 0);
  EXPECT_EQ(planned_cells_moved(source, out.target), 0);
  EXPECT_EQ(out.cells_moved_before, planned_cells_moved(source, target));
}

TEST(Relabel, RefusesDifferentExtents) {
  try {
    relabel(Distribution({8}, grid(2), {block()}), Distribution({9}, grid(2), {block()}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::mismatch);
  }
}

TEST(Relabel, RefusesMorePartsThanItSolves) {
  const Distribution target({1 << 20}, grid(relabel_parts_max + 1), {block()});
  try {
    relabel(target, target);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(error.message().find("8193"), std::string::npos) << error.message();
  }
}

TEST(Relabel, IsAsGoodAsTheBestOfAllPermutations) {
  int improved = 0;
  for (std::uint64_t seed = 0; seed < (is_sanitized ? 20u : 60u); ++seed) {
    Random random(seed);
    const Indices extents = random_extents(random, int(random.between(1, 2)));
    const Distribution source = random_distribution(random, extents, {.ranks_max = 6, .world = 7});
    const Distribution target = random_distribution(random, extents, {.ranks_max = seed % 4 == 0 ? 6 : 4, .world = 7});
    const Relabelled out = relabel(source, target);
    const auto [moved, renamed_parts] = best_of_all(source, target);
    EXPECT_EQ(out.cells_moved, moved) << "seed " << seed;
    EXPECT_EQ(renamed(target, out.target), renamed_parts) << "seed " << seed;
    EXPECT_EQ(out.cells_moved, planned_cells_moved(source, out.target)) << "seed " << seed;
    EXPECT_EQ(out.cells_moved_before, planned_cells_moved(source, target)) << "seed " << seed;
    improved += out.cells_moved < out.cells_moved_before;
  }
  EXPECT_GT(improved, is_sanitized ? 3 : 10);
}

TEST(Relabel, IndexedSidesTooAsGoodAsAllPermutations) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const Indices extents{random.between(6, 20), 3};
    const Distribution indexed = random_indexed(random, extents, 1, 4, {0, 1, 2, 3});
    const Distribution other = seed % 2 == 0 ? random_indexed(random, extents, 1, 4, {0, 1, 2, 3})
                                             : Distribution(extents, grid(4, 1), {cyclic(), whole()});
    for (const auto& [source, target] : {std::pair(indexed, other), std::pair(other, indexed)}) {
      const Relabelled out = relabel(source, target);
      EXPECT_EQ(std::pair(out.cells_moved, renamed(target, out.target)), best_of_all(source, target)) << seed;
      EXPECT_EQ(out.cells_moved_before, planned_cells_moved(source, target)) << seed;
    }
  }
}

TEST(Relabel, CountsAsSharedCellsDoes) {
  for (std::uint64_t seed = 100; seed < 140; ++seed) {
    Random random(seed);
    const Indices extents = random_extents(random, 2);
    const Distribution source(extents, grid(2, 3), {block(), cyclic(random.between(1, 4))});
    const Distribution target = random_distribution(random, extents, {.ranks_max = 6});
    Index moved = 0;
    for (Index part = 0; part < target.grid().size(); ++part)
      for (Index from = 0; from < source.grid().size(); ++from)
        if (source.grid().rank_at(from) != target.grid().rank_at(part))
          moved += shared_cells(source, from, target, part);
    EXPECT_EQ(relabel(source, target).cells_moved_before, moved) << "seed " << seed;
  }
}

// Every way in which cells of pairs of parts are counted: blocks, dealt blocks that meet in few places or in very many,
// stretches longer than a turn of the source, overlap around a torus and shared interfaces.
TEST(Relabel, CountsAsThePlannerMoves) {
  EXPECT_EQ(
      first_fault(0.5,
                  [](std::uint64_t seed) -> std::string {
                    Random random(seed);
                    const Index extent =
                        random.pick<Index>({random.between(1, 60), random.between(1000, 100'000), 1'000'000'007});
                    const auto line = [&] {
                      const Index parts = random.between(1, 7);
                      Partition cut = random_partition(random, extent, parts, {.overlap_max = 40});
                      if (cut.kind == PartitionKind::cyclic)
                        cut.block_size = random.pick<Index>({1, 5, 97, 64, 1009, 100'003});
                      return Distribution({extent}, grid(parts), {cut});
                    };
                    const Distribution source = line(), target = line();
                    try {
                      const Relabelled out = relabel(source, target);
                      if (out.cells_moved_before == planned_cells_moved(source, target) &&
                          out.cells_moved == planned_cells_moved(source, out.target))
                        return "";
                    } catch (const Error& error) {
                      if (error.code() == ErrorCode::unsupported) return "";
                      throw;
                    }
                    return "from " + to_text({ElementType::u8, source}) + " to " + to_text({ElementType::u8, target});
                  }),
      "");
}

TEST(Relabel, SolvesFiveHundredAndTwelveRanks) {
  // A target whose ranks are shuffled: the optimum is known, every rank has its part again.
  const std::vector<Partition> partitions = {cyclic(3), block(), cyclic(5)};
  const Distribution source({96, 40, 80}, grid(8, 8, 8), partitions);
  std::vector<Rank> ranks(512);
  std::iota(ranks.begin(), ranks.end(), 0);
  Random(7).shuffle(ranks);
  const Distribution shuffled = source.on_ranks(ranks);
  EXPECT_EQ(relabel(source, shuffled).cells_moved, 0);

  // And one where nothing is easy; the time is for the reader.
  const Distribution tiles({96, 40, 80}, Grid({16, 4, 8}, {.ranks = ranks}), {cyclic(1), block(), cyclic(2)});
  const auto start = std::chrono::steady_clock::now();
  const Relabelled out = relabel(source, tiles);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("relabel, 512 ranks: %.3f s, %lld cells move instead of %lld\n", time.count(),
              static_cast<long long>(out.cells_moved), static_cast<long long>(out.cells_moved_before));
  EXPECT_LT(out.cells_moved, out.cells_moved_before);
  EXPECT_EQ(out.cells_moved, planned_cells_moved(source, out.target));
}

}  // namespace
}  // namespace tranship
