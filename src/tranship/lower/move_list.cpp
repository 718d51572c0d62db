#include "tranship/lower/move_list.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

/// Rows that one piece walks before the next gets its turn. Few enough that the lines they share stay in the nearest
/// cache; more if all data is in the caches anyway and the turns dominate the cost.
long long rows_in_turn(CopyMethod way) {
  return way.stores == Stores::plain ? 256 : 16;
}
constexpr std::size_t pieces_together_max = 16;
constexpr std::size_t ends_searched_max = 32;

/// A part takes at least tens of microseconds, so a claim costs little. A few parts are enough to share.
constexpr Index part_bytes_min = Index(256) << 10;
constexpr int parts_max = 16;
/// Transposes and stretches are cut at multiples of this, which keeps their squares and lines whole.
constexpr long long cut_unit = 64;

/// Returns the side of a move that orders it: its array side, which is the target, or the source if the target is a
/// staging buffer.
const MovePlace& ordering_place(const LoweredMove& move) {
  return move.packs() ? move.source : move.target;
}
const long long* ordering_strides(const LoweredMove& move) {
  return move.packs() ? move.block.source_strides : move.block.target_strides;
}

/// Returns the number of loops around the rows of a move.
int row_loops(const LoweredMove& move) {
  return move.block.dims - (has_contiguous_rows(move.block, move.width) ? 1 : 0);
}

/// Returns true if a move has rows inside at least one loop and goes upward through its array. Only then can other
/// moves join its walk.
bool is_walked_in_rows(const LoweredMove& move) {
  if (move.is_indexed || move.lattice || move.move != ElementMap::copy || row_loops(move) == 0) return false;
  if (shape_of(move.block, move.width) != BlockShape::rows) return false;
  for (int d = 0; d < move.block.dims; ++d)
    if (move.block.target_strides[d] < 0 || move.block.source_strides[d] < 0) return false;
  return true;
}

/// Returns the place where a move begins in the array that orders it.
MovePlace first_place(const LoweredMove& move) {
  MovePlace first = ordering_place(move);
  if (move.is_indexed) {
    const auto& rows = move.packs() ? move.source_rows : move.target_rows;
    first.offset_bytes += rows->front();
    return first;
  }
  if (move.lattice)
    first.offset_bytes +=
        (move.packs() ? move.lattice->source : move.lattice->target).start * ordering_strides(move)[move.lattice_dim];
  for (int d = 0; d < move.block.dims; ++d)
    if (const long long stride = ordering_strides(move)[d]; stride < 0)
      first.offset_bytes += (move.block.extents[d] - 1) * stride;
  return first;
}

/// Returns true if two moves have the same loops around their rows, and their rows lie side by side.
bool walk_together(const LoweredMove& first, const LoweredMove& other) {
  const int loops = row_loops(first);
  if (row_loops(other) != loops || first.packs() != other.packs() ||
      ordering_place(first).slot != ordering_place(other).slot)
    return false;
  for (int d = 0; d < loops; ++d)
    if (first.block.extents[d] != other.block.extents[d] || ordering_strides(first)[d] != ordering_strides(other)[d])
      return false;
  return ordering_place(other).offset_bytes - ordering_place(first).offset_bytes < ordering_strides(first)[loops - 1];
}

}  // namespace

int MoveList::end_of(MoveSide side, int slot) {
  // Moves come in the order of the slots, so the end is usually among the last. A duplicate entry costs less than a
  // search through thousands.
  const End end{side, slot};
  for (std::size_t back = 1; back <= std::min(ends_.size(), ends_searched_max); ++back)
    if (ends_[ends_.size() - back] == end) return int(ends_.size() - back);
  ends_.push_back(end);
  return int(ends_.size() - 1);
}

MoveList::Ends MoveList::ends_of(const LoweredMove& move) {
  return {end_of(MoveSide::source, move.source.slot), end_of(MoveSide::target, move.target.slot)};
}

void MoveList::bind(HostBases bases, int array, std::vector<std::byte*>& out) const {
  for (const End& end : ends_)
    out.push_back(end.slot == constants_slot ? const_cast<std::byte*>(constants().data())
                                             : bases(end.side, end.slot, array));
}

