// How large a plan will be, before it is made: a bound from block sizes and parts alone, the same on all ranks.
#pragma once

#include <tranship/plan/halo.hpp>

namespace tranship {

/// Runs that one rank's plan may have: some 300 MB, and a second to make them.
inline constexpr Index plan_runs_max = Index(1) << 22;

/// At least as many runs as plan_redistribution stores for any one rank (structured distributions).
Index runs_expected(const Distribution& source, const Distribution& target);
/// At least as many as plan_halo stores for any one rank, in one array that it reads only from itself.
Index runs_expected(const Distribution& array, const HaloOptions& options);

/// Throws `unsupported`, naming the layouts and both numbers, for plans of more than plan_runs_max runs.
void check_plan_size(const ArraySpec& source, const ArraySpec& target);
void check_plan_size(const ArraySpec& array, const HaloOptions& options);

}  // namespace tranship
