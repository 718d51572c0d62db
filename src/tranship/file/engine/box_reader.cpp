#include "tranship/file/engine/box_reader.hpp"

#include <algorithm>
#include <cstring>

namespace tranship {

std::span<std::byte> BoxReader::block(Index size_bytes) {
  if (size_bytes > block_bytes_) {
    block_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(size_bytes));
    block_bytes_ = size_bytes;
  }
  return {block_.get(), static_cast<std::size_t>(size_bytes)};
}

Index BoxReader::read(const PartSource& source, const PartPlan& plan, const Box& box, const StridedView& target,
                      std::span<std::byte> bytes) {
  scratch_.way = copy_method(static_cast<long long>(bytes.size()));
  // A part has one group, or lists. Cells that receive nothing become zero.
  if (plan.moves.receives.empty()) {
    std::memset(bytes.data(), 0, bytes.size());
    Index given_bytes = 0;
    for (const IndexedTransfer& list : plan.moves.indexed_receives)
      given_bytes += read_listed(source, plan, list, box, target);
    return given_bytes;
  }
  const TransferGroup& group = plan.moves.receives.front();
  const Index given_cells = clip_group(group, plan.reaches, box);
  if (given_cells < box.count()) std::memset(bytes.data(), 0, bytes.size());
  if (given_cells > 0) read_group(source, plan.moves, group, target);
  return given_cells * size_bytes(target.type);
}

/// Leaves the entries that touch the box in clipped_, counted from its corner. Returns the cells of all combinations.
Index BoxReader::clip_group(const TransferGroup& group, const std::vector<std::vector<EntryReach>>& reaches,
                            const Box& box) {
  Index cells = 1;
  clipped_.resize(group.axes.size());
  for (std::size_t k = 0; k < group.axes.size(); ++k) {
    const Interval within = box[group.target_dims[k]];
    std::vector<AxisEntry>& out = clipped_[k];
    out.clear();
    Index cells_along = 0;
    for (std::size_t e = 0; e < group.axes[k].size(); ++e) {
      AxisEntry entry{.peer = group.axes[k][e].peer};
      clip(group.axes[k][e], reaches[k][e], within, entry.runs);
      if (entry.runs.empty()) continue;
      for (Run& run : entry.runs) run.target -= within.lower;
      cells_along += entry.cells();
      out.push_back(std::move(entry));
    }
    cells *= cells_along;
  }
  return cells;
}

void BoxReader::read_group(const PartSource& source, const TransferPlan& plan, const TransferGroup& group,
                           const StridedView& target) {
  one_.source_dims = group.source_dims;
  one_.target_dims = group.target_dims;
  one_.axes.resize(clipped_.size());
  Indices counts;
  for (const auto& entries : clipped_) counts.push_back(static_cast<Index>(entries.size()));
  for_each_coordinate(counts, [&](const Indices& at) {
    Place place{.coordinates = {}, .replica = group.peer_replica};
    for (int k = 0; k < at.size(); ++k) {
      const AxisEntry& entry = clipped_[k][at[k]];
      place.coordinates.push_back(entry.peer);
      one_.axes[k].assign(1, entry);
    }
    source.read_runs(plan.peer_grids[group.peer_grid].rank_of(place), one_, target, scratch_);
  });
}

/// Moves the cells of a list that lie in a box. Returns their bytes.
Index BoxReader::read_listed(const PartSource& source, const PartPlan& plan, const IndexedTransfer& list,
                             const Box& box, const StridedView& target) {
  const Indices& extents = plan.moves.slots[list.target_slot].local_extents;
  const int leading = box.dims() - plan.trailing_dims;
  const auto flat = [&](const Indices& at) {
    Index out = 0;
    for (int d = 0; d < leading; ++d) out = out * extents[d] + at[d];
    return out;
  };
  Indices last = box.upper;
  for (Index& i : last) --i;
  const auto first_at = std::lower_bound(list.target_cells.begin(), list.target_cells.end(), flat(box.lower));
  const auto end_at = std::upper_bound(first_at, list.target_cells.end(), flat(last));

  IndexedTransfer here{.inner = 1};
  for (auto at = first_at; at != end_at; ++at) {
    Index rest = *at, cell = 0, size = 1;
    bool inside = true;
    for (int d = leading - 1; d >= 0; --d) {
      const Index i = rest % extents[d];
      rest /= extents[d];
      inside = inside && box[d].contains(i);
      cell += (i - box.lower[d]) * size;
      size *= box[d].length();
    }
    if (!inside) continue;
    here.source_cells.push_back(list.source_cells[at - list.target_cells.begin()]);
    here.target_cells.push_back(cell);
  }
  if (here.source_cells.empty()) return 0;

  Box trailing;
  for (int d = leading; d < box.dims(); ++d) {
    here.inner *= box[d].length();
    trailing.lower.push_back(box.lower[d]);
    trailing.upper.push_back(box.upper[d]);
  }
  source.read_listed(list.peer, here, trailing, target, scratch_);
  return static_cast<Index>(here.source_cells.size()) * here.inner * size_bytes(target.type);
}

}  // namespace tranship
