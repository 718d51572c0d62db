#include <algorithm>

#include <tranship/run/move_list.hpp>

namespace tranship {
namespace {

/// Rows that pieces walk in turn before the next piece has its turn: few enough that the lines they share with it are
/// still in the nearest cache.
constexpr long long rows_together = 16;

/// Whether a move is rows inside at least one loop, and walks its target upward: only then can others walk along.
bool is_walked_in_rows(const LoweredMove& move) {
  if (move.is_indexed || move.move != Move::copy || move.block.dims < 2) return false;
  if (shape_of(move.block, move.width) != BlockShape::rows) return false;
  for (int d = 0; d < move.block.dims; ++d)
    if (move.block.target_strides[d] < 0) return false;
  return true;
}

/// The dimension over which rows are counted.
int row_dim(const CopyBlock& block) {
  return block.dims - 2;
}

/// Where a move begins to write.
const std::byte* first_target(const LoweredMove& move) {
  const std::byte* first = move.target;
  if (!move.is_indexed)
    for (int d = 0; d < move.block.dims; ++d)
      if (move.block.target_strides[d] < 0) first += (move.block.extents[d] - 1) * move.block.target_strides[d];
  return first;
}

/// Whether two moves have the same loops around their rows, and their rows lie side by side.
bool walk_together(const LoweredMove& first, const LoweredMove& other) {
  const CopyBlock &a = first.block, &b = other.block;
  if (a.dims != b.dims) return false;
  for (int d = 0; d <= row_dim(a); ++d)
    if (a.extents[d] != b.extents[d] || a.target_strides[d] != b.target_strides[d]) return false;
  return other.target - first.target < a.target_strides[row_dim(a)];
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
  if (order == MoveOrder::any)
    std::stable_sort(moves.begin(), moves.end(),
                     [](const LoweredMove& a, const LoweredMove& b) { return first_target(a) < first_target(b); });

  std::vector<bool> taken(moves.size(), false);
  for (std::size_t i = 0; i < moves.size(); ++i) {
    if (taken[i]) continue;
    std::vector<std::size_t> together = {i};
    if (order == MoveOrder::any && is_walked_in_rows(moves[i])) {
      const std::byte* end = moves[i].target + moves[i].block.target_strides[row_dim(moves[i].block)];
      for (std::size_t k = i + 1; k < moves.size() && moves[k].target < end; ++k)
        if (!taken[k] && is_walked_in_rows(moves[k]) && walk_together(moves[i], moves[k])) together.push_back(k);
    }
    if (together.size() == 1) {
      order_.push_back(Index(moves_.size()));
      moves_.push_back(moves[i]);
      continue;
    }
    Walk walk{.loops = moves[i].block, .pieces = {}};
    --walk.loops.dims;
    for (const std::size_t k : together) {
      taken[k] = true;
      Piece piece{.source = moves[k].source, .target = moves[k].target, .row_bytes = run_bytes(moves[k])};
      std::copy_n(moves[k].block.source_strides, walk.loops.dims, piece.source_strides);
      walk.pieces.push_back(piece);
    }
    walks_.push_back(std::move(walk));
    order_.push_back(-Index(walks_.size()));
  }
}

void MoveList::run(HostWay way) const {
  for (const Index i : order_) {
    if (i >= 0)
      moves_[i].run(way);
    else
      run_together(walks_[-1 - i], way);
  }
  order_stores(way);
}

void MoveList::run_together(const Walk& walk, HostWay way) const {
  const CopyBlock& loops = walk.loops;
  const int last = loops.dims - 1;
  long long at[block_dims_max] = {};
  for (;;) {
    for (long long row = 0; row < loops.extents[last]; row += rows_together) {
      for (const Piece& piece : walk.pieces) {
        long long source = row * piece.source_strides[last], target = row * loops.target_strides[last];
        for (int d = 0; d < last; ++d) {
          source += at[d] * piece.source_strides[d];
          target += at[d] * loops.target_strides[d];
        }
        copy_rows_on_host({.count = std::min(rows_together, loops.extents[last] - row),
                           .row_bytes = piece.row_bytes,
                           .source_stride = piece.source_strides[last],
                           .target_stride = loops.target_strides[last]},
                          way, piece.source + source, piece.target + target);
      }
    }
    int d = last - 1;
    for (; d >= 0 && ++at[d] == loops.extents[d]; --d) at[d] = 0;
    if (d < 0) return;
  }
}

MoveList::Summary MoveList::summary() const {
  Summary out{.walks = Index(order_.size())};
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
    Index rows = 1;
    for (int d = 0; d < walk.loops.dims; ++d) rows *= walk.loops.extents[d];
    for (const Piece& piece : walk.pieces) add(rows * piece.row_bytes, piece.row_bytes, BlockShape::rows);
  }
  out.run_bytes_mean = runs > 0 ? bytes_ / runs : 0;
  return out;
}

}  // namespace tranship
