// Detail: CopyBlock, the shape of all strided moves: a nest of loops over elements with a stride on each side.
// Invariant of canonicalise: the same elements move, and values reach each target byte in the same order, so neither a
// copy nor an accumulation changes by a bit. Next: strided_copy.hpp.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// 8 array dimensions, each possibly a (count, length) pair, the parts of a complex number, and one spare.
inline constexpr int block_dims_max = 18;

/// Element (i0, i1, ...) is read at source + i0*source_strides[0] + i1*source_strides[1] + ... and written at the same
/// form of the target. Strides are in bytes and may be negative or zero; extents are not negative; dimension 0 is the
/// slowest. A block without dimensions is one element. Offsets must fit in 63 bits; the code that makes a block checks
/// this.
struct CopyBlock {
  int dims = 0;
  long long extents[block_dims_max] = {};
  long long source_strides[block_dims_max] = {};
  long long target_strides[block_dims_max] = {};
};

/// Returns a row of `count` elements, `stride_bytes` apart on both sides.
TRANSHIP_SHARED inline CopyBlock row_of(long long count, long long stride_bytes) {
  CopyBlock row;
  row.dims = 1;
  row.extents[0] = count;
  row.source_strides[0] = row.target_strides[0] = stride_bytes;
  return row;
}

TRANSHIP_SHARED inline long long element_count(const CopyBlock& block) {
  long long count = 1;
  for (int d = 0; d < block.dims; ++d) count *= block.extents[d];
  return count;
}

namespace detail {

TRANSHIP_SHARED inline long long magnitude(long long stride) {
  return stride < 0 ? -stride : stride;
}

TRANSHIP_SHARED inline void set_dimension(CopyBlock& to, int d, const CopyBlock& from, int from_d) {
  to.extents[d] = from.extents[from_d];
  to.source_strides[d] = from.source_strides[from_d];
  to.target_strides[d] = from.target_strides[from_d];
}

TRANSHIP_SHARED inline void dense_strides(const CopyBlock& block, int width, long long* strides) {
  long long stride = width;
  for (int d = block.dims - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= block.extents[d];
  }
}

/// Returns the dimensions sorted by decreasing target stride, zeros last; equal strides keep their order.
TRANSHIP_SHARED inline CopyBlock sorted_by_target(const CopyBlock& block) {
  CopyBlock sorted;
  for (int d = 0; d < block.dims; ++d) {
    int at = sorted.dims++;
    for (; at > 0 && magnitude(sorted.target_strides[at - 1]) < magnitude(block.target_strides[d]); --at)
      set_dimension(sorted, at, sorted, at - 1);
    set_dimension(sorted, at, block, d);
  }
  return sorted;
}

/// Returns true if, in a sorted block, each nonzero target stride steps over everything that the smaller strides reach.
/// Then only dimensions of stride zero reach an element again, and the others may be interchanged.
TRANSHIP_SHARED inline bool target_is_nested(const CopyBlock& sorted, int width) {
  long long reach_bytes = width;
  for (int d = sorted.dims - 1; d >= 0; --d) {
    const long long stride = magnitude(sorted.target_strides[d]);
    if (stride == 0) continue;
    if (stride < reach_bytes) return false;
    reach_bytes += stride * (sorted.extents[d] - 1);
  }
  return true;
}

}  // namespace detail

/// Returns the block that packs what `block` reads into one contiguous buffer, in the dimension order of `block`.
/// Sender and receiver agree on that order only before they canonicalise their own blocks, so canonicalise the result.
TRANSHIP_SHARED inline CopyBlock with_dense_target(CopyBlock block, int width) {
  detail::dense_strides(block, width, block.target_strides);
  return block;
}

/// Returns the block that unpacks such a buffer to the places that `block` writes.
TRANSHIP_SHARED inline CopyBlock with_dense_source(CopyBlock block, int width) {
  detail::dense_strides(block, width, block.source_strides);
  return block;
}

/// Brings a block into its fastest form: drops extents of one, sorts dimensions by decreasing target stride, and fuses
/// neighbours that continue each other on both sides. An empty block becomes one dimension of extent zero. `width` is
/// the size of an element in bytes.
///
/// The order of additions is kept: dimensions of target stride zero (sums) move innermost in their original order, and
/// a block that reaches a target element repeatedly in any other way (overlapping windows) is not sorted.
TRANSHIP_SHARED inline void canonicalise(CopyBlock& block, int width) {
  CopyBlock kept;
  for (int d = 0; d < block.dims; ++d) {
    if (block.extents[d] <= 0) {
      block = CopyBlock{};
      block.dims = 1;
      return;
    }
    if (block.extents[d] > 1) detail::set_dimension(kept, kept.dims++, block, d);
  }

  const CopyBlock sorted = detail::sorted_by_target(kept);
  if (detail::target_is_nested(sorted, width)) kept = sorted;

  block = CopyBlock{};
  for (int d = 0; d < kept.dims; ++d) {
    const int outer = block.dims - 1;
    if (outer >= 0 && block.source_strides[outer] == kept.source_strides[d] * kept.extents[d] &&
        block.target_strides[outer] == kept.target_strides[d] * kept.extents[d]) {
      block.extents[outer] *= kept.extents[d];
      block.source_strides[outer] = kept.source_strides[d];
      block.target_strides[outer] = kept.target_strides[d];
    } else {
      detail::set_dimension(block, block.dims++, kept, d);
    }
  }
}

}  // namespace tranship
