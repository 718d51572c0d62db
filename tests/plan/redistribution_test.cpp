// Redistributions against the oracle: everything small in one dimension, then samples and random layouts in more.
#include <algorithm>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship::redistribution_test {
namespace {

using namespace test;

ArraySpec array_of(Distribution distribution) {
  return {ElementType::i64, std::move(distribution)};
}

/// All ways to cut `extent` cells into `parts` that differ in what some part owns.
std::vector<Partition> partitions_of(Index extent, Index parts) {
  std::vector<Partition> all{whole(), cyclic(1), cyclic(2), cyclic(3)};
  for (const Remainder remainder : {Remainder::low, Remainder::high, Remainder::ceil}) {
    all.push_back(block(remainder));
    for (const auto& [minimum, modulo] : {std::pair<Index, Index>(2, 1), {0, 2}, {3, 2}})
      all.push_back(block(remainder).with_minimum(minimum).with_modulo(modulo));
    if (extent > 0) all.push_back(block(remainder).with_interfaces());
  }
  auto with_bounds = [&](auto bound) {
    std::vector<Index> bounds{0};
    for (Index k = 1; k < parts; ++k) bounds.push_back(bound(k));
    bounds.push_back(extent);
    all.push_back(irregular(bounds));
    if (extent > 0) {
      for (Index& b : bounds) b = std::min(b, extent - 1);
      all.push_back(irregular(bounds).with_interfaces());
    }
  };
  with_bounds([](Index) { return 0; });
  with_bounds([&](Index) { return extent; });
  with_bounds([&](Index) { return extent / 2; });
  with_bounds([&](Index k) { return std::min(extent, 2 * k - 1); });
  if (extent > 0) all.push_back(whole().with_interfaces());

  std::vector<Partition> out;
  std::vector<std::vector<Index>> seen;
  for (const Partition& partition : all) {
    const AxisParts axis(extent, parts, partition);
    std::vector<Index> owned{Index(partition.points), axis.replicated()};
    for (Index part = 0; part < parts; ++part) {
      owned.push_back(-1);
      for (const SliceFamily& f : axis.slices(part))
        for (Index k = 0; k < f.count; ++k) {
          owned.push_back(f.start + k * f.period);
          owned.push_back(f.length);
        }
    }
    if (std::find(seen.begin(), seen.end(), owned) != seen.end()) continue;
    seen.push_back(owned);
    out.push_back(partition);
  }
  return out;
}

/// Overlaps of 0 to 3 cells on each side with every edge policy on each.
std::vector<Overlap> all_overlaps() {
  std::vector<OverlapSide> sides{{0, EdgePolicy::truncate}};
  for (Index width = 1; width <= 3; ++width)
    for (const EdgePolicy edge : {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate,
                                  EdgePolicy::replicate_local, EdgePolicy::open})
      sides.push_back({width, edge});
  std::vector<Overlap> out;
  for (const OverlapSide& left : sides)
    for (const OverlapSide& right : sides) out.push_back({left, right});
  return out;
}

bool makes_sense(Index extent, const Partition& partition, const Overlap& overlap) {
  if (partition.points == Points::cells || extent >= 2) return true;
  return overlap.left.edge != EdgePolicy::toroidal && overlap.right.edge != EdgePolicy::toroidal;
}

// Every 151st case (a prime, so that no loop hides from it), or all of them in a long run.
TEST(Redistribution, AllSmallCasesInOneDimension) {
  const Index step = long_tests() ? 1 : is_sanitized ? 307 : 151;
  const std::vector<Overlap> overlaps = all_overlaps();
  const Overlap stored[] = {{}, {{1, EdgePolicy::zero}, {2, EdgePolicy::toroidal}}, {{2, EdgePolicy::truncate}, {}}};
  Index number = 0, checked = 0;
  for (Index extent = 0; extent <= 6; ++extent)
    for (Index sources = 1; sources <= 4; ++sources)
      for (const Partition& from : partitions_of(extent, sources))
        for (Index targets = 1; targets <= 4; ++targets)
          for (const Partition& to : partitions_of(extent, targets))
            for (const Overlap& overlap : overlaps) {
              if (++number % step != 0) continue;
              const Overlap& kept = stored[number / step % 3];
              if (!makes_sense(extent, to, overlap) || !makes_sense(extent, from, kept)) continue;
              const ArraySpec source = array_of({{extent}, grid(sources), {from.with_overlap(kept.left, kept.right)}});
              const ArraySpec target =
                  array_of({{extent}, grid(targets), {to.with_overlap(overlap.left, overlap.right)}});
              ASSERT_EQ(redistribution_fault(source, target), "") << "case " << number;
              ++checked;
            }
  RecordProperty("cases", int(checked));
  EXPECT_GT(checked, 500);
}

// Every 397th case (a prime), or all of them in a long run.
TEST(Redistribution, DealtBlocksOfAllSmallSizes) {
  const Index step = long_tests() ? 1 : 397;
  Index number = 0;
  for (Index a = 1; a <= 12; ++a)
    for (Index p = 1; p <= 5; ++p)
      for (Index b = 1; b <= 12; ++b)
        for (Index q = 1; q <= 5; ++q)
          for (const Index periods : {0, 1, 2, 4})
            for (const Index rest : {0, 1, 7}) {
              if (++number % step != 0) continue;
              const Index extent = periods * std::max(p * a, q * b) + rest;
              const ArraySpec source = array_of({{extent, 2}, grid(p, 1), {cyclic(a), whole()}});
              const ArraySpec target = array_of({{extent, 2}, grid(q, 2), {cyclic(b), block()}});
              ASSERT_EQ(redistribution_fault(source, target), "") << "case " << number;
            }
}

/// Whether some entry of a plan is a lattice.
bool has_lattices(const TransferPlan& plan) {
  bool found = false;
  for (const auto* groups : {&plan.receives, &plan.sends})
    for (const TransferGroup& group : *groups)
      for (const auto& axis : group.axes)
        for (const AxisEntry& entry : axis) found = found || !entry.lattices.empty();
  return found;
}

// Blocks without a common factor, in either dimension and in both, with overlap and without.
TEST(Redistribution, BlocksThatMeetInLattices) {
  Index lattices = 0, cases = 0;
  Thinned thinned(7);
  for (const auto& [a, p] : {std::pair<Index, Index>(97, 2), {60, 3}, {127, 1}, {40, 4}})
    for (const auto& [b, q] : {std::pair<Index, Index>(101, 3), {59, 2}, {83, 5}, {60, 3}})
      for (const Index extent : {3001, 20'003})
        for (const EdgePolicy edge : {EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate}) {
          const Index width = edge == EdgePolicy::zero ? 0 : 5;
          const Partition dealt = cyclic(b).with_overlap(width, width / 2, edge);
          for (const bool rows : {true, false}) {
            if (!thinned.takes_next()) continue;
            const ArraySpec source = rows ? array_of({{extent, 3}, grid(p, 1), {cyclic(a), whole()}})
                                          : array_of({{3, extent}, grid(1, p), {whole(), cyclic(a)}});
            const ArraySpec target = rows ? array_of({{extent, 3}, grid(q, 2), {dealt, block()}})
                                          : array_of({{3, extent}, grid(2, q), {block(), dealt}});
            ASSERT_EQ(redistribution_fault(source, target), "")
                << a << " on " << p << " to " << b << " on " << q << ", " << extent << " cells";
            lattices += has_lattices(plan_redistribution(source, target, 0));
            ++cases;
          }
        }
  EXPECT_GT(lattices, cases / 6);
  const auto spec_of = [](Index parts, Index rows, Index columns) {
    return array_of(
        {{800, 900}, grid(parts, parts), {cyclic(rows).with_overlap(1, 0), cyclic(columns).with_overlap(1, 0)}});
  };
  const ArraySpec source = spec_of(1, 17, 19), target = spec_of(2, 23, 29);
  EXPECT_EQ(redistribution_fault(source, target), "");
  EXPECT_TRUE(has_lattices(plan_redistribution(source, target, 0)));
}

// Whole turns around a torus are one family, on either side of every slice.
TEST(Redistribution, OverlapsThatGoAroundATorusManyTimes) {
  for (Index extent = 1; extent <= 6; ++extent)
    for (const Index parts : {1, 2, 3})
      for (const Partition& from : partitions_of(extent, 2))
        for (const Partition& to : partitions_of(extent, parts))
          for (const auto& [left, right] : {std::pair<Index, Index>(0, 25), {13, 7}, {24, 1}}) {
            const Partition wide = to.with_overlap(left, right, EdgePolicy::toroidal);
            if (!makes_sense(extent, wide, wide.overlap)) continue;
            ASSERT_EQ(
                redistribution_fault(array_of({{extent}, grid(2), {from}}), array_of({{extent}, grid(parts), {wide}})),
                "")
                << extent << " on " << parts << ", overlaps " << left << " and " << right;
          }
}

// Products of a few partitions in each of 2 to 4 dimensions, with every edge policy in some dimension.
TEST(Redistribution, SampledProducts) {
  const std::vector<Overlap> overlaps{{},
                                      {{1, EdgePolicy::toroidal}, {2, EdgePolicy::toroidal}},
                                      {{2, EdgePolicy::zero}, {1, EdgePolicy::replicate}},
                                      {{1, EdgePolicy::replicate_local}, {1, EdgePolicy::open}},
                                      {{3, EdgePolicy::replicate}, {3, EdgePolicy::truncate}}};
  const std::vector<Partition> kinds{whole(), block(), block(Remainder::ceil), cyclic(1), cyclic(2)};
  Random random(7);
  auto one_side = [&](const Indices& extents, const Indices& parts, bool overlapped) {
    std::vector<Partition> partitions;
    for (int d = 0; d < extents.size(); ++d) {
      const Overlap& overlap = overlapped ? random.pick(overlaps) : overlaps[0];
      partitions.push_back(random.pick(kinds).with_overlap(overlap.left, overlap.right));
    }
    return array_of({extents, Grid(parts), std::move(partitions)});
  };
  for (const Indices& extents : {Indices{5, 4}, Indices{1, 7}, Indices{4, 3, 3}, Indices{3, 2, 1, 3}})
    for (int sample = 0; sample < 60; ++sample) {
      Indices sources, targets;
      for (int d = 0; d < extents.size(); ++d) {
        sources.push_back(random.between(1, 2));
        targets.push_back(random.between(1, extents.size() > 2 ? 2 : 3));
      }
      const ArraySpec source = one_side(extents, sources, sample % 3 == 0), target = one_side(extents, targets, true);
      ASSERT_EQ(redistribution_fault(source, target), "") << "sample " << sample;
    }
}

/// Two layouts of one array: grids of any order, on subsets of ranks that may be equal, overlap or be disjoint.
std::pair<ArraySpec, ArraySpec> random_pair(Random& random) {
  const Indices extents = random_extents(random, int(random.between(1, 4)));
  return {array_of(random_distribution(random, extents)), array_of(random_distribution(random, extents))};
}

TEST(Redistribution, RandomLayouts) {
  EXPECT_EQ(first_fault(1.0,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const auto [source, target] = random_pair(random);
                          return redistribution_fault(source, target);
                        }),
            "");
}

// Each of two ranks keeps what it holds of the interface between them, overlap or not.
TEST(Redistribution, SharedInterfacesStayWithTheirParts) {
  const Partition faces = block().with_interfaces();
  for (const EdgePolicy edge : {EdgePolicy::open, EdgePolicy::toroidal, EdgePolicy::replicate, EdgePolicy::truncate})
    for (const Index width : {0, 1, 3, 9}) {
      const Partition wide = faces.with_overlap(width, width, edge);
      for (const auto& [from, to] : {std::pair(faces, wide), {wide, faces}, {wide, wide}}) {
        EXPECT_EQ(redistribution_fault(array_of({{5}, grid(2), {from}}), array_of({{5}, grid(2), {to}})), "");
        EXPECT_EQ(redistribution_fault(array_of({{5, 7}, grid(2, 3), {from, to}}),
                                       array_of({{5, 7}, grid(2, 3), {to, from}})),
                  "");
        EXPECT_EQ(
            redistribution_fault(array_of({{5, 7}, grid(4, 1), {from, to}}), array_of({{5, 7}, grid(1, 3), {to, to}})),
            "");
      }
    }
}

TEST(Redistribution, ThereAndBackIsTheIdentity) {
  EXPECT_EQ(first_fault(0.2,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const auto [a, b] = random_pair(random);
                          const Plans there = redistribution_plans(a, b), back = redistribution_plans(b, a);
                          const PlanInterpreter go(there), come(back);
                          if (!go.fault().empty() || !come.fault().empty()) return go.fault() + come.fault();
                          Memory memory = memory_for(there, untouched);
                          const Global values(a.distribution);
                          fill_owned(a.distribution, values, 0, untouched, memory, Shared::alike);
                          const Memory start = memory;
                          go.apply(memory);
                          // The slots change places; what came first must not survive in them.
                          for (auto& slots : memory) {
                            slots[0].assign(slots[0].size(), untouched);
                            std::swap(slots[0], slots[1]);
                          }
                          come.apply(memory);
                          for (Rank r = 0; r < Rank(memory.size()); ++r)
                            for (std::size_t i = 0; i < start[r][0].size(); ++i)
                              if (start[r][0][i] != untouched && memory[r][1][i] != start[r][0][i])
                                return fmt::format("rank {} cell {} was {} and comes back as {}\n  from {}\n  by   {}",
                                                   r, i, start[r][0][i], memory[r][1][i], to_text(a), to_text(b));
                          return "";
                        }),
            "");
}

/// Every cell that a rank reads comes from an owner than which none is nearer.
std::string nearest_fault(const ArraySpec& source, const ArraySpec& target, Distance distance) {
  const Distribution& from = source.distribution;
  const Plans plans = redistribution_plans(source, target, {distance});
  const PlanInterpreter interpreter(plans);
  for (Rank s = 0; s < Rank(plans.size()); ++s) {
    std::vector<Indices> cells;
    for_each_coordinate(from.local_extents(s),
                        [&](const Indices& local) { cells.push_back(from.cell_of(s, local).at); });
    for (Rank t = 0; t < Rank(plans.size()); ++t)
      for (const Move& move : interpreter.moves(s, t))
        for (const Rank owner : from.owners(cells[move.source]))
          if (from.axis(0).partition().points == Points::cells && distance(t, owner) < distance(t, s))
            return fmt::format("rank {} reads from rank {} at {}, owner {} is at {}\n  {}\n  {}", t, s, distance(t, s),
                               owner, distance(t, owner), to_text(source), to_text(target));
  }
  return "";
}

TEST(Redistribution, ReplicasAreReadFromTheNearestOwner) {
  auto ring = [](Rank reader, Rank owner) {
    return double(std::min((reader - owner + 20) % 20, (owner - reader + 20) % 20));
  };
  auto nodes_of_three = [](Rank reader, Rank owner) {
    return reader == owner ? 0.0 : reader / 3 == owner / 3 ? 1.0 : 2.0;
  };
  const LayoutChoices choices{.overlap_max = 2, .interfaces = false};
  Index replicated = 0;
  EXPECT_EQ(first_fault(0.15,
                        [&](std::uint64_t seed) {
                          Random random(seed);
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          const ArraySpec source = array_of(random_distribution(random, extents, choices));
                          const ArraySpec target = array_of(random_distribution(random, extents, choices));
                          replicated += source.distribution.replicated();
                          std::string fault = redistribution_fault(source, target, {Distance(ring)});
                          if (fault.empty()) fault = nearest_fault(source, target, ring);
                          if (fault.empty()) fault = nearest_fault(source, target, nodes_of_three);
                          return fault;
                        }),
            "");
  EXPECT_GT(replicated + environment_number("TRANSHIP_TEST_SEED", 0), 0);
}

TEST(Redistribution, WithoutADistanceARankReadsItsOwnCopy) {
  const ArraySpec source = array_of({{12}, Grid({1}, {.replicas = 4}), {whole()}});
  const ArraySpec target = array_of({{12}, grid(4), {cyclic(2).with_overlap(1, 1, EdgePolicy::toroidal)}});
  for (Rank r = 0; r < 4; ++r)
    plan_redistribution(source, target, r).for_each_receive([&](const Transfer& t) { EXPECT_EQ(t.peer, r); });
}

TEST(Redistribution, ADistanceKeepsWhatItCalls) {
  const ArraySpec source = array_of({{12}, Grid({1}, {.replicas = 4}), {whole()}});
  const ArraySpec target = array_of({{12}, Grid({2}, {.first = 4}), {block()}});
  RedistributionOptions options;
  {
    const std::vector<double> of_owner{3, 2, 1, 4};
    options.distance = [of_owner](Rank, Rank owner) { return of_owner[owner]; };
  }
  const RedistributionOptions copy = options;
  options.distance.reset();
  for (Rank r = 4; r < 6; ++r)
    plan_redistribution(source, target, r, copy).for_each_receive([](const Transfer& t) { EXPECT_EQ(t.peer, 2); });
}

TEST(Redistribution, OwnersAtOneDistanceShareTheReaders) {
  const ArraySpec source = array_of({{12}, Grid({1}, {.replicas = 4}), {whole()}});
  const ArraySpec target = array_of({{12}, Grid({8}, {.first = 4}), {block()}});
  const auto equal = [](Rank, Rank) { return 1.0; };
  for (Rank owner = 0; owner < 4; ++owner) {
    int readers = 0;
    plan_redistribution(source, target, owner, {Distance(equal)}).for_each_send([&](const Transfer&) { ++readers; });
    EXPECT_EQ(readers, 2) << "owner " << owner;
  }
}

/// A structured layout that has some dimensions whole, under any name, and the others cut in any way.
Distribution random_plain(Random& random, const Indices& extents, const LayoutChoices& choices) {
  Indices parts = Indices::filled(extents.size(), 1);
  std::vector<Partition> partitions;
  for (int d = 0; d < extents.size(); ++d) {
    const bool is_whole = random.one_in(3);
    if (!is_whole) parts[d] = random.between(1, extents.size() < 3 ? 3 : 2);
    partitions.push_back(is_whole ? random_whole(random, extents[d])
                                  : random_partition(random, extents[d], parts[d], choices));
  }
  return Distribution(extents, Grid(parts, {.first = Rank(random.between(0, 2))}), std::move(partitions));
}

TEST(Redistribution, IndexedToStructuredAndBack) {
  EXPECT_EQ(first_fault(0.3,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const Indices extents = random_extents(random, int(random.between(1, 3)));
                          auto indexed = [&] {
                            const int indexed_dims = int(random.between(1, extents.size()));
                            std::vector<Rank> ranks{0, 1, 2, 3, 4, 5};
                            random.shuffle(ranks);
                            ranks.resize(random.between(1, 4));
                            const Index parts = Index(ranks.size());
                            return array_of(random_indexed(random, extents, indexed_dims, parts, ranks));
                          };
                          auto plain = [&](bool is_source) {
                            return array_of(random_plain(random, extents, {.replicas = !is_source}));
                          };
                          const ArraySpec source = seed % 3 == 1 ? plain(true) : indexed();
                          const ArraySpec target = seed % 3 == 0 ? plain(false) : indexed();
                          return redistribution_fault(source, target);
                        }),
            "");
}

