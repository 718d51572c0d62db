// Detail: Moves a CopyBlock: an odometer over rows, and one loop per row for each element type. Any block is moved
// correctly as it is; a canonical block (copy_block.hpp) has the longest rows and is the fastest. Source and target
// must not overlap, and nothing needs to be aligned.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/copy_block.hpp>
#include <tranship/kernels/shared.hpp>

namespace tranship {
namespace detail {

template <class Element>
TRANSHIP_SHARED inline void move_contiguous_row(long long count, const unsigned char* __restrict__ source,
                                                unsigned char* __restrict__ target) {
  if constexpr (Element::is_copy) {
    copy_bytes(target, source, static_cast<unsigned long>(count) * Element::width);
  } else {
    for (long long i = 0; i < count; ++i) Element::apply(source + i * Element::width, target + i * Element::width);
  }
}

template <class Element>
TRANSHIP_SHARED inline void move_row(long long count, long long source_stride, long long target_stride,
                                     const unsigned char* source, unsigned char* target) {
  if (source_stride == Element::width && target_stride == Element::width)
    return move_contiguous_row<Element>(count, source, target);
  for (long long i = 0; i < count; ++i) Element::apply(source + i * source_stride, target + i * target_stride);
}

template <class Element>
TRANSHIP_SHARED inline void move_block(const CopyBlock& block, const unsigned char* source, unsigned char* target) {
  if (block.dims == 0) return Element::apply(source, target);
  long long at[block_dims_max];
  for (int d = 0; d < block.dims; ++d) {
    if (block.extents[d] <= 0) return;
    at[d] = 0;
  }
  const int row = block.dims - 1;
  long long source_offset = 0;
  long long target_offset = 0;
  for (;;) {
    move_row<Element>(block.extents[row], block.source_strides[row], block.target_strides[row], source + source_offset,
                      target + target_offset);
    int d = row - 1;
    for (; d >= 0 && ++at[d] == block.extents[d]; --d) {
      source_offset -= (block.extents[d] - 1) * block.source_strides[d];
      target_offset -= (block.extents[d] - 1) * block.target_strides[d];
      at[d] = 0;
    }
    if (d < 0) return;
    source_offset += block.source_strides[d];
    target_offset += block.target_strides[d];
  }
}

}  // namespace detail

/// Moves the elements of `block`, of `width` bytes each, in the order of the block, last dimension fastest. If several
/// elements reach one target, they are combined in that order, or the last copy stays. A copy ignores `arithmetic`.
/// Requires `can_move(move, arithmetic, width)`.
TRANSHIP_SHARED inline void move(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width,
                                 const void* source, void* target) {
  detail::with_element(move, arithmetic, width, [&](auto element) {
    detail::move_block<decltype(element)>(block, static_cast<const unsigned char*>(source),
                                          static_cast<unsigned char*>(target));
  });
}

/// Sets target = source for every element of `block`, of 1, 2, 4, 8 or 16 bytes.
TRANSHIP_SHARED inline void copy(const CopyBlock& block, int width, const void* source, void* target) {
  move(block, ElementMap::copy, Arithmetic::none, width, source, target);
}

/// Writes one element of `width` bytes to each target of `block`; null writes zeros. Source strides are ignored.
TRANSHIP_SHARED inline void fill(CopyBlock block, int width, const void* element, void* target) {
  const unsigned char zeros[16] = {};
  for (int d = 0; d < block.dims; ++d) block.source_strides[d] = 0;
  copy(block, width, element ? element : zeros, target);
}

}  // namespace tranship
