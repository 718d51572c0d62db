#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include <tranship/lower/move_list.hpp>

namespace tranship {
namespace {

/// Rows that one piece walks before the next has its turn: few enough that the lines they share with it are still in
/// the nearest cache, or the one behind it when all is in the caches anyway and turns are what costs.
long long rows_in_turn(CopyMethod way) {
  return way.stores == Stores::plain ? 256 : 16;
}
constexpr std::size_t pieces_together_max = 16;

/// A part takes tens of microseconds or more: long enough for the claim to cost nothing. Few parts are enough to share.
constexpr Index part_bytes_min = Index(256) << 10;
constexpr int parts_max = 16;
/// Transposes and stretches are cut where neither their squares nor their lines suffer.
constexpr long long cut_unit = 64;

/// The strides on the side that has the move's place.
const long long* ordering_strides(const LoweredMove& move) {
  return move.place_is_source ? move.block.source_strides : move.block.target_strides;
}

/// The loops around the rows of a move.
int row_loops(const LoweredMove& move) {
  return move.block.dims - (has_contiguous_rows(move.block, move.width) ? 1 : 0);
}

/// Whether a move is rows inside at least one loop, and goes upward through its array: only then can others walk along.
bool is_walked_in_rows(const LoweredMove& move) {
  if (move.is_indexed || move.move != Move::copy || row_loops(move) == 0) return false;
  if (shape_of(move.block, move.width) != BlockShape::rows) return false;
  for (int d = 0; d < move.block.dims; ++d)
    if (move.block.target_strides[d] < 0 || move.block.source_strides[d] < 0) return false;
  return true;
}

/// Where a move begins in the array that orders it.
MovePlace first_place(const LoweredMove& move) {
  MovePlace first = move.place;
  if (!move.is_indexed)
    for (int d = 0; d < move.block.dims; ++d)
      if (const long long stride = ordering_strides(move)[d]; stride < 0)
        first.offset_bytes += (move.block.extents[d] - 1) * stride;
  return first;
}

/// Whether two moves have the same loops around their rows, and their rows lie side by side.
bool walk_together(const LoweredMove& first, const LoweredMove& other) {
  const int loops = row_loops(first);
  if (row_loops(other) != loops || first.place.slot != other.place.slot ||
      first.place_is_source != other.place_is_source)
    return false;
  for (int d = 0; d < loops; ++d)
    if (first.block.extents[d] != other.block.extents[d] || ordering_strides(first)[d] != ordering_strides(other)[d])
      return false;
  return other.place.offset_bytes - first.place.offset_bytes < ordering_strides(first)[loops - 1];
}

/// Bytes that lie together on both sides; of a transpose, along the shorter of the dimensions that are contiguous on
/// either side.
Index run_bytes(const LoweredMove& move) {
  if (move.is_indexed) return move.indexed.row_length * move.width;
  const CopyBlock& block = move.block;
  const int last = block.dims - 1;
  long long run = 1;
  switch (shape_of(block, move.width)) {
    case BlockShape::rows:
      return row_bytes_of(block, move.width);
    case BlockShape::tiles:
      for (int d = 0; d < last; ++d)
        if (detail::magnitude(block.source_strides[d]) == move.width)
          run = std::min(block.extents[d], block.extents[last]);
      break;
    case BlockShape::empty:
    case BlockShape::elements:
      break;
  }
  return run * move.width;
}

}  // namespace

MoveList::Piece MoveList::piece_of(const LoweredMove& move, CopyMethod way) {
  CopyBlock around = move.block;
  Piece piece{.source = move.source,
              .target = move.target,
              .rows = take_rows(around, move.width),
              .source_stride = move.block.source_strides[0],
              .target_stride = move.block.target_strides[0]};
  piece.copy = row_copy(piece.rows.row_bytes, way);
  long long source_back = 0, target_back = 0;  // from the last turn of the loops within to their first
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
  // Moves are large, so their numbers are sorted; those that begin at one place stay in the order in which they came.
  std::vector<std::pair<MovePlace, std::size_t>> places;
  for (const LoweredMove& move : moves) places.emplace_back(first_place(move), places.size());
  if (order == MoveOrder::any) std::sort(places.begin(), places.end());

  std::vector<Index> entries;
  std::vector<bool> taken(moves.size(), false);
  for (std::size_t p = 0; p < places.size(); ++p) {
    const std::size_t i = places[p].second;
    if (taken[i]) continue;
    if (!is_walked_in_rows(moves[i])) {
      entries.push_back(Index(moves_.size()));
      moves_.push_back(moves[i]);
      continue;
    }
    std::vector<std::size_t> together = {i};
    if (order == MoveOrder::any) {
      MovePlace end = moves[i].place;
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
      walk.pieces.push_back(piece_of(moves[k], way));
    }
    walks_.push_back(std::move(walk));
    entries.push_back(-Index(walks_.size()));
  }
  cut_into_parts(entries, order == MoveOrder::any ? parts_of(bytes_) : 1);
}

long long MoveList::outermost(Index entry) const {
  if (entry < 0) return walks_[-1 - entry].outermost;
  return moves_[entry].outermost();
}

Index MoveList::bytes_of(Index entry) const {
  if (entry >= 0) return moves_[entry].bytes();
  const Walk& walk = walks_[-1 - entry];
  Index bytes = 0;
  for (const Piece& piece : walk.pieces) bytes += piece.rows.row_bytes;
  return bytes * walk.row_count;
}

bool MoveList::is_cut_anywhere(Index entry) const {
  if (entry < 0 || moves_[entry].is_indexed) return true;
  const LoweredMove& move = moves_[entry];
  return move.block.dims > 1 && shape_of(move.block, move.width) != BlockShape::tiles;
}

int MoveList::parts_of(Index bytes) noexcept {
  return int(std::clamp<Index>(bytes / part_bytes_min, 1, parts_max));
}

void MoveList::cut_into_parts(const std::vector<Index>& entries, Index parts) {
  const Index each = ceil_divide(bytes_, parts);
  Index filled = 0;  // bytes of the part that is being made
  for (const Index entry : entries) {
    const long long extent = outermost(entry);
    const Index step_bytes = bytes_of(entry) / extent;
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

void MoveList::run(MoveShift shift) const {
  for (std::size_t i = 0; i < stretches_.size();) {
    Stretch whole = stretches_[i];
    while (++i < stretches_.size() && stretches_[i].entry == whole.entry) whole.upper = stretches_[i].upper;
    run_stretch(whole, shift);
  }
  order_stores(way_);
}

void MoveList::run_part(int part, MoveShift shift) const {
  for (std::size_t i = first_stretches_[part]; i < first_stretches_[part + 1]; ++i) run_stretch(stretches_[i], shift);
  order_stores(way_);
}

void MoveList::run_stretch(const Stretch& stretch, MoveShift shift) const {
  const auto& [entry, lower, upper] = stretch;
  if (entry < 0) return run_walk(walks_[-1 - entry], lower, upper, shift);
  moves_[entry].run(lower, upper, way_, shift);
}

void MoveList::run_walk(const Walk& walk, long long lower, long long upper, MoveShift shift) const {
  struct Cursor {
    const std::byte* source;
    std::byte* target;
    Rows rows;
  };
  Cursor cursors[pieces_together_max];
  const std::size_t count = walk.pieces.size();
  for (std::size_t p = 0; p < count; ++p) {
    const Piece& piece = walk.pieces[p];
    cursors[p] = {piece.source + shift.source_bytes + lower * piece.source_stride,
                  piece.target + shift.target_bytes + lower * piece.target_stride, piece.rows};
  }
  const Rows& shape = walk.pieces[0].rows;
  long long rows = shape.count, planes = shape.planes;
  // The outermost loop is cut, which may be one of the last two.
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
  Summary out{.walks = Index(moves_.size() + walks_.size())};
  const auto add = [&](Index bytes, Index run_bytes, BlockShape shape) {
    ++out.moves;
    out.runs += bytes / run_bytes;
    out.run_bytes_min = out.moves == 1 ? run_bytes : std::min(out.run_bytes_min, run_bytes);
    out.shapes[int(shape)] += bytes;
  };
  for (const LoweredMove& move : moves_)
    add(move.bytes(), run_bytes(move), move.is_indexed ? BlockShape::elements : shape_of(move.block, move.width));
  for (const Walk& walk : walks_) {
    for (const Piece& piece : walk.pieces)
      add(walk.row_count * piece.rows.row_bytes, piece.rows.row_bytes, BlockShape::rows);
  }
  out.run_bytes_mean = out.runs > 0 ? bytes_ / out.runs : 0;
  return out;
}

}  // namespace tranship
