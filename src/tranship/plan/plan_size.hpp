// Private: How large a plan will be, before it is made: a bound from block sizes and parts, the same on all ranks.
#pragma once

#include <tranship/plan/halo.hpp>

namespace tranship {

/// Runs and lattices that one rank's plan may have: some 300 MB, and a second to make them.
inline constexpr Index plan_runs_max = Index(1) << 22;

/// Slices that planning one rank may look at: seconds. Those that reach an edge are looked at one by one, also of
/// parts of which few runs come.
inline constexpr Index plan_slices_max = Index(1) << 27;

/// At least as many runs and lattices as plan_redistribution stores for any one rank (structured distributions).
Index runs_expected(const Distribution& source, const Distribution& target);
/// At least as many as plan_halo stores for any one rank, in one array that it reads only from itself.
Index runs_expected(const Distribution& array, const HaloOptions& options);

/// At least as many slices, families of alike ones counted once, as plan_redistribution looks at for any one rank.
Index slices_looked_at(const Distribution& source, const Distribution& target);

/// Throws `unsupported`, naming the layouts and both numbers, for plans of more than plan_runs_max runs and for
/// redistributions of more than plan_slices_max slices to look at.
void check_plan_size(const ArraySpec& source, const ArraySpec& target);
/// The same for arrays that stand for others, by whose layouts the error names them.
struct StandsFor {
  const ArraySpec& source;
  const ArraySpec& target;
};
void check_plan_size(const ArraySpec& source, const ArraySpec& target, const StandsFor& named);
void check_plan_size(const ArraySpec& array, const HaloOptions& options);

}  // namespace tranship
