// Private: Written, which step has written which bytes of a memory of a replayed program, and when they arrive.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include <tranship/base/index.hpp>

namespace tranship::replays {

/// An arrival from elsewhere, with the parts of its time since the sending event ended.
struct Arrival {
  double at_ns = 0;
  std::int32_t event = -1;
  double latency_ns = 0, bandwidth_ns = 0, queued_ns = 0;

  bool operator>(const Arrival& other) const { return std::tie(at_ns, event) > std::tie(other.at_ns, other.event); }
};

/// The stretches of a memory by the step that wrote them last.
class Written {
 public:
  struct Cell {
    Index end = 0;
    Arrival arrival;
    std::int32_t step = -1;
  };

  void write(Index begin, Index end, const Arrival& arrival, std::int32_t step) {
    if (begin >= end) return;
    cut(begin);
    cut(end);
    cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(end));
    cells_.emplace(begin, Cell{.end = end, .arrival = arrival, .step = step});
  }
  /// Calls f(cell) for the cells in [begin, end) up to the first gap. Returns true when there is no gap.
  template <class F>
  bool read_whole(Index begin, Index end, F&& f) const {
    auto at = cells_.upper_bound(begin);
    if (at != cells_.begin()) --at;
    Index known = begin;
    for (; at != cells_.end() && at->first < end; ++at) {
      if (at->second.end <= begin) continue;
      if (at->first > known) return false;
      known = at->second.end;
      f(at->second);
    }
    return known >= end;
  }
  /// Calls f(begin of the cell, cell) for each cell in [begin, end).
  template <class F>
  void read(Index begin, Index end, F&& f) const {
    auto at = cells_.upper_bound(begin);
    if (at != cells_.begin()) --at;
    for (; at != cells_.end() && at->first < end; ++at)
      if (at->second.end > begin) f(at->first, at->second);
  }

 private:
  void cut(Index at) {
    auto found = cells_.upper_bound(at);
    if (found == cells_.begin()) return;
    --found;
    if (found->first == at || found->second.end <= at) return;
    Cell rest = found->second;
    found->second.end = at;
    cells_.emplace(at, std::move(rest));
  }

  std::map<Index, Cell> cells_;
};

}  // namespace tranship::replays
