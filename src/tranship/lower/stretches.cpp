#include "tranship/lower/stretches.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace tranship {
namespace {

/// A loop around stretches; its stride is not negative.
struct Loop {
  Index stride = 0;
  Index extent = 0;
};

void walk(const std::vector<Loop>& loops, std::size_t depth, Index offset, Index bytes,
          FunctionRef<void(Index, Index)> f) {
  if (depth == loops.size()) return f(offset, bytes);
  for (Index i = 0; i < loops[depth].extent; ++i) walk(loops, depth + 1, offset + i * loops[depth].stride, bytes, f);
}

void for_each_stretch_of(const CopyBlock& block, MoveSide side, Index width, Index offset,
                         FunctionRef<void(Index, Index)> f) {
  std::vector<Loop> loops;
  for (int d = 0; d < block.dims; ++d) {
    const Index extent = block.extents[d];
    Index stride = side == MoveSide::source ? block.source_strides[d] : block.target_strides[d];
    if (extent <= 0) return;
    if (stride < 0) {
      offset += (extent - 1) * stride;
      stride = -stride;
    }
    if (extent > 1 && stride > 0) loops.push_back({stride, extent});
  }
  std::stable_sort(loops.begin(), loops.end(), [](const Loop& a, const Loop& b) { return a.stride > b.stride; });
  Index bytes = width;
  while (!loops.empty() && loops.back().stride == bytes) {
    bytes *= loops.back().extent;
    loops.pop_back();
  }
  walk(loops, 0, offset, bytes, f);
}

}  // namespace

void for_each_stretch(const LoweredMove& move, MoveSide side, FunctionRef<void(Index, Index)> f) {
  const bool is_source = side == MoveSide::source;
  const Index offset = (is_source ? move.source : move.target).offset_bytes;
  if (move.is_indexed) {
    const IndexedBlock& rows = move.indexed;
    const auto& list = is_source ? move.source_rows : move.target_rows;  // the block's own lists are those for run()
    const Index stride = is_source ? rows.source_row_stride : rows.target_row_stride;
    if (rows.row_length > 0)
      for (Index i = 0; i < rows.count; ++i)
        f(offset + (list ? (*list)[static_cast<std::size_t>(i)] : i) * stride, rows.row_length * move.width);
    return;
  }
  if (!move.lattice) return for_each_stretch_of(move.block, side, move.width, offset, f);
  CopyBlock stretch = move.block;
  const auto d = static_cast<std::size_t>(move.lattice_dim);
  const Index stride = is_source ? stretch.source_strides[d] : stretch.target_strides[d];
  for (LatticeWalk at(*move.lattice); !at.is_over(); at.next()) {
    stretch.extents[d] = at.length();
    for_each_stretch_of(stretch, side, move.width, offset + (is_source ? at.source() : at.target()) * stride, f);
  }
}

}  // namespace tranship
