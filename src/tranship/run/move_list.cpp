#include <algorithm>
#include <utility>

#include <tranship/run/move_list.hpp>

namespace tranship {
namespace {

/// Rows that pieces walk in turn before the next piece has its turn: few enough that the lines they share with it are
/// still in the nearest cache.
constexpr long long rows_together = 16;

/// A part takes tens of microseconds or more: long enough for the claim to cost nothing. Few parts are enough to share.
constexpr Index part_bytes_min = Index(256) << 10;
constexpr int parts_max = 16;
/// Transposes and stretches are cut where neither their squares nor their lines suffer.
constexpr long long cut_unit = 64;

/// The strides on the side that has the move's place.
const long long* ordering_strides(const LoweredMove& move) {
  return move.place_is_source ? move.block.source_strides : move.block.target_strides;
}

/// Whether a move is rows inside at least one loop, and goes upward through its array: only then can others walk along.
bool is_walked_in_rows(const LoweredMove& move) {
  if (move.is_indexed || move.move != Move::copy || move.block.dims < 2) return false;
  if (shape_of(move.block, move.width) != BlockShape::rows) return false;
  for (int d = 0; d < move.block.dims; ++d)
    if (move.block.target_strides[d] < 0 || move.block.source_strides[d] < 0) return false;
  return true;
}

/// The dimension over which rows are counted.
int row_dim(const CopyBlock& block) {
  return block.dims - 2;
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
  const CopyBlock &a = first.block, &b = other.block;
  if (a.dims != b.dims || first.place.slot != other.place.slot || first.place_is_source != other.place_is_source)
    return false;
  for (int d = 0; d <= row_dim(a); ++d)
    if (a.extents[d] != b.extents[d] || ordering_strides(first)[d] != ordering_strides(other)[d]) return false;
  return other.place.offset_bytes - first.place.offset_bytes < ordering_strides(first)[row_dim(a)];
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
      run = block.dims > 0 ? block.extents[last] : 1;
      break;
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

MoveList::MoveList(std::vector<LoweredMove> moves, MoveOrder order) {
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
    std::vector<std::size_t> together = {i};
    if (order == MoveOrder::any && is_walked_in_rows(moves[i])) {
      MovePlace end = moves[i].place;
      end.offset_bytes += ordering_strides(moves[i])[row_dim(moves[i].block)];
      for (std::size_t q = p + 1; q < places.size() && places[q].first < end; ++q)
        if (const std::size_t k = places[q].second;
            !taken[k] && is_walked_in_rows(moves[k]) && walk_together(moves[i], moves[k]))
          together.push_back(k);
    }
    if (together.size() == 1) {
      entries.push_back(Index(moves_.size()));
      moves_.push_back(moves[i]);
      continue;
    }
    Walk walk{.loops = moves[i].block, .pieces = {}};
    --walk.loops.dims;
    for (const std::size_t k : together) {
      taken[k] = true;
      Piece piece{.source = moves[k].source, .target = moves[k].target, .row_bytes = run_bytes(moves[k])};
      std::copy_n(moves[k].block.source_strides, walk.loops.dims, piece.source_strides);
      std::copy_n(moves[k].block.target_strides, walk.loops.dims, piece.target_strides);
      walk.pieces.push_back(piece);
    }
    walks_.push_back(std::move(walk));
    entries.push_back(-Index(walks_.size()));
  }
  cut_into_parts(entries, order == MoveOrder::any ? parts_max : 1);
}

long long MoveList::outermost(Index entry) const {
  if (entry < 0) return walks_[-1 - entry].loops.extents[0];
  return moves_[entry].outermost();
}

Index MoveList::bytes_of(Index entry) const {
  if (entry >= 0) return moves_[entry].bytes();
  const Walk& walk = walks_[-1 - entry];
  Index bytes = 0;
  for (const Piece& piece : walk.pieces) bytes += piece.row_bytes;
  return bytes * element_count(walk.loops);
}

bool MoveList::is_cut_anywhere(Index entry) const {
  if (entry < 0 || moves_[entry].is_indexed) return true;
  const LoweredMove& move = moves_[entry];
  return move.block.dims > 1 && shape_of(move.block, move.width) != BlockShape::tiles;
}

void MoveList::cut_into_parts(const std::vector<Index>& entries, int parts_max) {
  const Index parts = std::clamp<Index>(bytes_ / part_bytes_min, 1, parts_max);
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

void MoveList::run(HostWay way) const {
  for (std::size_t i = 0; i < stretches_.size();) {
    Stretch whole = stretches_[i];
    while (++i < stretches_.size() && stretches_[i].entry == whole.entry) whole.upper = stretches_[i].upper;
    run_stretch(whole, way);
  }
  order_stores(way);
}

void MoveList::run_part(int part, HostWay way) const {
  for (std::size_t i = first_stretches_[part]; i < first_stretches_[part + 1]; ++i) run_stretch(stretches_[i], way);
  order_stores(way);
}

void MoveList::run_stretch(const Stretch& stretch, HostWay way) const {
  const auto& [entry, lower, upper] = stretch;
  if (entry < 0) return run_together(walks_[-1 - entry], lower, upper, way);
  moves_[entry].run(lower, upper, way);
}

void MoveList::run_together(const Walk& walk, long long lower, long long upper, HostWay way) const {
  const CopyBlock& loops = walk.loops;
  const int last = loops.dims - 1;
  long long begin[block_dims_max] = {lower}, end[block_dims_max], at[block_dims_max];
  std::copy_n(loops.extents, loops.dims, end);
  end[0] = upper;
  std::copy_n(begin, loops.dims, at);
  for (;;) {
    for (long long row = begin[last]; row < end[last]; row += rows_together) {
      for (const Piece& piece : walk.pieces) {
        long long source = row * piece.source_strides[last], target = row * piece.target_strides[last];
        for (int d = 0; d < last; ++d) {
          source += at[d] * piece.source_strides[d];
          target += at[d] * piece.target_strides[d];
        }
        copy_rows_on_host({.count = std::min(rows_together, end[last] - row),
                           .row_bytes = piece.row_bytes,
                           .source_stride = piece.source_strides[last],
                           .target_stride = piece.target_strides[last]},
                          way, piece.source + source, piece.target + target);
      }
    }
    int d = last - 1;
    for (; d >= 0 && ++at[d] == end[d]; --d) at[d] = begin[d];
    if (d < 0) return;
  }
}

MoveList::Summary MoveList::summary() const {
  Summary out{.walks = Index(moves_.size() + walks_.size())};
  Index runs = 0;
  const auto add = [&](Index bytes, Index run_bytes, BlockShape shape) {
    ++out.moves;
    runs += bytes / run_bytes;
    out.run_bytes_min = out.moves == 1 ? run_bytes : std::min(out.run_bytes_min, run_bytes);
    out.shapes[int(shape)] += bytes;
  };
  for (const LoweredMove& move : moves_)
    add(move.bytes(), run_bytes(move), move.is_indexed ? BlockShape::elements : shape_of(move.block, move.width));
  for (const Walk& walk : walks_) {
    for (const Piece& piece : walk.pieces)
      add(element_count(walk.loops) * piece.row_bytes, piece.row_bytes, BlockShape::rows);
  }
  out.run_bytes_mean = runs > 0 ? bytes_ / runs : 0;
  return out;
}

}  // namespace tranship
