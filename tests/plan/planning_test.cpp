// Planning does not enumerate: the size of a plan depends on blocks and parts, not on the extent, and plans of arrays
// far too large to hold are right wherever one looks.
#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/layout/text.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/clip.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/plan_size.hpp>
#include <tranship/plan/readers.hpp>
#include <tranship/plan/redistribution.hpp>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;

// The case of the literature: block-cyclic 64 on 16 ranks to 100 on 24, with an overlap of 3 on a torus.
constexpr Index source_parts = 16, target_parts = 24;
constexpr Index repeat = 76'800;  // the least common multiple of 16 * 64 and 24 * 100

ArraySpec dealt_source(Index extent) {
  return {ElementType::f64, {{extent}, grid(source_parts), {cyclic(64)}}};
}
ArraySpec dealt_target(Index extent) {
  return {ElementType::f64, {{extent}, grid(target_parts), {cyclic(100).with_overlap(3, 3, EdgePolicy::toroidal)}}};
}

/// Runs that all ranks receive, and cells in them.
struct Totals {
  Index runs = 0;
  Index cells = 0;
  Index stored_max = 0;  ///< of one rank, both ends
};

Totals totals_for(Index extent) {
  Totals out;
  for (Rank r = 0; r < target_parts; ++r) {
    const TransferPlan plan = plan_redistribution(dealt_source(extent), dealt_target(extent), r);
    out.stored_max = std::max(out.stored_max, plan.stored_runs());
    plan.for_each_receive([&](const Transfer& t) {
      out.runs += Index(t.entry(0).runs.size());
      out.cells += t.cells();
    });
  }
  return out;
}

