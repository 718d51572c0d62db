#include "tranship/array/ghosts/touched_cells.hpp"

#include <algorithm>

namespace tranship {
namespace {

enum class End : bool { source, target };

std::vector<Interval> joined(std::vector<Interval> intervals) {
  const Region region = Region::intervals(std::move(intervals));
  std::vector<Interval> out;
  for (const Box& box : region.boxes()) out.push_back(box[0]);
  return out;
}

/// The cells of some runs along one dimension, as intervals.
std::vector<Interval> intervals_of(const std::vector<Run>& runs, End end) {
  std::vector<Interval> out;
  for (const Run& run : runs) {
    const bool is_source = end == End::source;
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
  return joined(std::move(out));
}

using Boxes = std::vector<Box>;

void append(const std::vector<Box>& more, Boxes& boxes) {
  boxes.insert(boxes.end(), more.begin(), more.end());
}

void append_group(const TransferGroup& group, End end, Boxes& boxes) {
  const std::vector<int>& dims = end == End::source ? group.source_dims : group.target_dims;
  std::vector<std::vector<Interval>> axes(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k) {
    std::vector<Run> runs;
    for (const AxisEntry& entry : group.axes[k]) entry.for_each_run([&](const Run& run) { runs.push_back(run); });
    axes[std::size_t(dims[k])] = intervals_of(runs, end);
  }
  append(products(axes), boxes);
}

void append_list(const std::vector<Index>& cells, const Indices& extents, Boxes& boxes) {
  std::vector<Interval> ids;
  for (const Index cell : cells) ids.push_back({cell, cell + 1});
  std::vector<std::vector<Interval>> axes{joined(std::move(ids))};
  for (int d = 1; d < extents.size(); ++d) axes.push_back({{0, extents[d]}});
  append(products(axes), boxes);
}

void append_fill(const LocalFill& fill, End end, Boxes& boxes) {
  std::vector<std::vector<Interval>> axes;
  for (const std::vector<Run>& runs : fill.axes) axes.push_back(intervals_of(runs, end));
  append(products(axes), boxes);
}

}  // namespace

std::vector<TouchedCells> touched_cells(const TransferPlan& plan) {
  struct Lists {
    Boxes read, written, combined, copied_after;
  };
  std::vector<Lists> lists(plan.slots.size());
  const auto at = [&](int slot) -> Lists& { return lists[std::size_t(slot)]; };
  const auto overwrites = [](ElementMap map) { return map == ElementMap::copy || map == ElementMap::negate; };
  const auto extents_of = [&](int slot) -> const Indices& { return plan.slots[std::size_t(slot)].local_extents; };

  for (const TransferGroup& group : plan.sends) append_group(group, End::source, at(group.source_slot).read);
  for (const TransferGroup& group : plan.receives) {
    Lists& target = at(group.target_slot);
    append_group(group, End::target, overwrites(group.map) ? target.written : target.combined);
  }
  for (const IndexedTransfer& list : plan.indexed_sends)
    append_list(list.source_cells, extents_of(list.source_slot), at(list.source_slot).read);
  for (const IndexedTransfer& list : plan.indexed_receives) {
    Lists& target = at(list.target_slot);
    append_list(list.target_cells, extents_of(list.target_slot),
                overwrites(list.map) ? target.written : target.combined);
  }
  const auto append_fills = [&](const std::vector<LocalFill>& fills, bool after) {
    for (const LocalFill& fill : fills) {
      Lists& slot = at(fill.slot);
      const bool is_combined = fill.kind == LocalFillKind::accumulate;
      append_fill(fill, End::target, is_combined ? slot.combined : slot.written);
      if (fill.kind != LocalFillKind::zero) append_fill(fill, End::source, after ? slot.copied_after : slot.read);
    }
  };
  append_fills(plan.fills_before, false);
  append_fills(plan.fills_after, true);

  std::vector<TouchedCells> out;
  for (const Lists& list : lists) {
    const Region read = Region::boxes(list.read), written = Region::boxes(list.written);
    const Region combined = Region::boxes(list.combined) | (read & written);
    // What is copied when all has arrived may have arrived itself.
    const Region all_read = read | (Region::boxes(list.copied_after) - written);
    out.push_back({all_read - combined, written - combined, combined});
  }
  return out;
}

}  // namespace tranship
