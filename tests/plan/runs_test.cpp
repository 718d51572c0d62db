// Lattices of runs against a cell-by-cell loop: what two combs have in common, however it is counted, walked or
// clipped.
#include <set>

#include <gtest/gtest.h>

#include <tranship/plan/clip.hpp>
#include <tranship/plan/runs.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using namespace test;
using PlanRun = tranship::Run;  // inside a TEST, Run is a function of GoogleTest
using Moves = std::vector<std::pair<Index, Index>>;

void append_cells(const PlanRun& run, Moves& out) {
  for (Index k = 0; k < run.count; ++k)
    for (Index i = 0; i < run.length; ++i)
      out.emplace_back(run.source + k * run.source_pitch + i, run.target + k * run.target_pitch + i);
}

std::string text_of(const RunLattice& lattice) {
  const LocalComb &a = lattice.source, &b = lattice.target;
  return fmt::format("{} of {} every {} and {} of {} every {}, {} apart", a.count, a.length, a.period, b.count,
                     b.length, b.period, lattice.distance);
}

/// The local cells that stand for one cell of the array, in the order of the target.
Moves moves_of(const RunLattice& lattice) {
  Moves out;
  for (Index t = 0; t < lattice.target.count; ++t)
    for (Index i = 0; i < lattice.target.length; ++i) {
      const Index cell = lattice.distance + t * lattice.target.period + i;
      const Index u = floor_divide(cell, lattice.source.period), offset = cell - u * lattice.source.period;
      if (u < 0 || u >= lattice.source.count || offset >= lattice.source.length) continue;
      out.emplace_back(lattice.source.start + u * lattice.source.pitch + offset,
                       lattice.target.start + t * lattice.target.pitch + i);
    }
  return out;
}

std::string lattice_fault(const RunLattice& lattice) {
  const Moves expected = moves_of(lattice);
  const auto fault = [&](const std::string& what) { return text_of(lattice) + ": " + what; };
  if (lattice.cells() != Index(expected.size()))
    return fault(fmt::format("{} cells, not {}", lattice.cells(), expected.size()));
  Moves walked;
  Index stretches = 0;
  const Index longest = std::min(lattice.source.length, lattice.target.length);
  std::vector<RunLattice::Share> shares(static_cast<std::size_t>(longest) + 2);  // by the length of a stretch
  for (LatticeWalk walk(lattice); !walk.is_over(); walk.next(), ++stretches) {
    append_cells(walk.run(), walked);
    RunLattice::Share& share = shares[static_cast<std::size_t>(walk.length())];
    ++share.stretches;
    share.cells += walk.length();
  }
  RunLattice::Share up_to;
  for (Index length = 0; length <= longest + 1; ++length) {
    up_to.stretches += shares[static_cast<std::size_t>(length)].stretches;
    up_to.cells += shares[static_cast<std::size_t>(length)].cells;
    const RunLattice::Share share = lattice.up_to(length);
    if (share.stretches != up_to.stretches || share.cells != up_to.cells)
      return fault(fmt::format("{} stretches and {} cells up to length {}, not {} and {}", share.stretches, share.cells,
                               length, up_to.stretches, up_to.cells));
  }
  if (walked != expected) return fault("walks other cells");
  if (lattice.stretches() != stretches)
    return fault(fmt::format("{} stretches, not {}", lattice.stretches(), stretches));

  Moves in_runs;
  lattice.for_each_run([&](const PlanRun& run) { append_cells(run, in_runs); });
  std::sort(in_runs.begin(), in_runs.end());
  Moves sorted = expected;
  std::sort(sorted.begin(), sorted.end());
  if (in_runs != sorted) return fault("runs of other cells");

  const Index middle = lattice.target.count / 3;
  Moves parts;
  for (const auto& [first, end] : {std::pair<Index, Index>(0, middle), {middle, lattice.target.count}})
    for (LatticeWalk walk(lattice, first, end); !walk.is_over(); walk.next()) append_cells(walk.run(), parts);
  if (parts != expected) return fault("walks other cells in two parts");

  const Interval hull = target_hull(lattice);
  for (const Interval within : {hull, Interval{hull.lower + 2, hull.upper - hull.length() / 3},
                                Interval{hull.lower - 5, hull.lower + hull.length() / 2}}) {
    std::vector<PlanRun> clipped;
    clip(lattice, within, clipped);
    Moves found, wanted;
    for (const PlanRun& run : clipped) append_cells(run, found);
    for (const auto& move : expected)
      if (within.contains(move.second)) wanted.push_back(move);
    if (found != wanted) return fault("clips to other cells");
  }

  // Seen from the other side, in the same order.
  Moves back;
  for (LatticeWalk walk(reversed(lattice)); !walk.is_over(); walk.next()) append_cells(walk.run(), back);
  for (auto& [source, target] : back) std::swap(source, target);
  if (back != expected) return fault("reversed, walks other cells");
  return "";
}

