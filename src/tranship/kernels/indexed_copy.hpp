// Private: Moves rows by index lists: gathers, scatters, and both at once, for meshes without an order of their cells.
// Source and target must not overlap, and nothing needs to be aligned, as in strided_copy.hpp.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/shared.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship {

/// `count` rows of `row_length` contiguous elements. Move i goes from row source_rows[i] to row target_rows[i]; a null
/// list means row i itself (a packed buffer). Row r begins r strides after the base. Strides are in bytes, so rows may
/// be padded, may overlap, or may be single elements of a view.
struct IndexedBlock {
  long long count = 0;
  long long row_length = 1;
  const long long* source_rows = nullptr;
  const long long* target_rows = nullptr;
  long long source_row_stride = 0;
  long long target_row_stride = 0;
};

/// Moves the rows in the order of the lists: a target row listed twice gets both additions in that order, or keeps the
/// last copy. Requires `can_move(move, arithmetic, width)`.
TRANSHIP_SHARED inline void move_indexed(const IndexedBlock& block, ElementMap move, Arithmetic arithmetic, int width,
                                         const void* source, void* target) {
  if (block.row_length <= 0) return;
  detail::with_element(move, arithmetic, width, [&](auto element) {
    for (long long i = 0; i < block.count; ++i) {
      const long long source_row = block.source_rows ? block.source_rows[i] : i;
      const long long target_row = block.target_rows ? block.target_rows[i] : i;
      detail::move_contiguous_row<decltype(element)>(
          block.row_length, static_cast<const unsigned char*>(source) + source_row * block.source_row_stride,
          static_cast<unsigned char*>(target) + target_row * block.target_row_stride);
    }
  });
}

}  // namespace tranship
