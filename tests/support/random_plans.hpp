// Random plans of every kind, one rank at a time.
#pragma once

#include <vector>

#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>

#include "support/random_layouts.hpp"

namespace tranship::test {

std::vector<Rank> first_ranks(Index count);

/// A plan that a planner makes: a redistribution or a halo, structured or indexed, or the adjoint of one.
TransferPlan random_plan(Random& random);

}  // namespace tranship::test
