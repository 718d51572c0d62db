// Chooses the loop for a block: rows (copy_rows.cpp, combine_rows.cpp), tiles (transpose_tiles.cpp,
// copy_narrow_tiles.cpp) or elements (move_elements.cpp).
#include "tranship/kernels/host/host_move.hpp"

#include <tranship/kernels/host/host_loops.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship {
namespace {

using loops::Byte;

/// Returns true if elements lie lines apart: each is then a row of its own and is prefetched like one.
bool is_sparse(const CopyBlock& block) {
  const int last = block.dims - 1;
  return detail::magnitude(block.source_strides[last]) >= line_bytes ||
         detail::magnitude(block.target_strides[last]) >= line_bytes;
}

/// Returns true if each target element is reached once, so that the order does not matter.
bool is_free_of_order(const CopyBlock& block, int width) {
  for (int d = 0; d < block.dims; ++d)
    if (block.target_strides[d] == 0) return false;
  return detail::target_is_nested(block, width);
}

/// Walks dimension d in the other direction, over the same elements.
void turn_round(CopyBlock& block, int d, const Byte*& source, Byte*& target) {
  source += (block.extents[d] - 1) * block.source_strides[d];
  target += (block.extents[d] - 1) * block.target_strides[d];
  block.source_strides[d] = -block.source_strides[d];
  block.target_strides[d] = -block.target_strides[d];
}

/// Takes the last dimension as the row, or else every element.
void move_in_rows(CopyBlock block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                  const Byte* source, Byte* target) {
  const Rows rows = take_rows(block, width);
  const RowCopy move_rows =
      move == ElementMap::copy ? row_copy(rows.row_bytes, way) : loops::row_move(move, arithmetic, width, way.simd);
  loops::for_each_base(block, source, target, [&](const Byte* from, Byte* to) { move_rows(rows, from, to); });
}

/// Products, minima and maxima are rare, and a loop for every shape of every number takes room. They have vectors for
/// contiguous rows and use the plain loop for all else.
bool is_plain(const CopyBlock& block, ElementMap map, int width, BlockShape shape, CopyMethod way) {
  if (!loops::has_rows_only(map)) return block.dims > 0 && !is_free_of_order(block, width);
  return way.simd != Simd::bytes32 || shape != BlockShape::rows || !has_contiguous_rows(block, width);
}

}  // namespace

BlockShape shape_of(const CopyBlock& block, int width) {
  for (int d = 0; d < block.dims; ++d)
    if (block.extents[d] <= 0) return BlockShape::empty;
  if (block.dims == 0) return BlockShape::rows;
  if (!is_free_of_order(block, width)) return BlockShape::elements;
  const int last = block.dims - 1;
  const bool dense_target = detail::magnitude(block.target_strides[last]) == width;
  if (dense_target && block.source_strides[last] == block.target_strides[last]) return BlockShape::rows;
  if (dense_target)
    for (int d = 0; d < last; ++d)
      if (detail::magnitude(block.source_strides[d]) == width) return BlockShape::tiles;
  return is_sparse(block) ? BlockShape::rows : BlockShape::elements;
}

bool has_contiguous_rows(const CopyBlock& block, int width) {
  const int last = block.dims - 1;
  return last >= 0 && block.source_strides[last] == width && block.target_strides[last] == width;
}

long long row_bytes_of(const CopyBlock& block, int width) {
  return has_contiguous_rows(block, width) ? block.extents[block.dims - 1] * width : width;
}

Rows take_rows(CopyBlock& block, int width) {
  Rows rows{.row_bytes = row_bytes_of(block, width)};
  if (has_contiguous_rows(block, width)) --block.dims;
  if (block.dims > 0) {
    const int d = --block.dims;
    rows.count = block.extents[d];
    rows.source_stride = block.source_strides[d];
    rows.target_stride = block.target_strides[d];
  }
  if (block.dims > 0) {
    const int d = --block.dims;
    rows.planes = block.extents[d];
    rows.source_plane = block.source_strides[d];
    rows.target_plane = block.target_strides[d];
  }
  return rows;
}

void move_on_host(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width, CopyMethod way,
                  const void* source, void* target) {
  const BlockShape shape = shape_of(block, width);
  if (shape == BlockShape::empty) return;
  if (is_plain(block, move, width, shape, way)) {
    tranship::move(block, move, arithmetic, width, source, target);
    return order_stores(way);
  }
  const auto* from = static_cast<const Byte*>(source);
  auto* to = static_cast<Byte*>(target);
  CopyBlock upward = block;
  for (int d = 0; d < upward.dims; ++d)
    if (upward.target_strides[d] < 0) turn_round(upward, d, from, to);
  if (shape == BlockShape::rows) {
    move_in_rows(upward, move, arithmetic, width, way, from, to);
  } else if (shape == BlockShape::elements) {
    loops::move_in_elements(upward, move, arithmetic, width, from, to);
  } else {
    if (loops::tile_dimension(upward, width) < 0)
      for (int d = 0; d < upward.dims - 1; ++d)
        if (upward.source_strides[d] == -width) {
          turn_round(upward, d, from, to);
          break;
        }
    loops::move_in_tiles(upward, move, arithmetic, width, way, from, to);
  }
  order_stores(way);
}

void order_stores([[maybe_unused]] CopyMethod way) {
#if defined(__x86_64__)
  if (way.stores == Stores::streaming) _mm_sfence();
#endif
}

}  // namespace tranship