TEST(Planning, SizeDoesNotDependOnTheExtent) {
  Index runs_of_first = 0;
  for (const Index about : std::array<Index, 3>{1'000'000, 1'000'000'000, 1'000'000'000'000}) {
    // Alike at the end of the array, so that the plans are alike to the last run.
    const Totals alike = totals_for(about / repeat * repeat + 7);
    if (runs_of_first == 0) runs_of_first = alike.runs;
    EXPECT_EQ(alike.runs, runs_of_first) << "N " << about;

    const Totals round = totals_for(about);
    // Two more cells on each of its slices, all wanted cells once.
    const Index slices = (about + 99) / 100;
    EXPECT_EQ(round.cells, about + 6 * slices);
    EXPECT_LT(round.runs, 2400) << "N " << about;
    EXPECT_LT(round.stored_max, 400) << "N " << about;
    RecordProperty("runs_of_" + std::to_string(about), int(round.runs));
  }
}

/// How often a run writes a local cell of the target, and which local cell of the source it reads for it: by
/// arithmetic.
std::vector<Index> sources_of(const Run& run, Index target) {
  std::vector<Index> out;
  auto in_stretch = [&](Index k) {
    const Index i = target - run.target - k * run.target_pitch;
    if (i >= 0 && i < run.length) out.push_back(run.source + k * run.source_pitch + i * run.source_step);
  };
  if (run.count == 1) {
    in_stretch(0);
  } else {
    // Stretches may be nearer to each other than they are long.
    const Index highest = floor_divide(target - run.target, run.target_pitch);
    const Index lowest = floor_divide(target - run.target - run.length, run.target_pitch) + 1;
    for (Index k = std::max<Index>(0, lowest); k <= std::min(run.count - 1, highest); ++k) in_stretch(k);
  }
  return out;
}

void expect_right_at_random_cells(const ArraySpec& source, const ArraySpec& target, int cells_per_rank) {
  Random random(11);
  for (const Rank r : target.distribution.grid().ranks()) {
    const TransferPlan plan = plan_redistribution(source, target, r);
    const Index local_extent = target.distribution.local_extents(r)[0], extent = target.distribution.extents()[0];
    for (int n = 0; n < cells_per_rank; ++n) {
      // The first and last cells, where the edges are, and any others.
      const Index local = n < 8 ? n : n < 16 ? local_extent - 1 - (n - 8) : random.below(local_extent);
      const Index cell = floor_modulo(target.distribution.cell_of(r, {local}).at[0], extent);
      int found = 0;
      plan.for_each_receive([&](const Transfer& t) {
        std::vector<Run> runs = t.entry(0).runs;
        for (const RunLattice& lattice : t.entry(0).lattices) clip(lattice, {local, local + 1}, runs);
        for (const Run& run : runs) {
          ASSERT_TRUE(run.count == 1 || run.target_pitch > 0);
          for (const Index from : sources_of(run, local)) {
            ++found;
            const Distribution::Cell read = source.distribution.cell_of(t.peer, {from});
            EXPECT_EQ(read.at[0], cell);
            EXPECT_TRUE(read.owned);
          }
        }
      });
      EXPECT_EQ(found, 1) << "rank " << r << " local " << local;
    }
  }
}

TEST(Planning, ATrillionCellsAreRightAtRandom) {
  const Index extent = 1'000'000'000'000;
  const int cells = is_sanitized ? 10 : 100;
  expect_right_at_random_cells(dealt_source(extent), dealt_target(extent), cells);
  // Awkward numbers: nothing divides anything.
  const Index prime = 999'999'999'989;
  const ArraySpec source{ElementType::u8, {{prime}, grid(7), {cyclic(997).with_overlap(2, 5, EdgePolicy::zero)}}};
  const ArraySpec target{ElementType::u8, {{prime}, grid(5), {cyclic(31).with_overlap(40, 1, EdgePolicy::toroidal)}}};
  expect_right_at_random_cells(source, target, cells);
  const ArraySpec blocks{ElementType::u8, {{prime}, grid(6), {block().with_overlap(9, 9, EdgePolicy::toroidal)}}};
  expect_right_at_random_cells(source, blocks, cells);
  expect_right_at_random_cells(blocks, target, cells);
}

TEST(Planning, LayoutsOfAsManyCellsAsThereCanBeAreRightAtRandom) {
  const Index prime = 999'999'999'999'999'989;
  std::vector<ArraySpec> all;
  for (const Partition& partition : {block(), cyclic(31), cyclic(997), whole()})
    all.push_back(
        {ElementType::u8,
         {{prime}, grid(partition == whole() ? 1 : 6), {partition.with_overlap(9, 8, EdgePolicy::toroidal)}}});
  for (const ArraySpec& source : all)
    for (const ArraySpec& target : all) expect_right_at_random_cells(source, target, 20);
}

// ---- Extents at the limit
// -------------------------------------------------------------------------------------------

/// A rule for arrays of any extent.
struct Rule {
  Index parts = 1;
  Partition partition;
  std::vector<Index> shares;  ///< irregular: where the parts end, in 1024ths of the extent

  ArraySpec array_of(Index extent) const {
    Partition out = partition;
    const Index points = out.points == Points::interfaces ? 1 : 0;
    if (out.kind == PartitionKind::irregular) {
      out.bounds = {0};
      for (const Index share : shares) out.bounds.push_back((extent - points) / 1024 * share);
      out.bounds.back() = extent - points;
    }
    return {ElementType::u8, {{extent}, grid(parts), {out}}};
  }
};

Rule random_rule(Random& random) {
  Rule out{.parts = random.between(1, 5)};
  switch (random.below(out.parts == 1 ? 4 : 3)) {
    case 0:
      out.partition = block(random.pick<Remainder>({Remainder::low, Remainder::high, Remainder::ceil}));
      if (random.one_in(3))
        out.partition = out.partition.with_minimum(random.pick<Index>({0, 5, Index(1) << 61, INT64_MAX}))
                            .with_modulo(random.pick<Index>({1, 3, (Index(1) << 50) + 1, INT64_MAX}));
      break;
    case 1:
      out.partition = cyclic(random.pick<Index>(
          {1, 2, 97, 999'999'937, Index(1) << 40, (Index(1) << 59) + 12345, (Index(1) << 60) - 1, INT64_MAX / 5}));
      break;
    case 2:
      out.partition = irregular({});
      for (Index part = 0; part < out.parts; ++part) out.shares.push_back(random.between(0, 1024));
      std::sort(out.shares.begin(), out.shares.end());
      break;
    case 3:
      out.partition = whole();
      break;
  }
  if (out.partition.kind != PartitionKind::cyclic && random.one_in(4)) out.partition = out.partition.with_interfaces();
  if (!random.one_in(3)) {
    const auto side = [&] {
      return OverlapSide{random.pick<Index>({0, 1, 3, 1000, (Index(1) << 50) + 7, Index(1) << 57}),
                         random_edge(random)};
    };
    out.partition = out.partition.with_overlap(side(), side());
  }
  return out;
}

bool is_possible(const Rule& rule, Index extent) {
  try {
    (void)rule.array_of(extent);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::overflow) << error.what();
    // What is refused is named by what was given, with the limit.
    for (const Index number : {extent, extent_max})
      EXPECT_NE(error.message().find(std::to_string(number)), std::string::npos) << error.what();
    return false;
  }
}

