// Private: converts runs along one dimension to intervals of cells.
#pragma once

#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/plan/runs.hpp>

namespace tranship {

enum class RunEnd : bool { source, target };

/// Returns the union of the intervals, in increasing order; no two of them touch.
std::vector<Interval> merged(std::vector<Interval> intervals);

/// Returns the cells that the runs read or write. Time grows with the number of stretches, and with the cells of runs
/// whose steps are longer than 1.
std::vector<Interval> intervals_of(const std::vector<Run>& runs, RunEnd end);

}  // namespace tranship
