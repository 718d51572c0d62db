#include "tranship/file/engine/part_plan.hpp"

#include <algorithm>
#include <numeric>
#include <span>

#include <tranship/base/fail.hpp>
#include <tranship/plan/clip.hpp>
#include <tranship/plan/indexed_redistribution.hpp>
#include <tranship/plan/plan_size.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {
namespace {

std::vector<Rank> consecutive(Rank first, Index count) {
  std::vector<Rank> out(static_cast<std::size_t>(count));
  std::iota(out.begin(), out.end(), first);
  return out;
}

/// Returns the first replica, with each of its parts on the rank that is the part's ordinal in `d`.
Distribution first_copy(const Distribution& d) {
  if (!d.replicated()) return d.on_ranks(consecutive(0, d.grid().size()));
  Indices parts = d.grid().extents();
  std::vector<Partition> partitions;
  for (int axis = 0; axis < d.dims(); ++axis) {
    if (d.axis(axis).replicated()) parts[axis] = 1;
    partitions.push_back(d.axis(axis).partition());
  }
  GridOptions options;
  const Grid grid(parts);
  for (Index i = 0; i < grid.size(); ++i)
    options.ranks.push_back(static_cast<Rank>(d.grid().ordinal_of(Place{grid.place_at(i).coordinates, 0})));
  return Distribution(d.extents(), Grid(parts, options), std::move(partitions), d.memory());
}

/// Adds copies of a cell of the same local array as a run that reads from that cell's origin. Returns false if no entry
/// gives that cell.
bool append_copies(Run copies, std::vector<AxisEntry>& entries) {
  std::vector<Run> cell;
  const Interval wanted{copies.source, copies.source + 1};
  for (AxisEntry& entry : entries) {
    for (const Run& run : entry.runs) clip(run, wanted, cell);
    for (const RunLattice& lattice : entry.lattices) clip(lattice, wanted, cell);
    if (cell.empty()) continue;
    copies.source = cell[0].source;
    entry.runs.push_back(copies);
    return true;
  }
  return false;
}

/// Appends the copies of the cell at a replicating edge of a structured part, along each dimension.
void receive_copies(const Distribution& to, const Place& place, TransferGroup& group) {
  for (int d = 0; d < to.dims(); ++d)
    for (const AxisPiece& piece : stored_pieces(to.axis(d), place.coordinates[d]))
      if (piece.kind == AxisPieceKind::replicated) append_copies(piece.local_run(), group.axes[d]);
}

/// Does this if cells are received by lists: the cells that the fills copy are added to the lists.
void receive_listed_copies(const Indices& extents, int leading_dims, TransferPlan& plan) {
  Indices leading;
  for (int d = 0; d < leading_dims; ++d) leading.push_back(extents[d]);
  struct Origin {
    std::size_t list = 0;
    Index cell = -1;
  };
  std::vector<Origin> origins(static_cast<std::size_t>(checked_product(leading)));
  for (std::size_t n = 0; n < plan.indexed_receives.size(); ++n) {
    const IndexedTransfer& list = plan.indexed_receives[n];
    for (std::size_t i = 0; i < list.target_cells.size(); ++i)
      origins[list.target_cells[i]] = {n, list.source_cells[i]};
  }
  const auto cell_of = [&](const Indices& at) {
    Index out = 0;
    for (int d = 0; d < leading_dims; ++d) out = out * leading[d] + at[d];
    return out;
  };
  for (const LocalFill& fill : plan.fills_after) {
    if (fill.kind != LocalFillKind::replicate) continue;
    std::vector<std::vector<std::pair<Index, Index>>> copies(leading_dims);  // from, to
    Indices counts;
    for (int d = 0; d < leading_dims; ++d) {
      for (const Run& run : fill.axes[d])
        for (Index k = 0; k < run.count; ++k)
          for (Index i = 0; i < run.length; ++i)
            copies[d].emplace_back(run.source + k * run.source_pitch + i * run.source_step,
                                   run.target + k * run.target_pitch + i * run.target_step);
      counts.push_back(static_cast<Index>(copies[d].size()));
    }
    Indices from = leading, to = leading;
    for_each_coordinate(counts, [&](const Indices& at) {
      for (int d = 0; d < leading_dims; ++d) std::tie(from[d], to[d]) = copies[d][at[d]];
      const Origin& origin = origins[cell_of(from)];
      if (origin.cell < 0) return;
      IndexedTransfer& list = plan.indexed_receives[origin.list];
      list.source_cells.push_back(origin.cell);
      list.target_cells.push_back(cell_of(to));
    });
  }
  for (IndexedTransfer& list : plan.indexed_receives) sort_by_target(list);
}

/// Returns the runs that may write to an interval.
std::span<const Run> touching(const std::vector<Run>& runs, const EntryReach& reach, const Interval& within) {
  if (!reach.ascending) return runs;
  const auto first = std::partition_point(runs.begin(), runs.end(),
                                          [&](const Run& r) { return target_hull(r).upper <= within.lower; });
  const auto end =
      std::partition_point(first, runs.end(), [&](const Run& r) { return target_hull(r).lower < within.upper; });
  return {first, end};
}

EntryReach reach_of(const AxisEntry& entry) {
  EntryReach out;
  for (const Run& run : entry.runs) {
    const Interval hull = target_hull(run);
    out.ascending = out.ascending && (out.hull.empty() || hull.lower >= out.hull.upper);
    out.hull = joined(out.hull, hull);
  }
  for (const RunLattice& lattice : entry.lattices) out.hull = joined(out.hull, target_hull(lattice));
  return out;
}

}  // namespace

void clip(const AxisEntry& entry, const EntryReach& reach, const Interval& within, std::vector<Run>& out) {
  if (intersect(reach.hull, within).empty()) return;
  for (const Run& run : touching(entry.runs, reach, within)) clip(run, within, out);
  for (const RunLattice& lattice : entry.lattices) clip(lattice, within, out);
}

PartPlanner::PartPlanner(const ArraySpec& source, const ArraySpec& wanted)
    : from_{source.type, first_copy(source.distribution)},
      to_(wanted),
      // Ranks beyond those of the source, so that a plan sends nothing.
      first_rank_(static_cast<Rank>(source.distribution.grid().size())) {
  check_fits(source, wanted);
  to_.distribution = to_.distribution.on_ranks(consecutive(first_rank_, to_.distribution.grid().size()));
  if (!source.distribution.is_indexed() && !wanted.distribution.is_indexed())
    check_plan_size(from_, to_, {source, wanted});
}

PartPlan PartPlanner::plan(Index ordinal) const {
  PartPlan out{.moves = plan_redistribution(from_, to_, static_cast<Rank>(first_rank_ + ordinal))};
  TransferPlan& moves = out.moves;
  const Distribution& to = to_.distribution;
  if (!to.is_indexed() && !moves.receives.empty())
    receive_copies(to, to.grid().place_at(ordinal), moves.receives.front());
  if (!to.is_indexed() && !moves.indexed_receives.empty())
    receive_listed_copies(to.local_extents(moves.rank), dims_counted(from_.distribution, to), moves);
  if (!moves.receives.empty())
    for (const auto& entries : moves.receives.front().axes) {
      auto& reaches = out.reaches.emplace_back();
      for (const AxisEntry& entry : entries) reaches.push_back(reach_of(entry));
    }
  if (from_.distribution.is_indexed() || to.is_indexed())
    out.trailing_dims = to.dims() - dims_counted(from_.distribution, to);
  return out;
}

}  // namespace tranship
