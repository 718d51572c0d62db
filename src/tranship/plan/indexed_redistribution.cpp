#include "tranship/plan/indexed_redistribution.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include <tranship/base/fail.hpp>
#include <tranship/plan/fills.hpp>

namespace tranship {
namespace {

/// Finds where each cell of one dimension is stored: all (part, local index) pairs, in a table by cell.
class StoredCells {
 public:
  struct Copy {
    Index part;
    Index local;
  };

  explicit StoredCells(const AxisParts& axis) : by_cell_(axis.extent()) {
    for (Index part = 0; part < axis.parts(); ++part) {
      extents_.push_back(axis.local_extent(part));
      for (const AxisPiece& piece : stored_pieces(axis, part)) {
        if (piece.kind != AxisPieceKind::given) continue;
        const AxisWant& want = piece.want;
        const SliceFamily& f = want.family;
        for (Index n = 0; n < f.count; ++n)
          for (Index i = want.lower; i < want.upper; ++i)
            by_cell_[f.start + n * f.period + i + want.offset].push_back({part, f.local + n * f.pitch + f.left + i});
      }
    }
  }

  const std::vector<Copy>& of(Index cell) const { return by_cell_[cell]; }
  Index local_extent(Index part) const { return extents_[part]; }

 private:
  std::vector<std::vector<Copy>> by_cell_;
  std::vector<Index> extents_;
};

class IndexedPlanner {
 public:
  IndexedPlanner(const Distribution& source, const Distribution& target, const RedistributionOptions& options)
      : source_(source), target_(target), options_(options), counted_(dims_counted(source, target)) {
    for (int d = counted_; d < source.dims(); ++d) inner_ *= source.extents()[d];
  }

  Index inner() const { return inner_; }

  /// Calls `f(owner, cell on the owner, cell here)` for what `rank` wants, in the order of its local array.
  void for_each_wanted(Rank rank, FunctionRef<void(Rank, Index, Index)> f) const {
    for_each_stored(rank, [&](Index local, const Indices& cell) {
      const Rank owner = owner_for(cell, rank);
      if (owner < 0)
        throw_error(ErrorCode::mismatch, "rank {} wants cell [{}], which no rank owns in the source", rank,
                    to_string(cell));
      f(owner, local_of(owner, cell), local);
    });
  }

  /// Calls `f(reader, cell here, cell on the reader)` for what others want from `rank`, in no particular order.
  void for_each_given(Rank rank, FunctionRef<void(Rank, Index, Index)> f) const {
    if (!source_.grid().ordinal_of(rank)) return;
    std::vector<StoredCells> axes;
    if (!target_.is_indexed())
      for (int d = 0; d < counted_; ++d) axes.emplace_back(target_.axis(d));
    for_each_owned(rank, [&](Index local, const Indices& cell) {
      for_each_reader(axes, cell, [&](Rank reader, Index there) {
        if (owner_for(cell, reader) == rank) f(reader, local, there);
      });
    });
  }

 private:
  /// Calls `f` with the cells of an id of an indexed side: one for each position in the counted whole dimensions, in
  /// order.
  void for_each_cell_of(const Distribution& indexed, Index id, FunctionRef<void(const Indices& cell)> f) const {
    Indices cell = Indices::filled(source_.dims(), 0), whole;
    for (int d = indexed.indexed_dims() - 1; d >= 0; --d) {
      cell[d] = id % source_.extents()[d];
      id /= source_.extents()[d];
    }
    for (int d = indexed.indexed_dims(); d < counted_; ++d) whole.push_back(source_.extents()[d]);
    for_each_coordinate(whole, [&](const Indices& at) {
      std::copy(at.begin(), at.end(), cell.begin() + indexed.indexed_dims());
      f(cell);
    });
  }

  static Index id_of(const Distribution& indexed, const Indices& cell) {
    Index id = 0;
    for (int d = 0; d < indexed.indexed_dims(); ++d) id = id * indexed.extents()[d] + cell[d];
    return id;
  }

  Rank owner_for(const Indices& cell, Rank reader) const {
    if (source_.is_indexed() || !source_.replicated()) return source_.owner(cell);
    return nearest_owner(source_.owners(cell), reader, options_.distance);
  }