/// The largest extent that both rules take.
Index largest_extent(const Rule& a, const Rule& b) {
  Index possible = 1, refused = INT64_MAX;
  while (refused - possible > 1) {
    const Index middle = possible + (refused - possible) / 2;
    (is_possible(a, middle) && is_possible(b, middle) ? possible : refused) = middle;
  }
  return possible;
}

AxisPoint point_at(const AxisParts& axis, Index part, Index local) {
  for (const SliceFamily& f : axis.stretches(part)) {
    if (local - f.local >= f.count * f.pitch) continue;
    const Index k = (local - f.local) / f.pitch, start = f.start + k * f.period;
    return {start - f.left + (local - f.local - k * f.pitch), {start, start + f.length}};
  }
  return {};
}

/// The first and last local indices, those around the ends of slices, and any others.
std::vector<Index> looked_at(Random& random, const AxisParts& axis, Index part) {
  const Index extent = axis.local_extent(part);
  std::vector<Index> out;
  const auto around = [&](Index local) {
    for (Index at = local - 2; at <= local + 2; ++at)
      if (at >= 0 && at < extent) out.push_back(at);
  };
  around(0);
  around(extent - 1);
  for (const SliceFamily& f : axis.stretches(part)) {
    if (out.size() > 60) break;
    for (const Index slice : {Index(0), f.count - 1})
      for (const Index at : {f.left, f.left + f.length, f.stored()}) around(f.local + slice * f.pitch + at);
  }
  for (int n = 0; n < 8 && extent > 0; ++n) out.push_back(random.below(extent));
  return out;
}

/// What is wrong with the plan of a rank at some local indices of slot `slot`, whose cells come from `source`. With
/// `all`, owned cells are written, too.
std::string fault_at_cells(Random& random, const TransferPlan& plan, const Distribution& source,
                           const Distribution& target, int slot, bool all) {
  const std::optional<Place> place = target.grid().place_of(plan.rank);
  if (!place) return "";
  const AxisParts& axis = target.axis(0);
  const Index part = place->coordinates[0];
  // All runs are looked at for each of them: of large plans, only some are taken.
  const std::vector<Index> locals = looked_at(random, axis, part);
  const std::size_t step = 1 + std::size_t(plan.stored_runs()) / 500;
  for (std::size_t i = step > 1 ? std::size_t(random.below(Index(step))) : 0; i < locals.size(); i += step) {
    const Index local = locals[i];
    const AxisPoint point = point_at(axis, part, local);
    const Resolved expected = resolve(axis, point);
    int writes = 0;
    bool is_right = true;
    plan.for_each_receive([&](const Transfer& t) {
      std::vector<tranship::Run> runs;
      for (const tranship::Run& run : t.entry(0).runs) clip(run, {local, local + 1}, runs);
      for (const RunLattice& lattice : t.entry(0).lattices) clip(lattice, {local, local + 1}, runs);
      for (const tranship::Run& run : runs) {
        writes += int(run.count);
        const Distribution::Cell read = source.cell_of(t.peer, {run.source});
        is_right = is_right && read.owned && expected.kind == Resolved::value && read.at[0] == expected.cell;
      }
    });
    for (const LocalFill& fill : plan.fills_after) {
      std::vector<tranship::Run> runs;
      for (const tranship::Run& run : fill.axes[0]) clip(run, {local, local + 1}, runs);
      for (const tranship::Run& run : runs) {
        writes += int(run.count);
        if (fill.kind == LocalFillKind::zero)
          is_right = is_right && expected.kind == Resolved::zero;
        else
          is_right =
              is_right && expected.kind == Resolved::value && point_at(axis, part, run.source).cell == expected.cell;
      }
    }
    const bool is_wanted = (all || point.beyond() != 0) && expected.kind != Resolved::left_alone;
    if (writes != int(is_wanted) || !is_right)
      return fmt::format("rank {} slot {} local {} of {}: cell {} is written {} times{}", plan.rank, slot, local,
                         axis.local_extent(part), point.cell, writes, is_right ? "" : ", wrongly");
  }
  return "";
}

