// Private: Clipping, which keeps the part of a run that lies in an interval of the target. A plan of a whole part is
// made once and serves any box of it; the cost of clipping depends neither on the box nor on the size of the array.
#pragma once

#include <vector>

#include <tranship/plan/axis_match.hpp>

namespace tranship {

/// Appends runs that move exactly the cells of `run` whose target lies in `target`, in the order of the repeats. At
/// most three runs if the repeats do not overlap in the target: a cut one, all whole ones, a cut one.
void clip(const Run& run, Interval target, std::vector<Run>& out);

/// Clips a lattice, stretch by stretch in its order.
void clip(const RunLattice& lattice, Interval target, std::vector<Run>& out);

/// Return the interval from the lowest to the highest cell that a run reads or writes.
Interval source_hull(const Run& run) noexcept;
Interval target_hull(const Run& run) noexcept;
/// Returns the hull of the target's comb; the lattice may write only part of it.
Interval target_hull(const RunLattice& lattice) noexcept;
/// Returns the smallest interval that contains both hulls. `hull` may be empty, `more` must not be.
Interval joined(const Interval& hull, const Interval& more) noexcept;

/// Return the run or lattice that moves the same cells back.
Run reversed(Run run) noexcept;
RunLattice reversed(const RunLattice& lattice) noexcept;

}  // namespace tranship