  /// Returns the local index, over the counted dimensions, of a cell that a source rank owns.
  Index local_of(Rank owner, const Indices& cell) const {
    const Indices local = *source_.local_of(owner, cell);
    if (source_.is_indexed()) return counted_local(source_, local[0], cell);
    const Indices extents = source_.local_extents(owner);
    Index out = 0;
    for (int k = 0; k < counted_; ++k) out = out * extents[k] + local[k];
    return out;
  }

  /// Returns the same index on an indexed side, where `local_id` is the local index of the cell's id.
  Index counted_local(const Distribution& indexed, Index local_id, const Indices& cell) const {
    Index out = local_id;
    for (int d = indexed.indexed_dims(); d < counted_; ++d) out = out * indexed.extents()[d] + cell[d];
    return out;
  }

  /// Calls `f` for all cells within the array that a target rank stores, ghosts and overlap included, in local order.
  void for_each_stored(Rank rank, FunctionRef<void(Index local, const Indices& cell)> f) const {
    if (target_.is_indexed()) {
      const std::optional<Index> ordinal = target_.grid().ordinal_of(rank);
      if (!ordinal) return;
      const IndexedPart& part = target_.indexed_part(*ordinal);
      Index local = 0;
      for (const auto* ids : {&part.owned, &part.ghosts})
        for (const Index id : *ids) for_each_cell_of(target_, id, [&](const Indices& cell) { f(local++, cell); });
      return;
    }
    const std::optional<Place> place = target_.grid().place_of(rank);
    if (!place) return;
    // Per dimension, the cell of every local index, or -1 where the edge policies give none.
    std::vector<std::vector<Index>> cells(static_cast<std::size_t>(counted_));
    Indices counts;
    for (int k = 0; k < counted_; ++k) {
      const AxisParts& axis = target_.axis(k);
      cells[k].assign(axis.local_extent(place->coordinates[k]), -1);
      for (const AxisPiece& piece : stored_pieces(axis, place->coordinates[k])) {
        if (piece.kind != AxisPieceKind::given) continue;
        const SliceFamily& slice = piece.want.family;
        for (Index n = 0; n < slice.count; ++n)
          for (Index i = piece.want.lower; i < piece.want.upper; ++i)
            cells[k][slice.local + n * slice.pitch + slice.left + i] =
                slice.start + n * slice.period + i + piece.want.offset;
      }
      counts.push_back(Index(cells[k].size()));
    }
    Index local = 0;
    Indices cell = Indices::filled(source_.dims(), 0);
    for_each_coordinate(counts, [&](const Indices& at) {
      bool inside = true;
      for (int k = 0; k < counted_; ++k) {
        cell[k] = cells[k][at[k]];
        inside &= cell[k] >= 0;
      }
      if (inside) f(local, cell);
      ++local;
    });
  }

  /// Calls `f` for all cells that a source rank owns.
  void for_each_owned(Rank rank, FunctionRef<void(Index local, const Indices& cell)> f) const {
    if (source_.is_indexed()) {
      const std::optional<Index> ordinal = source_.grid().ordinal_of(rank);
      if (!ordinal) return;
      Index local = 0;
      for (const Index id : source_.indexed_part(*ordinal).owned)
        for_each_cell_of(source_, id, [&](const Indices& cell) { f(local++, cell); });
      return;
    }
    const std::optional<Place> place = source_.grid().place_of(rank);
    if (!place) return;
    struct Owned {
      Index cell;
      Index local;
    };
    std::vector<std::vector<Owned>> cells(static_cast<std::size_t>(counted_));
    Indices counts, extents;
    for (int k = 0; k < counted_; ++k) {
      const AxisParts& axis = source_.axis(k);
      for (const SliceFamily& slice : axis.slices(place->coordinates[k]))
        for (Index n = 0; n < slice.count; ++n)
          for (Index i = 0; i < slice.length; ++i)
            cells[k].push_back({slice.start + n * slice.period + i, slice.local + n * slice.pitch + slice.left + i});
      counts.push_back(Index(cells[k].size()));
      extents.push_back(axis.local_extent(place->coordinates[k]));
    }
    Indices cell = Indices::filled(source_.dims(), 0);
    for_each_coordinate(counts, [&](const Indices& at) {
      Index local = 0;
      for (int k = 0; k < counted_; ++k) {
        cell[k] = cells[k][at[k]].cell;
        local = local * extents[k] + cells[k][at[k]].local;
      }
      f(local, cell);
    });
  }

