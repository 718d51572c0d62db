// Private: the cells of runs along one dimension, as intervals.
#pragma once

#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/plan/runs.hpp>

namespace tranship {

enum class RunEnd : bool { source, target };

/// The union of intervals, in increasing order; no two of them touch.
std::vector<Interval> merged(std::vector<Interval> intervals);

/// The cells that some runs read or write. Takes time in proportion to the stretches of the runs, and to the cells of
/// runs whose steps are longer than 1.
std::vector<Interval> intervals_of(const std::vector<Run>& runs, RunEnd end);

}  // namespace tranship