/// Both ends of every message list the same runs.
std::string fault_between(const Plans& plans) {
  std::vector<std::pair<std::pair<Rank, Rank>, const AxisEntry*>> received, sent;
  for (const TransferPlan& plan : plans) {
    plan.for_each_receive([&](const Transfer& t) { received.push_back({{t.peer, plan.rank}, &t.entry(0)}); });
    plan.for_each_send([&](const Transfer& t) { sent.push_back({{plan.rank, t.peer}, &t.entry(0)}); });
  }
  const auto by_ends = [](const auto& a, const auto& b) { return a.first < b.first; };
  std::stable_sort(received.begin(), received.end(), by_ends);
  std::stable_sort(sent.begin(), sent.end(), by_ends);
  const auto alike = [](const auto& a, const auto& b) {
    return a.first == b.first && a.second->runs == b.second->runs && a.second->lattices == b.second->lattices;
  };
  return std::equal(received.begin(), received.end(), sent.begin(), sent.end(), alike) ? "" : "the ends differ";
}

std::string axis_fault(Random& random, const AxisParts& axis) {
  Index owned = 0;
  for (Index part = 0; part < axis.parts(); ++part) {
    owned += axis.owned_count(part);
    Index stored = 0;
    for (const SliceFamily& f : axis.slices(part)) stored += f.count * f.stored();
    if (stored != axis.local_extent(part)) return fmt::format("part {} stores {} cells", part, stored);
  }
  const bool interfaces = axis.partition().points == Points::interfaces;
  if (!interfaces && owned != (axis.replicated() ? axis.parts() : 1) * axis.extent()) return "owned cells";
  for (const Index cell : {Index(0), Index(1), axis.extent() / 2, random.below(axis.extent()), axis.extent() - 1}) {
    if (cell >= axis.extent()) continue;
    const std::optional<Index> local = axis.local_of(axis.owner(cell), cell);
    if (!local || axis.cell_of(axis.owner(cell), *local).cell != cell) return fmt::format("the owner of {}", cell);
  }
  return "";
}

TEST(Planning, ExtentsAtTheLimitAreRightAtRandomAndRefusedAboveIt) {
  Index planned = 0, near = 0;
  EXPECT_EQ(
      first_fault(is_sanitized ? 0.3 : 0.5,
                  [&](std::uint64_t seed) -> std::string {
                    Random random(seed);
                    const Rule from = random_rule(random), to = random_rule(random);
                    const Index extent = largest_extent(from, to);
                    const ArraySpec source = from.array_of(extent), target = to.array_of(extent);
                    const auto named = [&](const std::string& fault) {
                      return fault.empty() ? "" : fault + "\n  from " + to_text(source) + "\n  to   " + to_text(target);
                    };
                    near += extent > extent_max / 2;
                    try {
                      for (const ArraySpec* spec : {&source, &target})
                        if (std::string fault = axis_fault(random, spec->distribution.axis(0)); !fault.empty())
                          return named(fault);
                      const Plans plans = redistribution_plans(source, target);
                      for (const TransferPlan& plan : plans) {
                        std::string fault =
                            fault_at_cells(random, plan, source.distribution, target.distribution, 1, true);
                        if (!fault.empty()) return named(fault);
                        if (const Result<void> checked = check_plan(plan); !checked)
                          return named(checked.error().what());
                        const PlanSummary summary = summarise(plan);
                        if (summary.received.cells + summary.local.cells + summary.filled.cells >
                            target.distribution.local_extents(plan.rank)[0])
                          return named("too many cells are written");
                      }
                      if (std::string fault = fault_between(plans); !fault.empty()) return named(fault);
                      ++planned;
                      if (target.distribution.replicated()) return "";
                      for (Rank r = 0; r < Rank(plans.size()); ++r) {
                        const TransferPlan halo = plan_halo({&target, 1}, r);
                        std::string fault =
                            fault_at_cells(random, halo, target.distribution, target.distribution, 0, false);
                        if (!fault.empty()) return named("halo: " + fault);
                      }
                    } catch (const Error& error) {
                      // Some slices overlap each other so much that no plan is made.
                      return error.code() == ErrorCode::unsupported ? "" : named(error.what());
                    }
                    return "";
                  }),
      "");
  RecordProperty("planned", int(planned));
  EXPECT_GT(planned, test_cases() / 8);
  EXPECT_GT(near, test_cases() / 8);
}

Index bytes_of(const TransferPlan& plan) {
  Index out = 0;
  for (const auto* groups : {&plan.receives, &plan.sends})
    for (const TransferGroup& group : *groups)
      for (const auto& axis : group.axes)
        for (const AxisEntry& entry : axis)
          out += Index(sizeof(AxisEntry) + entry.runs.capacity() * sizeof(tranship::Run) +
                       entry.lattices.capacity() * sizeof(RunLattice));
  return out;
}

