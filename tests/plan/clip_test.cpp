// Clipping runs to an interval, against going through their cells one by one.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include <tranship/plan/clip.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

using namespace test;
using PlanRun = tranship::Run;                       // inside a TEST, Run is a function of GoogleTest
using Moves = std::vector<std::pair<Index, Index>>;  // target, source: as many as there are

Moves moves_of(const std::vector<Run>& runs, Interval target) {
  Moves out;
  for (const Run& run : runs)
    for (Index k = 0; k < run.count; ++k)
      for (Index i = 0; i < run.length; ++i) {
        const Index at = run.target + k * run.target_pitch + i * run.target_step;
        if (target.contains(at)) out.emplace_back(at, run.source + k * run.source_pitch + i * run.source_step);
      }
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const Run& run) {
  return fmt::format("source {}+{}k+{}i, target {}+{}k+{}i, {} times {}", run.source, run.source_pitch, run.source_step,
                     run.target, run.target_pitch, run.target_step, run.count, run.length);
}

std::string clip_fault(const Run& run, Interval target) {
  std::vector<Run> clipped;
  clip(run, target, clipped);
  const auto named = [&](const char* fault) {
    return fmt::format("{}: {} in [{}, {})", fault, text_of(run), target.lower, target.upper);
  };
  if (moves_of(clipped, {-100'000, 100'000}) != moves_of({run}, target)) return named("other moves");
  for (const Run& c : clipped)
    if (c.cells() == 0) return named("an empty run");
  const bool disjoint = std::abs(run.target_pitch) > (run.length - 1) * std::abs(run.target_step);
  if (disjoint && clipped.size() > 3) return named("more than three runs");
  return "";
}

TEST(Clip, AgreesWithGoingThroughTheCells) {
  EXPECT_EQ(first_fault(3.0,
                        [](std::uint64_t seed) {
                          Random random(seed);
                          const PlanRun run{.source = random.between(-20, 20),
                                            .target = random.between(-20, 20),
                                            .length = random.between(0, 6),
                                            .count = random.between(0, 6),
                                            .source_step = random.between(-2, 2),
                                            .target_step = random.between(-2, 2),
                                            .source_pitch = random.between(-9, 9),
                                            .target_pitch = random.between(-9, 9)};
                          const Index lower = random.between(-40, 40);
                          return clip_fault(run, {lower, lower + random.between(0, 30)});
                        }),
            "");
}

TEST(Clip, EveryIntervalOfAPeriodicRun) {
  const PlanRun run{.source = 100, .target = 3, .length = 4, .count = 5, .source_pitch = 6, .target_pitch = 7};
  for (Index lower = 0; lower < 45; ++lower)
    for (Index upper = lower; upper < 45; ++upper) ASSERT_EQ(clip_fault(run, {lower, upper}), "");
}

TEST(Clip, CostsTheSameHoweverManyRepeats) {
  // A run through 10^15 cells, clipped in its middle; going through the repeats would not end.
  const Index count = Index(1) << 47;
  const PlanRun run{.length = 4, .count = count, .source_pitch = 6, .target_pitch = 8};
  const Index middle = count / 2 * 8;
  std::vector<PlanRun> clipped;
  clip(run, {middle + 2, middle + 800 + 2}, clipped);
  EXPECT_EQ(clipped.size(), 3u);
  Index cells = 0;
  for (const PlanRun& c : clipped) cells += c.cells();
  EXPECT_EQ(cells, 400);
  EXPECT_EQ(clipped[1], (PlanRun{.source = count / 2 * 6 + 6,
                                 .target = middle + 8,
                                 .length = 4,
                                 .count = 99,
                                 .source_pitch = 6,
                                 .target_pitch = 8}));
}

TEST(Clip, HullsHoldAllCellsAndNoMore) {
  EXPECT_EQ(first_fault(1.0,
                        [](std::uint64_t seed) -> std::string {
                          Random random(seed);
                          const PlanRun run{.source = random.between(-9, 9),
                                            .target = random.between(-9, 9),
                                            .length = random.between(1, 5),
                                            .count = random.between(1, 5),
                                            .source_step = random.between(-2, 2),
                                            .target_step = random.between(-2, 2),
                                            .source_pitch = random.between(-9, 9),
                                            .target_pitch = random.between(-9, 9)};
                          const Moves all = moves_of({run}, {-100'000, 100'000});
                          auto [low, high] = std::pair(all[0].second, all[0].second);
                          for (const auto& move : all) {
                            low = std::min(low, move.second);
                            high = std::max(high, move.second);
                          }
                          const bool right = target_hull(run) == Interval{all.front().first, all.back().first + 1} &&
                                             source_hull(run) == Interval{low, high + 1};
                          return right ? "" : text_of(run);
                        }),
            "");
}

}  // namespace
}  // namespace tranship
