#include "tranship/lower/block_moves.hpp"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

namespace tranship {
namespace {

using Lists = std::vector<std::vector<BlockMove>>;

/// A row of an index list, in bytes from the bases.
struct Row {
  long long source = 0;
  long long target = 0;
};

/// Appends rows that lie at equal distances on both sides as one move with two loops.
void append_rows(const BlockMove& first, long long row_length, std::span<const Row> rows, std::vector<BlockMove>& out) {
  for (std::size_t at = 0; at < rows.size();) {
    BlockMove move = first;
    move.source_offset += rows[at].source;
    move.target_offset += rows[at].target;
    const auto step = [&](std::size_t i) {
      return Row{rows[i + 1].source - rows[i].source, rows[i + 1].target - rows[i].target};
    };
    std::size_t last = at;
    while (last + 1 < rows.size() && step(last).source == step(at).source && step(last).target == step(at).target &&
           step(at).target != 0)
      ++last;
    move.block = {};
    const auto append = [&block = move.block](long long extent, long long source, long long target) {
      block.extents[block.dims] = extent;
      block.source_strides[block.dims] = source;
      block.target_strides[block.dims++] = target;
    };
    if (last > at) append(static_cast<long long>(last - at) + 1, step(at).source, step(at).target);
    append(row_length, move.width, move.width);
    out.push_back(move);
    at = last + 1;
  }
}

/// A row that is combined into elements of an earlier row goes to a later list.
void append_indexed(const LoweredMove& lowered, const BlockMove& first, bool keeps_order, Lists& lists) {
  const IndexedBlock& block = lowered.indexed;
  const long long row_bytes = block.row_length * lowered.width;
  std::vector<std::vector<Row>> rounds(1);
  std::map<long long, std::size_t> rounds_of;  // the last one that has a row there
  const auto round_of = [&](long long target) {
    std::size_t out = 0;
    for (auto it = rounds_of.upper_bound(target - row_bytes); it != rounds_of.end() && it->first < target + row_bytes;
         ++it)
      out = std::max(out, it->second + 1);
    return out;
  };
  for (long long i = 0; i < block.count; ++i) {
    const auto at = [i](const auto& rows, long long stride) { return (rows ? (*rows)[std::size_t(i)] : i) * stride; };
    const Row row{at(lowered.source_rows, block.source_row_stride), at(lowered.target_rows, block.target_row_stride)};
    const std::size_t round = keeps_order ? round_of(row.target) : 0;
    if (keeps_order) rounds_of[row.target] = round;
    if (round == rounds.size()) rounds.emplace_back();
    rounds[round].push_back(row);
  }
  for (std::size_t round = 0; round < rounds.size(); ++round) {
    if (round > 0) lists.emplace_back();
    append_rows(first, block.row_length, rounds[round], lists.back());
  }
}

/// Returns the outermost of the loops that reach the same target bytes in several ways, or -1. Loops with a larger
/// stride step over all that these reach.
int overlapping_loop(const CopyBlock& block, int width) {
  std::vector<int> loops;
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] > 1) loops.push_back(d);
  const auto stride = [&](int d) { return std::abs(block.target_strides[d]); };
  std::sort(loops.begin(), loops.end(), [&](int a, int b) { return stride(a) < stride(b); });
  long long reach_bytes = width;
  int outermost = block.dims, out = -1;
  for (const int d : loops) {
    outermost = std::min(outermost, d);
    if (stride(d) < reach_bytes) out = outermost;
    reach_bytes += stride(d) * (block.extents[d] - 1);
  }
  return out;
}

/// Elements that are combined into the same one go to successive lists, in the order of the loops. Only fills copy to
/// an element twice, and both times the same.
void append_block(BlockMove move, bool keeps_order, Lists& lists) {
  const int d = overlapping_loop(move.block, move.width);
  if (d < 0) return lists.back().push_back(move);
  const long long extent = std::exchange(move.block.extents[d], 1);
  for (long long i = 0; i < extent; ++i) {
    if (i > 0 && keeps_order) lists.emplace_back();
    append_block(move, keeps_order, lists);
    move.source_offset += move.block.source_strides[d];
    move.target_offset += move.block.target_strides[d];
  }
}

void append_lattice(const LoweredMove& lowered, const BlockMove& first, bool keeps_order, Lists& lists) {
  const auto d = std::size_t(lowered.lattice_dim);
  const long long source_stride = lowered.block.source_strides[d], target_stride = lowered.block.target_strides[d];
  LoweredMove stretch = lowered;
  long long staged = 0;
  for (LatticeWalk walk(*lowered.lattice); !walk.is_over(); walk.next()) {
    stretch.block.extents[d] = walk.length();
    BlockMove move = first;
    move.block = stretch.routed_block();
    move.source_offset += lowered.unpacks() ? staged : walk.source() * source_stride;
    move.target_offset += lowered.packs() ? staged : walk.target() * target_stride;
    staged += element_count(move.block) * move.width;
    append_block(move, keeps_order, lists);
  }
}

}  // namespace

Lists block_moves(std::span<const LoweredMove> moves, MoveOrder order, FunctionRef<unsigned(MoveSide, int)> base_of) {
  const bool keeps_order = order == MoveOrder::given;
  Lists out;
  for (const LoweredMove& lowered : moves) {
    if (out.empty() || keeps_order) out.emplace_back();
    BlockMove move{.source_base = base_of(MoveSide::source, lowered.source.slot),
                   .source_offset = lowered.source.offset_bytes,
                   .target_base = base_of(MoveSide::target, lowered.target.slot),
                   .target_offset = lowered.target.offset_bytes,
                   .block = lowered.block,
                   .width = lowered.width,
                   .map = lowered.move,
                   .arithmetic = lowered.move == ElementMap::copy ? Arithmetic::none : lowered.arithmetic};
    if (lowered.is_indexed)
      append_indexed(lowered, move, keeps_order, out);
    else if (lowered.lattice)
      append_lattice(lowered, move, keeps_order, out);
    else
      append_block(move, keeps_order, out);
  }
  return out;
}

}  // namespace tranship