  /// Calls `f` for all places of the target that store a cell.
  void for_each_reader(const std::vector<StoredCells>& axes, const Indices& cell,
                       FunctionRef<void(Rank, Index)> f) const {
    if (target_.is_indexed()) {
      const Index id = id_of(target_, cell);
      const auto tell = [&](const Distribution::IdPlace& place) {
        f(target_.grid().rank_at(place.ordinal), counted_local(target_, place.local, cell));
      };
      if (const Distribution::IdPlace owner = target_.place_of_id(id); owner.ordinal >= 0) tell(owner);
      for (const Distribution::IdPlace& ghost : target_.ghosts_of_id(id)) tell(ghost);
      return;
    }
    // The dimensions that are not counted are whole: every coordinate of their grid axes stores them.
    Indices counts;
    for (int d = 0; d < target_.dims(); ++d)
      counts.push_back(d < counted_ ? Index(axes[d].of(cell[d]).size()) : target_.axis(d).parts());
    for (Index replica = 0; replica < target_.grid().replicas(); ++replica)
      for_each_coordinate(counts, [&](const Indices& at) {
        Place place{.coordinates = at, .replica = replica};
        Index local = 0;
        for (int d = 0; d < counted_; ++d) {
          const StoredCells::Copy& copy = axes[d].of(cell[d])[at[d]];
          place.coordinates[d] = copy.part;
          local = local * axes[d].local_extent(copy.part) + copy.local;
        }
        f(target_.grid().rank_of(place), local);
      });
  }

  const Distribution& source_;
  const Distribution& target_;
  const RedistributionOptions& options_;
  int counted_;
  Index inner_ = 1;
};

}  // namespace

int dims_counted(const Distribution& source, const Distribution& target) {
  int out = 0;
  for (const Distribution* side : {&source, &target}) {
    if (side->is_indexed()) out = std::max(out, side->indexed_dims());
    for (int d = 0; d < side->dims() && !side->is_indexed(); ++d)
      if (!side->axis(d).is_whole()) out = std::max(out, d + 1);
  }
  return out;
}

Rank nearest_owner(const std::vector<Rank>& owners, Rank reader, const std::optional<Distance>& distance) {
  double nearest = 0;
  std::vector<Rank> ties;
  for (const Rank owner : owners) {
    const double d = distance ? (*distance)(reader, owner) : owner != reader;
    if (ties.empty() || d < nearest) {
      nearest = d;
      ties.clear();
    }
    if (d == nearest) ties.push_back(owner);
  }
  return ties[reader % ties.size()];
}

void plan_indexed_redistribution(const Distribution& source, const Distribution& target,
                                 const RedistributionOptions& options, TransferPlan& plan) {
  const IndexedPlanner planner(source, target, options);
  if (planner.inner() == 0) return;
  const IndexedTransfer empty{.source_slot = 0, .target_slot = 1, .inner = planner.inner()};
  std::map<Rank, IndexedTransfer> receives, sends;
  auto append = [&](std::map<Rank, IndexedTransfer>& lists, Rank peer, Index from, Index to) {
    IndexedTransfer& list = lists.try_emplace(peer, empty).first->second;
    list.peer = peer;
    list.source_cells.push_back(from);
    list.target_cells.push_back(to);
  };
  planner.for_each_wanted(plan.rank, [&](Rank owner, Index from, Index to) { append(receives, owner, from, to); });
  planner.for_each_given(plan.rank, [&](Rank reader, Index from, Index to) { append(sends, reader, from, to); });
  for (auto& [peer, list] : receives) plan.indexed_receives.push_back(std::move(list));
  for (auto& [peer, list] : sends) {
    sort_by_target(list);
    plan.indexed_sends.push_back(std::move(list));
  }
  if (!target.is_indexed())
    if (const std::optional<Place> place = target.grid().place_of(plan.rank)) {
      std::vector<std::vector<AxisPiece>> pieces;
      for (int d = 0; d < target.dims(); ++d) pieces.push_back(stored_pieces(target.axis(d), place->coordinates[d]));
      append_fills(1, pieces, plan.fills_after);
    }
}

}  // namespace tranship
