#include "tranship/array/ghosts/touched_cells.hpp"

#include <algorithm>

#include <tranship/plan/run_intervals.hpp>

namespace tranship {
namespace {

using Boxes = std::vector<Box>;

void append(const std::vector<Box>& more, Boxes& boxes) {
  boxes.insert(boxes.end(), more.begin(), more.end());
}

void append_group(const TransferGroup& group, RunEnd end, Boxes& boxes) {
  const std::vector<int>& dims = end == RunEnd::source ? group.source_dims : group.target_dims;
  std::vector<std::vector<Interval>> axes(dims.size());
  for (std::size_t k = 0; k < dims.size(); ++k) {
    std::vector<Run> runs;
    for (const AxisEntry& entry : group.axes[k]) entry.for_each_run([&](const Run& run) { runs.push_back(run); });
    axes[std::size_t(dims[k])] = intervals_of(runs, end);
  }
  append(products(axes), boxes);
}

/// Appends the cells of an interval that counts the dimensions `first` to `end` row-major, within `around`.
void append_counted(Interval cells, int first, int end, const Box& around, Boxes& boxes) {
  Index row = 1;
  for (int d = first + 1; d < end; ++d) row *= around[d].length();
  while (!cells.empty()) {
    Box box = around;
    const Index line = cells.lower / row, lines = cells.lower % row == 0 ? cells.length() / row : 0;
    box.lower[first] = line;
    box.upper[first] = line + std::max<Index>(lines, 1);
    const Index next = std::min(cells.upper, box.upper[first] * row);
    if (lines > 0)
      boxes.push_back(box);
    else
      append_counted({cells.lower - line * row, next - line * row}, first + 1, end, box, boxes);
    cells.lower = next;
  }
}

/// Appends cells that are counted through the leading dimensions, each with the `inner` elements of the others.
void append_list(const std::vector<Index>& cells, Index inner, const Indices& extents, Boxes& boxes) {
  if (cells.empty() || inner == 0) return;
  int leading = extents.size();
  for (Index behind = 1; behind < inner; behind *= extents[leading]) --leading;
  std::vector<Interval> counted;
  for (const Index cell : cells) counted.push_back({cell, cell + 1});
  for (const Interval& one : merged(std::move(counted)))
    append_counted(one, 0, leading, Box::of_extents(extents), boxes);
}

void append_fill(const LocalFill& fill, RunEnd end, Boxes& boxes) {
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

  for (const TransferGroup& group : plan.sends) append_group(group, RunEnd::source, at(group.source_slot).read);
  for (const TransferGroup& group : plan.receives) {
    Lists& target = at(group.target_slot);
    append_group(group, RunEnd::target, overwrites(group.map) ? target.written : target.combined);
  }
  for (const IndexedTransfer& list : plan.indexed_sends)
    append_list(list.source_cells, list.inner, extents_of(list.source_slot), at(list.source_slot).read);
  for (const IndexedTransfer& list : plan.indexed_receives) {
    Lists& target = at(list.target_slot);
    append_list(list.target_cells, list.inner, extents_of(list.target_slot),
                overwrites(list.map) ? target.written : target.combined);
  }
  const auto append_fills = [&](const std::vector<LocalFill>& fills, bool after) {
    for (const LocalFill& fill : fills) {
      Lists& slot = at(fill.slot);
      const bool is_combined = fill.kind == LocalFillKind::accumulate;
      append_fill(fill, RunEnd::target, is_combined ? slot.combined : slot.written);
      if (fill.kind != LocalFillKind::zero) append_fill(fill, RunEnd::source, after ? slot.copied_after : slot.read);
    }
  };
  append_fills(plan.fills_before, false);
  append_fills(plan.fills_after, true);

  std::vector<TouchedCells> out;
  for (const Lists& list : lists) {
    const Region read = Region::boxes(list.read), written = Region::boxes(list.written);
    const Region combined = Region::boxes(list.combined) | (read & written);
    // Cells that are copied after the arrivals may be among those that have arrived.
    const Region all_read = read | (Region::boxes(list.copied_after) - written);
    out.push_back({all_read - combined, written - combined, combined});
  }
  return out;
}

}  // namespace tranship
