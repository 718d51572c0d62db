#include "tranship/plan/clip.hpp"

#include <algorithm>

namespace tranship {
namespace {

/// Returns the numbers n of [0, count) for which first + n * step lies in `within`; they form an interval.
Interval numbers_within(Index first, Index step, Index count, Interval within) {
  if (step == 0) return within.contains(first) ? Interval{0, count} : Interval{};
  if (step < 0) {
    // Negates everything, so that the step is positive.
    first = -first;
    step = -step;
    within = {1 - within.upper, 1 - within.lower};
  }
  return intersect({0, count}, {ceil_divide(within.lower - first, step), ceil_divide(within.upper - first, step)});
}

/// Returns the cells `cells` of the repeats `repeats`.
Run cut(const Run& run, Interval repeats, Interval cells) {
  Run out = run;
  out.source += repeats.lower * run.source_pitch + cells.lower * run.source_step;
  out.target += repeats.lower * run.target_pitch + cells.lower * run.target_step;
  out.length = cells.length();
  out.count = repeats.length();
  return out;
}

/// Returns the interval from the lowest to the highest offset of `count` cells or repeats.
Interval reach(Index count, Index step) {
  const Index last = (count - 1) * step;
  return {std::min<Index>(0, last), std::max<Index>(0, last)};
}

Interval hull(Index first, Interval cells, Interval repeats) {
  return {first + cells.lower + repeats.lower, first + cells.upper + repeats.upper + 1};
}

}  // namespace

void clip(const Run& run, Interval target, std::vector<Run>& out) {
  if (run.length <= 0 || run.count <= 0 || target.empty()) return;
  const auto append_cut = [&](Interval repeats) {
    const Index first = run.target + repeats.lower * run.target_pitch;
    const Interval cells = numbers_within(first, run.target_step, run.length, target);
    if (!cells.empty()) out.push_back(cut(run, repeats, cells));
  };
  if (run.target_pitch == 0) return append_cut({0, run.count});

  const Interval cells = reach(run.length, run.target_step);
  const auto repeats_with = [&](Index lower, Index upper) {
    return numbers_within(run.target, run.target_pitch, run.count, {lower, upper});
  };
  const Interval touched = repeats_with(target.lower - cells.upper, target.upper - cells.lower);
  if (touched.empty()) return;
  Interval whole = intersect(touched, repeats_with(target.lower - cells.lower, target.upper - cells.upper));
  if (whole.empty()) whole = {touched.upper, touched.upper};
  for (Index k = touched.lower; k < whole.lower; ++k) append_cut({k, k + 1});
  if (!whole.empty()) out.push_back(cut(run, whole, {0, run.length}));
  for (Index k = whole.upper; k < touched.upper; ++k) append_cut({k, k + 1});
}

void clip(const RunLattice& lattice, Interval target, std::vector<Run>& out) {
  const LocalComb& comb = lattice.target;
  const Index first = std::max<Index>(0, floor_divide(target.lower - comb.start - comb.length, comb.pitch) + 1);
  const Index end = ceil_divide(target.upper - comb.start, comb.pitch);
  for (LatticeWalk walk(lattice, first, end); !walk.is_over(); walk.next()) clip(walk.run(), target, out);
}

Interval source_hull(const Run& run) noexcept {
  return hull(run.source, reach(run.length, run.source_step), reach(run.count, run.source_pitch));
}

Interval target_hull(const Run& run) noexcept {
  return hull(run.target, reach(run.length, run.target_step), reach(run.count, run.target_pitch));
}

Interval target_hull(const RunLattice& lattice) noexcept {
  const LocalComb& comb = lattice.target;
  return {comb.start, comb.start + (comb.count - 1) * comb.pitch + comb.length};
}

Interval joined(const Interval& hull, const Interval& more) noexcept {
  return hull.empty() ? more : Interval{std::min(hull.lower, more.lower), std::max(hull.upper, more.upper)};
}

Run reversed(Run run) noexcept {
  std::swap(run.source, run.target);
  std::swap(run.source_step, run.target_step);
  std::swap(run.source_pitch, run.target_pitch);
  return run;
}

RunLattice reversed(const RunLattice& lattice) noexcept {
  return {lattice.target, lattice.source, -lattice.distance};
}

}  // namespace tranship
