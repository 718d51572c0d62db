#include "tranship/plan/run_intervals.hpp"

#include <algorithm>

namespace tranship {

std::vector<Interval> merged(std::vector<Interval> intervals) {
  std::erase_if(intervals, [](const Interval& one) { return one.empty(); });
  std::sort(intervals.begin(), intervals.end(), [](const Interval& a, const Interval& b) { return a.lower < b.lower; });
  std::vector<Interval> out;
  for (const Interval& one : intervals) {
    if (!out.empty() && one.lower <= out.back().upper)
      out.back().upper = std::max(out.back().upper, one.upper);
    else
      out.push_back(one);
  }
  return out;
}

std::vector<Interval> intervals_of(const std::vector<Run>& runs, RunEnd end) {
  std::vector<Interval> out;
  for (const Run& run : runs) {
    const bool is_source = end == RunEnd::source;
    const Index first = is_source ? run.source : run.target, step = is_source ? run.source_step : run.target_step,
                pitch = is_source ? run.source_pitch : run.target_pitch;
    for (Index k = 0; k < run.count; ++k) {
      const Index begin = first + k * pitch;
      if (step == 1 || step == -1) {
        const Index last = begin + step * (run.length - 1);
        out.push_back({std::min(begin, last), std::max(begin, last) + 1});
      } else {
        for (Index i = 0; i < run.length; ++i) out.push_back({begin + i * step, begin + i * step + 1});
      }
    }
  }
  return merged(std::move(out));
}

}  // namespace tranship