// Two columns of a mesh with 4 levels, and a structured array that cuts the levels between two ranks: one list entry
// for each level that moves, or for each row of levels where these are whole.
TEST(Redistribution, ListsCountThroughTheDimensionsThatAreCut) {
  const ArraySpec mesh = array_of(Distribution::indexed({2, 4, 3}, 1, grid(2), {{{1}, {}}, {{0}, {}}}));
  const ArraySpec levels = array_of({{2, 4, 3}, grid(1, 2, 1), {block(), block(), cyclic(2)}});
  const TransferPlan plan = plan_redistribution(mesh, levels, 0);
  ASSERT_EQ(plan.indexed_receives.size(), 2u);
  EXPECT_EQ(plan.indexed_receives[0].inner, 3);
  EXPECT_EQ(plan.indexed_receives[0].source_cells, (std::vector<Index>{0, 1}));
  EXPECT_EQ(plan.indexed_receives[0].target_cells, (std::vector<Index>{2, 3}));
  EXPECT_EQ(plan.indexed_receives[1].source_cells, (std::vector<Index>{0, 1}));
  EXPECT_EQ(plan.indexed_receives[1].target_cells, (std::vector<Index>{0, 1}));
  ASSERT_EQ(plan.indexed_sends.size(), 2u);
  EXPECT_EQ(plan.indexed_sends[1].source_cells, (std::vector<Index>{2, 3}));
  EXPECT_EQ(redistribution_fault(mesh, levels), "");
  EXPECT_EQ(redistribution_fault(levels, mesh), "");
  const ArraySpec columns = array_of({{2, 4, 3}, grid(2, 1, 1), {block(), irregular({0, 4}), block()}});
  EXPECT_EQ(plan_redistribution(mesh, columns, 0).indexed_receives.at(0).inner, 12);
  // Lists that number cells of different dimensions.
  const ArraySpec points =
      array_of(Distribution::indexed({2, 4, 3}, 2, grid(2), {{{7, 0, 1, 2}, {3}}, {{6, 5, 4, 3}, {}}}));
  EXPECT_EQ(redistribution_fault(mesh, points), "");
  EXPECT_EQ(redistribution_fault(points, mesh), "");
}