MoveList::Piece MoveList::piece_of(const LoweredMove& move) {
  CopyBlock around = move.block;
  Piece piece{.ends = ends_of(move),
              .source_bytes = move.source.offset_bytes,
              .target_bytes = move.target.offset_bytes,
              .rows = take_rows(around, move.width),
              .source_stride = move.block.source_strides[0],
              .target_stride = move.block.target_strides[0]};
  piece.copy = row_copy(piece.rows.row_bytes, way_);
  long long source_back = 0, target_back = 0;  // from the last turn of the inner loops back to their first
  piece.steps.resize(std::size_t(around.dims));
  for (int d = around.dims - 1; d >= 0; --d) {
    piece.steps[d] = {around.source_strides[d] - source_back, around.target_strides[d] - target_back};
    source_back += (around.extents[d] - 1) * around.source_strides[d];
    target_back += (around.extents[d] - 1) * around.target_strides[d];
  }
  return piece;
}

MoveList::MoveList(std::vector<LoweredMove> moves, MoveOrder order, CopyMethod way) : way_(way) {
  std::erase_if(moves, [](const LoweredMove& move) { return move.bytes() == 0; });
  for (const LoweredMove& move : moves) bytes_ += move.bytes();
  // Moves are large, so their indices are sorted. Moves that begin at the same place keep their order.
  std::vector<std::pair<MovePlace, std::size_t>> places;
  for (const LoweredMove& move : moves) places.emplace_back(first_place(move), places.size());
  if (order == MoveOrder::any) std::sort(places.begin(), places.end());

  std::vector<Index> entries;
  std::vector<bool> taken(moves.size(), false);
  for (std::size_t p = 0; p < places.size(); ++p) {
    const std::size_t i = places[p].second;
    if (taken[i]) continue;
    if (!is_walked_in_rows(moves[i])) {
      entries.push_back(Index(singles_.size()));
      singles_.push_back({ends_of(moves[i]), moves[i]});
      continue;
    }
    std::vector<std::size_t> together = {i};
    if (order == MoveOrder::any) {
      MovePlace end = ordering_place(moves[i]);
      end.offset_bytes += ordering_strides(moves[i])[row_loops(moves[i]) - 1];
      for (std::size_t q = p + 1; q < places.size() && places[q].first < end && together.size() < pieces_together_max;
           ++q)
        if (const std::size_t k = places[q].second;
            !taken[k] && is_walked_in_rows(moves[k]) && walk_together(moves[i], moves[k]))
          together.push_back(k);
    }
    const auto* extents = moves[i].block.extents;
    const int loops = row_loops(moves[i]);
    Walk walk{.extents = {extents, extents + loops - std::min(loops, 2)},
              .outermost = extents[0],
              .row_count = std::accumulate(extents, extents + loops, 1LL, std::multiplies<>()),
              .pieces = {}};
    for (const std::size_t k : together) {
      taken[k] = true;
      walk.pieces.push_back(piece_of(moves[k]));
    }
    walks_.push_back(std::move(walk));
    entries.push_back(-Index(walks_.size()));
  }
  cut_into_parts(entries, order == MoveOrder::any ? parts_of(bytes_) : 1);
}

long long MoveList::outermost(Index entry) const {
  if (entry < 0) return walks_[-1 - entry].outermost;
  return singles_[entry].move.outermost();
}

Index MoveList::bytes_of(Index entry) const {
  if (entry >= 0) return singles_[entry].move.bytes();
  const Walk& walk = walks_[-1 - entry];
  Index bytes = 0;
  for (const Piece& piece : walk.pieces) bytes += piece.rows.row_bytes;
  return bytes * walk.row_count;
}

bool MoveList::is_cut_anywhere(Index entry) const {
  if (entry < 0 || singles_[entry].move.is_indexed || singles_[entry].move.lattice) return true;
  const LoweredMove& move = singles_[entry].move;
  return move.block.dims > 1 && shape_of(move.block, move.width) != BlockShape::tiles;
}

int MoveList::parts_of(Index bytes) noexcept {
  return int(std::clamp<Index>(bytes / part_bytes_min, 1, parts_max));
}

void MoveList::cut_into_parts(const std::vector<Index>& entries, Index parts) {
  const Index each = ceil_divide(bytes_, parts);
  Index filled = 0;  // bytes in the current part
  for (const Index entry : entries) {
    const long long extent = outermost(entry);
    const Index step_bytes = std::max<Index>(1, bytes_of(entry) / extent);
    const long long unit = is_cut_anywhere(entry) ? 1 : cut_unit;
    for (long long at = 0; at < extent;) {
      const bool last_part = Index(first_stretches_.size()) == parts;
      const long long fits =
          last_part ? extent : std::max<Index>(1, ceil_divide(ceil_divide(each - filled, step_bytes), unit)) * unit;
      const long long upper = std::min(extent, at + fits);
      stretches_.push_back({entry, at, upper});
      filled += (upper - at) * step_bytes;
      at = upper;
      if (filled >= each && !last_part) {
        first_stretches_.push_back(stretches_.size());
        filled = 0;
      }
    }
  }
  if (first_stretches_.size() == 1 || first_stretches_.back() != stretches_.size())
    first_stretches_.push_back(stretches_.size());
}

