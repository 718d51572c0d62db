// Private: Bounds the size of a plan before it is made, from block sizes and parts. All ranks compute the same bound.
#pragma once

#include <tranship/plan/halo.hpp>

namespace tranship {

/// Limit on the runs and lattices of one rank's plan: about 300 MB, and a second to make them.
inline constexpr Index plan_runs_max = Index(1) << 22;

/// Limit on the slices that planning one rank may look at: seconds. Slices that reach an edge are looked at one by one,
/// also in parts that give few runs.
inline constexpr Index plan_slices_max = Index(1) << 27;

/// Returns an upper bound on the runs and lattices that plan_redistribution stores for any one rank (structured
/// distributions).
Index runs_expected(const Distribution& source, const Distribution& target);
/// Returns such a bound for plan_halo of one array whose ghosts come from the same array.
Index runs_expected(const Distribution& array, const HaloOptions& options);

/// Returns an upper bound on the slices that plan_redistribution looks at for any one rank; a family of slices counts
/// once.
Index slices_looked_at(const Distribution& source, const Distribution& target);

/// Throws `unsupported`, naming the layouts and both numbers, for plans of more than plan_runs_max runs and for
/// redistributions that look at more than plan_slices_max slices.
void check_plan_size(const ArraySpec& source, const ArraySpec& target);
/// Lets the error name other layouts than those that are checked.
struct StandsFor {
  const ArraySpec& source;
  const ArraySpec& target;
};
void check_plan_size(const ArraySpec& source, const ArraySpec& target, const StandsFor& named);
void check_plan_size(const ArraySpec& array, const HaloOptions& options);

}  // namespace tranship