/// What a rank holds along dimension 0 after the plan has run, slice by slice, where every cell holds its coordinate.
std::vector<std::vector<Index>> delivered_rows(const Plans& plans, const ArraySpec& source, const ArraySpec& target,
                                               Rank rank) {
  const PlanInterpreter interpreter(plans);
  EXPECT_EQ(interpreter.fault(), "");
  Memory memory = memory_for(plans, untouched);
  for (Rank r = 0; r < Rank(plans.size()); ++r) {
    Index i = 0;
    for_each_coordinate(source.distribution.local_extents(r),
                        [&](const Indices& local) { memory[r][0][i++] = source.distribution.cell_of(r, local).at[0]; });
  }
  interpreter.apply(memory);
  std::vector<std::vector<Index>> out;
  for (const Slice& slice : target.distribution.slices(rank)) {
    auto& rows = out.emplace_back();
    for (Index row = 0; row < slice.extents[0]; ++row)
      rows.push_back(memory[rank][1][slice.offset + row * slice.strides[0]]);
  }
  return out;
}

// The first example of the Data Reorganization Interface: 20 rows dealt in pairs to 5 ranks, with one more row on each
// side of a pair.
TEST(Redistribution, GoldenExampleOfDri) {
  using Rows = std::vector<std::vector<Index>>;
  const ArraySpec source = array_of({{20, 64}, grid(5, 1), {block(), whole()}});
  const ArraySpec target =
      array_of({{20, 64}, grid(5, 1), {cyclic(2).with_overlap(1, 1, EdgePolicy::toroidal), whole()}});
  const Plans plans = redistribution_plans(source, target);
  EXPECT_EQ(delivered_rows(plans, source, target, 0), (Rows{{19, 0, 1, 2}, {9, 10, 11, 12}}));
  EXPECT_EQ(delivered_rows(plans, source, target, 1), (Rows{{1, 2, 3, 4}, {11, 12, 13, 14}}));
  EXPECT_EQ(delivered_rows(plans, source, target, 4), (Rows{{7, 8, 9, 10}, {17, 18, 19, 0}}));
  Index cells = 0;
  for (const TransferPlan& plan : plans) plan.for_each_receive([&](const Transfer& t) { cells += t.cells(); });
  EXPECT_EQ(cells, 40 * 64);
  EXPECT_EQ(redistribution_fault(source, target), "");
}

// The case that DRI's authors discussed in December 2000: 5 columns on 4 ranks with an overlap of 2 and zeros beyond
// the edge. The third rank owns column 3 and has one real column and one of zeros on its right.
TEST(Redistribution, GoldenCaseOfDecember2000) {
  using Columns = std::vector<std::vector<Index>>;
  const ArraySpec source = array_of({{5}, grid(1), {whole()}});
  const ArraySpec target = array_of({{5}, grid(4), {block().with_overlap(2, 2, EdgePolicy::zero)}});
  const Plans plans = redistribution_plans(source, target);
  EXPECT_EQ(delivered_rows(plans, source, target, 0), (Columns{{0, 0, 0, 1, 2, 3}}));
  EXPECT_EQ(delivered_rows(plans, source, target, 1), (Columns{{0, 1, 2, 3, 4}}));
  EXPECT_EQ(delivered_rows(plans, source, target, 2), (Columns{{1, 2, 3, 4, 0}}));
  EXPECT_EQ(delivered_rows(plans, source, target, 3), (Columns{{2, 3, 4, 0, 0}}));
  EXPECT_EQ(redistribution_fault(source, target), "");
}

}  // namespace
}  // namespace tranship::redistribution_test