void MoveList::run(std::span<std::byte* const> bases) const {
  TRANSHIP_ASSERT(bases.size() == ends_.size());
  for (std::size_t i = 0; i < stretches_.size();) {
    Stretch whole = stretches_[i];
    while (++i < stretches_.size() && stretches_[i].entry == whole.entry) whole.upper = stretches_[i].upper;
    run_stretch(whole, bases);
  }
  order_stores(way_);
}

void MoveList::run_part(int part, std::span<std::byte* const> bases) const {
  TRANSHIP_ASSERT(bases.size() == ends_.size());
  for (std::size_t i = first_stretches_[part]; i < first_stretches_[part + 1]; ++i) run_stretch(stretches_[i], bases);
  order_stores(way_);
}

void MoveList::run_stretch(const Stretch& stretch, std::span<std::byte* const> bases) const {
  const auto& [entry, lower, upper] = stretch;
  if (entry < 0) return run_walk(walks_[-1 - entry], lower, upper, bases);
  const Single& single = singles_[entry];
  single.move.run(lower, upper, way_, bases[single.ends.source], bases[single.ends.target]);
}

void MoveList::run_walk(const Walk& walk, long long lower, long long upper, std::span<std::byte* const> bases) const {
  struct Cursor {
    const std::byte* source;
    std::byte* target;
    Rows rows;
  };
  Cursor cursors[pieces_together_max];
  const std::size_t count = walk.pieces.size();
  for (std::size_t p = 0; p < count; ++p) {
    const Piece& piece = walk.pieces[p];
    cursors[p] = {bases[piece.ends.source] + piece.source_bytes + lower * piece.source_stride,
                  bases[piece.ends.target] + piece.target_bytes + lower * piece.target_stride, piece.rows};
  }
  const Rows& shape = walk.pieces[0].rows;
  long long rows = shape.count, planes = shape.planes;
  // The outermost loop, which may be one of the last two, is cut.
  if (walk.extents.empty()) (planes > 1 ? planes : rows) = upper - lower;
  const long long turn = count > 1 ? rows_in_turn(way_) : rows * planes;
  const long long rows_each = std::min(rows, turn), planes_each = std::max(1LL, turn / rows);
  long long at[block_dims_max] = {lower};
  for (;;) {
    for (long long plane = 0; plane < planes; plane += planes_each)
      for (long long row = 0; row < rows; row += rows_each)
        for (std::size_t p = 0; p < count; ++p) {
          Cursor& c = cursors[p];
          c.rows.planes = std::min(planes_each, planes - plane);
          c.rows.count = std::min(rows_each, rows - row);
          walk.pieces[p].copy(c.rows, c.source + plane * c.rows.source_plane + row * c.rows.source_stride,
                              c.target + plane * c.rows.target_plane + row * c.rows.target_stride);
        }
    int d = int(walk.extents.size()) - 1;
    for (; d >= 0 && ++at[d] == (d == 0 ? upper : walk.extents[d]); --d) at[d] = 0;
    if (d < 0) return;
    for (std::size_t p = 0; p < count; ++p) {
      cursors[p].source += walk.pieces[p].steps[d].source;
      cursors[p].target += walk.pieces[p].steps[d].target;
    }
  }
}

MoveList::Summary MoveList::summary() const {
  Summary out{.walks = Index(singles_.size() + walks_.size())};
  const auto add = [&](Index bytes, Index run_bytes, BlockShape shape) {
    ++out.moves;
    out.runs += bytes / run_bytes;
    out.run_bytes_min = out.moves == 1 ? run_bytes : std::min(out.run_bytes_min, run_bytes);
    out.shapes[int(shape)] += bytes;
  };
  for (const auto& [ends, move] : singles_)
    add(move.bytes(), run_bytes(move),
        move.is_indexed ? BlockShape::elements : shape_of(move.routed_block(), move.width));
  for (const Walk& walk : walks_) {
    for (const Piece& piece : walk.pieces)
      add(walk.row_count * piece.rows.row_bytes, piece.rows.row_bytes, BlockShape::rows);
  }
  out.run_bytes_mean = out.runs > 0 ? bytes_ / out.runs : 0;
  return out;
}

}  // namespace tranship
