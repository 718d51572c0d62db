// Private: Clipping, the part of a run that lies in an interval of the target. A plan of a whole part serves any box
// of it: it is made once, and clipping costs the same wherever the box lies and however large the array is.
#pragma once

#include <vector>

#include <tranship/plan/axis_match.hpp>

namespace tranship {

/// Appends runs that move exactly those cells of `run` whose target lies in `target`, in the order of its repeats. At
/// most three where repeats do not overlap each other in the target: one cut, all whole ones, one cut.
void clip(const Run& run, Interval target, std::vector<Run>& out);

/// The same of a lattice, stretch by stretch in its order.
void clip(const RunLattice& lattice, Interval target, std::vector<Run>& out);

/// The interval from the lowest to the highest cell that a run reads or writes.
Interval source_hull(const Run& run) noexcept;
Interval target_hull(const Run& run) noexcept;
/// Of the target's comb, of which a lattice may not write all.
Interval target_hull(const RunLattice& lattice) noexcept;
/// A hull that grows by another one; an empty hull becomes that.
Interval joined(const Interval& hull, const Interval& more) noexcept;

/// The run that moves the same cells back.
Run reversed(Run run) noexcept;
RunLattice reversed(const RunLattice& lattice) noexcept;

}  // namespace tranship