// Nothing divides anything: each of 198 pairs of parts meets in 20,000 runs, which are a lattice.
TEST(Planning, BlocksWithoutACommonFactorAreLattices) {
  for (const Index extent : {Index(10'000'000'000), Index(1'000'000'000'000), Index(1) << 60, (Index(1) << 62) - 1}) {
    const ArraySpec from{ElementType::u8, {{extent}, grid(97), {cyclic(9973)}}};
    const ArraySpec to{ElementType::u8, {{extent}, grid(101), {cyclic(10007)}}};
    for (const auto& [source, target] : {std::pair(&from, &to), {&to, &from}})
      for (const Rank r : {0, 50, 96, 100}) {
        const TransferPlan plan = plan_redistribution(*source, *target, r);
        EXPECT_LE(bytes_of(plan), 1'000'000) << extent;
        EXPECT_GE(runs_expected(source->distribution, target->distribution), plan.stored_runs());
        Index cells = 0;
        plan.for_each_receive([&](const Transfer& t) { cells += t.cells(); });
        EXPECT_EQ(cells, checked_product(target->distribution.local_extents(r)));
      }
    expect_right_at_random_cells(from, to, 4);
  }
}

TEST(Planning, TurnsAroundATorusAreOneFamily) {
  const auto line = [](const Partition& cut) { return ArraySpec{ElementType::u8, {{1000}, grid(7), {cut}}}; };
  for (const Index width : {Index(20'000'000), Index(1) << 40}) {
    const ArraySpec ring = line(block().with_overlap(width, width + 3, EdgePolicy::toroidal));
    EXPECT_LE(plan_halo({&ring, 1}, 3).stored_runs(), 200);
    EXPECT_LE(plan_redistribution(line(block()), ring, 3).stored_runs(), 200);
    expect_right_at_random_cells(line(block()), ring, 100);
    expect_right_at_random_cells(line(cyclic(8)), ring, 100);
  }
}

// Slices of one part that look alike have the same neighbours, so that their number does not count.
TEST(Planning, NeighboursOfDealtBlocksAreFoundOnce) {
  const AxisParts ring(Index(6'400'000) << 20, 100'000, cyclic(64).with_overlap(3, 3, EdgePolicy::toroidal));
  EXPECT_EQ(parts_wanting(ring, ring, 50'000), (std::vector<Index>{49'999, 50'000, 50'001}));
  for (const AxisPiece& piece : stored_pieces(ring, 50'000))
    EXPECT_EQ(parts_giving(ring, piece.want), (std::vector<Index>{49'999, 50'000, 50'001}));
}

TEST(Planning, ProductsStoreASum) {
  const Index extent = 1'000'000;
  const ArraySpec source{ElementType::f32, {{extent, extent}, grid(16, 16), {cyclic(64), cyclic(64)}}};
  const ArraySpec target{ElementType::f32, {{extent, extent}, grid(24, 24), {cyclic(100), cyclic(100)}}};
  const ArraySpec line_from{ElementType::f32, {{extent}, grid(16), {cyclic(64)}}};
  const ArraySpec line_to{ElementType::f32, {{extent}, grid(24), {cyclic(100)}}};
  EXPECT_EQ(plan_redistribution(source, target, 0).stored_runs(),
            2 * plan_redistribution(line_from, line_to, 0).stored_runs());
}

TEST(Planning, HalosOfCyclicArraysDoNotEnumerate) {
  const Partition cut = cyclic(64).with_overlap(3, 3, EdgePolicy::toroidal);
  const Index size_bytes_repeat = 64 * 8;
  Index stored = 0;
  for (const Index repeats : {10, 1'000'000, 1'000'000'000}) {
    const ArraySpec field{ElementType::f64, {{size_bytes_repeat * repeats}, grid(8), {cut}}};
    const Index size = plan_halo({&field, 1}, 3).stored_runs();
    if (stored == 0) stored = size;
    EXPECT_EQ(size, stored) << "repeats " << repeats;
  }
}

// ---- What a plan will take
// -------------------------------------------------------------------------------------------

/// A plan of more than `plan_runs_max` runs is refused, with both numbers and the layouts, before it is made.
template <class Make>
void expect_refused(Make&& make, const std::string& layout) {
  try {
    make();
    ADD_FAILURE() << "not refused: " << layout;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find(std::to_string(plan_runs_max)), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find(layout), std::string::npos) << error.what();
  }
}

TEST(PlanSize, PlansWithoutEndAreRefused) {
  const auto line = [](Index extent, Index parts, const Partition& cut) {
    return ArraySpec{ElementType::f64, {{extent}, grid(parts), {cut}}};
  };
  // Slices that overlap each other have no order.
  const Partition wide = cyclic(10007).with_overlap(1'000'000, 10'000, EdgePolicy::truncate);
  const ArraySpec from = line(Index(1) << 52, 97, cyclic(9973)), to = line(Index(1) << 52, 101, wide);
  expect_refused([&] { plan_redistribution(from, to, 3); }, "cyclic(10007)");
  // As long as the array is short, few blocks meet.
  EXPECT_GT(plan_redistribution(line(10'000'000, 97, cyclic(9973)), line(10'000'000, 101, wide), 3).stored_runs(), 0);

  const Partition deep = cyclic(1).with_overlap(1000, 1000, EdgePolicy::zero);
  const ArraySpec plane{ElementType::f64, {{1'000'000, 1'000'000}, grid(2, 2), {deep, deep}}};
  expect_refused([&] { plan_halo({&plane, 1}, 0); }, "cyclic+overlap(1000,1000,zero)");
}

// A layout is judged by its cells, whatever its partition is called: one part has all of them, and a part of one slice
// has a block.
TEST(PlanSize, LayoutsOfTheSameCellsAreExpectedToBeEqual) {
  const auto line = [](Index extent, Index parts, const Partition& cut) {
    return ArraySpec{ElementType::u8, {{extent}, grid(parts), {cut}}};
  };
  const Index huge = 10'000'000'000'000;
  const ArraySpec dealt = line(huge, 4, cyclic(1'000'000'000));
  const TransferPlan whole_plan = plan_redistribution(dealt, line(huge, 1, whole()), 0);
  for (const Partition& one : {cyclic(84), cyclic(1), block(), irregular({0, huge})}) {
    EXPECT_EQ(plan_redistribution(dealt, line(huge, 1, one), 0).stored_runs(), whole_plan.stored_runs());
    EXPECT_EQ(plan_redistribution(line(huge, 1, one), dealt, 0).stored_runs(),
              plan_redistribution(line(huge, 1, whole()), dealt, 0).stored_runs());
  }
  std::vector<Index> bounds = {0};
  while (bounds.back() < 1'000'000'000) bounds.push_back(std::min<Index>(bounds.back() + 100'000'007, 1'000'000'000));
  const ArraySpec target = line(1'000'000'000, 4, cyclic(128));
  for (Rank r = 0; r < 10; ++r)
    EXPECT_EQ(plan_redistribution(line(1'000'000'000, 10, cyclic(100'000'007)), target, r).stored_runs(),
              plan_redistribution(line(1'000'000'000, 10, irregular(bounds)), target, r).stored_runs());
}

// Ten thousand slices over the edge in each of a hundred thousand parts, of which few runs come.
TEST(PlanSize, PlansOfTooManySlicesAreRefused) {
  const ArraySpec dealt = parse_layout("f32[1000000000] @ 100000 : cyclic(1)+overlap(1000000000,0)");
  const ArraySpec blocks = parse_layout("f32[1000000000] @ 100000 : block");
  EXPECT_LT(runs_expected(dealt.distribution, blocks.distribution), plan_runs_max);
  try {
    check_plan_size(dealt, blocks);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    const Index slices = slices_looked_at(dealt.distribution, blocks.distribution);
    for (const std::string& part : {std::to_string(plan_slices_max), std::to_string(slices), to_text(dealt)})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
  }
}

TEST(PlanSize, IsExpectedToBeAtLeastWhatItIs) {
  EXPECT_EQ(first_fault(1.0,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const int dims = int(random.between(1, 3));
                          const Indices extents = random_extents(random, dims);
                          LayoutChoices choices;
                          choices.overlap_max = random.pick<Index>({0, 1, 4, 40});
                          const Distribution a = random_distribution(random, extents, choices);
                          const Distribution b = random_distribution(random, extents, choices);
                          const ArraySpec from{ElementType::f64, a}, to{ElementType::f64, b};
                          for (Rank r = 0; r < choices.world; ++r) {
                            const Index runs = plan_redistribution(from, to, r).stored_runs();
                            if (runs > runs_expected(a, b))
                              return fmt::format("{} runs, {} are expected from {} to {}", runs, runs_expected(a, b),
                                                 to_text(from), to_text(to));
                            if (a.replicated()) continue;
                            const Index ghosts = plan_halo({&from, 1}, r).stored_runs();
                            if (ghosts > runs_expected(a, HaloOptions{}))
                              return fmt::format("{} runs, {} are expected of the halo of {}", ghosts,
                                                 runs_expected(a, HaloOptions{}), to_text(from));
                          }
                          return "";
                        }),
            "");
}

/// What a rank may store of a plan, against what it does: the most of any of a few.
struct Expectation {
  Index expected = 0;
  Index stored = 0;
  std::string text() const { return fmt::format("{} runs, {} are expected", stored, expected); }
};

Expectation expectation_of(const ArraySpec& array, const HaloOptions& options, std::initializer_list<Rank> ranks) {
  Expectation out{.expected = runs_expected(array.distribution, options)};
  for (const Rank r : ranks) out.stored = std::max(out.stored, plan_halo({&array, 1}, r, options).stored_runs());
  return out;
}

std::vector<Indices> neighbours(int dims) {
  std::vector<Indices> out;
  for_each_coordinate(Indices::filled(dims, 3), [&](const Indices& at) {
    Indices offset;
    for (const Index x : at) offset.push_back(x - 1);
    if (!(offset == Indices::filled(dims, 0))) out.push_back(offset);
  });
  return out;
}

// Of common layouts on many ranks the bound is near the truth, so that it refuses none of them.
TEST(PlanSize, IsExpectedToBeNearWhatItIs) {
  std::vector<Index> bounds{0};
  for (Index part = 0; part < 16; ++part) bounds.push_back(bounds.back() + (part % 5 == 3 ? 0 : 200 + 7 * part));
  const Index extent = bounds.back();
  const std::pair<const char*, Partition> rules[] = {{"block", block()},
                                                     {"high", block(Remainder::high)},
                                                     {"ceil", block(Remainder::ceil)},
                                                     {"min", block().with_minimum(300)},
                                                     {"mod", block().with_modulo(8)},
                                                     {"irregular", irregular(bounds)}};
  for (const auto& [name, rule] : rules)
    for (const EdgePolicy edge : {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero})
      for (const int dims : {2, 3}) {
        const std::string label = fmt::format("{} {} in {} dimensions", name, name_of(edge), dims);
        const Partition cut = rule.with_overlap(1, 1, edge);
        const auto array_of = [&](const Partition& p) {
          return ArraySpec{ElementType::f64,
                           {Indices::filled(dims, extent), Grid(Indices::filled(dims, 16)),
                            std::vector<Partition>(std::size_t(dims), p)}};
        };
        const ArraySpec array = array_of(cut), bare = array_of(block());
        const Rank middle = dims == 2 ? 5 * 16 + 6 : (5 * 16 + 6) * 16 + 6;
        const Expectation box = expectation_of(array, {}, {0, middle});
        EXPECT_LE(box.expected, 64 * box.stored) << label << ": " << box.text();
        const Expectation all = expectation_of(array, {.stencil = {StencilKind::offsets, neighbours(dims)}}, {middle});
        EXPECT_LE(all.expected, plan_runs_max / 16) << label << ", all neighbours: " << all.text();
        EXPECT_GE(all.expected, all.stored) << label << ", all neighbours";
        Expectation moved{.expected = runs_expected(bare.distribution, array.distribution)};
        for (const Rank r : {Rank(0), middle})
          moved.stored = std::max(moved.stored, plan_redistribution(bare, array, r).stored_runs());
        EXPECT_LE(moved.expected, 64 * moved.stored) << label << ", redistributed: " << moved.text();
      }
}

// Blocks of the largest size and overlaps do not overflow a bound.
TEST(PlanSize, BearsTheLargestBlocks) {
  for (const EdgePolicy edge : {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero}) {
    const ArraySpec one{ElementType::f64, {{5}, grid(1), {cyclic(INT64_MAX).with_overlap(1, 1, edge)}}};
    const ArraySpec two{ElementType::f64, {{5}, grid(2), {cyclic(INT64_MAX / 2).with_overlap(1, 1, edge)}}};
    const ArraySpec unit{ElementType::f64, {{5}, grid(2), {block(Remainder::high).with_modulo(INT64_MAX)}}};
    for (const ArraySpec* from : {&one, &two, &unit}) {
      for (const ArraySpec* to : {&one, &two, &unit}) {
        const Index expected = runs_expected(from->distribution, to->distribution);
        EXPECT_GE(expected, plan_redistribution(*from, *to, 0).stored_runs()) << name_of(edge);
        EXPECT_LE(expected, 1000) << name_of(edge);
      }
      EXPECT_GE(runs_expected(from->distribution, HaloOptions{}), plan_halo({from, 1}, 0).stored_runs());
      EXPECT_LE(runs_expected(from->distribution, HaloOptions{}), 1000) << name_of(edge);
    }
  }
}

// Many ranks, dimensions and wide overlaps are far from the limit.
TEST(PlanSize, UsualPlansAreFarFromTheLimit) {
  const auto spec = [](const std::string& text) { return parse_layout(text); };
  const std::pair<const char*, const char*> pairs[] = {
      {"f64[1000000000000] @ 16 : cyclic(64)", "f64[1000000000000] @ 24 : cyclic(100)+overlap(3,3,toroidal)"},
      {"f64[8192,8192] @ 4096x1 : block, whole", "f64[8192,8192] @ 1x4096 : whole, block"},
      {"f64[4096,4096,4096] @ 16x16x16 : cyclic(8), cyclic(8), cyclic(8)",
       "f64[4096,4096,4096] @ 16x16x16 : cyclic(12), cyclic(12), cyclic(12)"},
      {"f64[100000000] @ 100000 : block", "f64[100000000] @ 100000 : cyclic(64)"},
      {"f64[100000000] @ 100000 : block", "f64[100000000] @ 100000 : block+overlap(3,3,toroidal)"},
      {"f64[1000000000] @ 97 : cyclic(9973)", "f64[1000000000] @ 101 : cyclic(10007)"}};
  for (const auto& [from, to] : pairs) {
    const ArraySpec source = spec(from), target = spec(to);
    EXPECT_LE(runs_expected(source.distribution, target.distribution), plan_runs_max / 4) << from << " to " << to;
    EXPECT_LE(slices_looked_at(source.distribution, target.distribution), plan_slices_max / 64) << from << " to " << to;
  }
  for (const char* text : {"f64[4096,4096,4096] @ 16x16x16 : block+overlap(3,3,toroidal), block+overlap(3,3,toroidal), "
                           "block+overlap(3,3,toroidal)",
                           "f64[4096,4096,4096] @ 16x16x16 : cyclic(16)+overlap(3,3,toroidal), "
                           "cyclic(16)+overlap(3,3,toroidal), cyclic(16)+overlap(3,3,toroidal)",
                           "f64[100000000] @ 100000 : block+overlap(3,3,toroidal)"}) {
    const ArraySpec array = spec(text);
    EXPECT_LE(runs_expected(array.distribution, HaloOptions{}), plan_runs_max / 4) << text;
  }
}

// The parts that may read from one are found from its cells: all those that do, and of many parts few.
TEST(Readers, AreFoundWithoutAskingAllParts) {
  EXPECT_EQ(first_fault(1.0,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const Index extent = random.between(1, 40);
                          LayoutChoices choices;
                          choices.overlap_max = random.pick<Index>({0, 2, 9, 70});
                          const Index parts = random.between(1, 9), sources = random.between(1, 9);
                          const AxisParts source(extent, sources, random_partition(random, extent, sources, choices));
                          const AxisParts target(extent, parts, random_partition(random, extent, parts, choices));
                          for (Index part = 0; part < source.parts(); ++part) {
                            const std::vector<Index> found = parts_wanting(target, source, part);
                            for (Index q = 0; q < target.parts(); ++q) {
                              AxisEntry entry;
                              for (const AxisPiece& piece : stored_pieces(target, q))
                                if (piece.kind == AxisPieceKind::given) append_runs(source, part, piece.want, entry);
                              if (!entry.is_empty() && std::find(found.begin(), found.end(), q) == found.end())
                                return fmt::format("part {} reads from part {} and is not found", q, part);
                            }
                          }
                          return "";
                        }),
            "");
  const AxisParts ring(1'000'000, 100'000, block().with_overlap(3, 3, EdgePolicy::toroidal));
  EXPECT_EQ(parts_wanting(ring, ring, 0), (std::vector<Index>{0, 1, 99'999}));
  EXPECT_EQ(parts_wanting(ring, ring, 50'000), (std::vector<Index>{49'999, 50'000, 50'001}));
}

}  // namespace
}  // namespace tranship