TEST(RunLattice, AllSmallCombs) {
  Index checked = 0;
  for (Index a = 1; a <= 6; ++a)
    for (Index p = 1; p <= 4; ++p)
      for (Index b = 1; b <= 6; ++b)
        for (Index q = 1; q <= 4; ++q)
          for (const Index distance : {-11, -1, 0, 2, 7, 25})
            for (const auto& [m, n] : {std::pair<Index, Index>(1, 1), {5, 3}, {30, 40}, {2, 61}}) {
              const RunLattice lattice{{3, a, p * a, a + 2, m}, {5, b, q * b, b, n}, distance};
              if (!lattice.is_sound()) continue;
              ASSERT_EQ(lattice_fault(lattice), "");
              ++checked;
            }
  EXPECT_GT(checked, 5000);
}

TEST(RunLattice, RandomCombs) {
  EXPECT_EQ(first_fault(0.4,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          for (int times = 0; times < 20; ++times) {
                            RunLattice lattice{.distance = random.between(-300, 300)};
                            for (LocalComb* comb : {&lattice.source, &lattice.target}) {
                              comb->length = random.between(1, 40);
                              comb->period = comb->length + random.between(0, random.pick<Index>({0, 5, 300}));
                              comb->pitch = comb->length + random.between(0, 3);
                              comb->count = random.between(1, 200);
                              comb->start = random.between(0, 9);
                            }
                            if (!lattice.is_sound()) continue;
                            if (std::string fault = lattice_fault(lattice); !fault.empty()) return fault;
                          }
                          return "";
                        }),
            "");
}

// Sums of squares of 2^62 fit in no integer; what is left of them does.
TEST(RunLattice, TheLargestOnesAreCounted) {
  const Index far = Index(1) << 61;
  for (const auto& [a, p, b, q] : {std::array<Index, 4>{9973, 97, 10007, 101}, {97, 97, 101, 101}, {5, 1, 7, 1}}) {
    const RunLattice lattice{{0, a, p * a, a, far / (p * a)}, {0, b, q * b, b, far / (q * b)}, 17};
    ASSERT_TRUE(lattice.is_sound());
    Index cells = 0, stretches = 0;
    lattice.for_each_run([&](const PlanRun& run) {
      cells += run.cells();
      stretches += run.count;
    });
    EXPECT_EQ(lattice.cells(), cells) << text_of(lattice);
    EXPECT_EQ(lattice.stretches(), stretches) << text_of(lattice);
    // Near the far end, members of the walk that begins there.
    LatticeWalk walk(lattice, lattice.target.count - 2 * lattice.source.period, lattice.target.count);
    ASSERT_FALSE(walk.is_over());
    const Index t = walk.target() / b, u = walk.source() / a;
    EXPECT_EQ(17 + t * q * b + walk.target() % b, u * p * a + walk.source() % a) << text_of(lattice);
  }
}

TEST(RunLattice, WhatOverflowsIsNotSound) {
  const LocalComb small{0, 5, 15, 5, 10}, other{0, 7, 28, 7, 10};
  EXPECT_TRUE((RunLattice{small, other, 0}).is_sound());
  const auto with = [&](auto change) {
    RunLattice lattice{small, other, 0};
    change(lattice);
    return lattice.is_sound();
  };
  EXPECT_FALSE(with([](RunLattice& l) { l.source.count = INT64_MAX; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.target.period = INT64_MAX; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.distance = INT64_MIN; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.source.length = 0; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.source.length = 16; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.target.pitch = 6; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.target.count = -1; }));
  EXPECT_FALSE(with([](RunLattice& l) { l.source = {0, 1, 1, 1, 1}, l.target = {0, 1, 1, 1, 1}; }));
}

}  // namespace
}  // namespace tranship
