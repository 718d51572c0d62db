// Private: Copies of views of one element type, by the strided copies of kernels/host.
#pragma once

#include <tranship/face/vsip/loops.hpp>
#include <tranship/kernels/host/host_move.hpp>

namespace tranship::vsip {

/// Copies one array of scalars to another one; strides count scalars of `width` bytes / `parts`.
template <std::size_t N>
void move_scalars(const std::array<Dimension, N>& lengths, std::size_t scalar_bytes, int width, const void* from,
                  const std::array<std::ptrdiff_t, N>& from_strides, void* to,
                  const std::array<std::ptrdiff_t, N>& to_strides) {
  if (from == to && from_strides == to_strides) return;
  CopyBlock block;
  block.dims = int(N);
  long long bytes = width;
  for (std::size_t d = 0; d < N; ++d) {
    block.extents[d] = static_cast<long long>(lengths[d].length);
    block.source_strides[d] = from_strides[d] * static_cast<long long>(scalar_bytes);
    block.target_strides[d] = to_strides[d] * static_cast<long long>(scalar_bytes);
    bytes *= block.extents[d];
  }
  canonicalise(block, width);
  move_on_host(block, ElementMap::copy, Arithmetic::none, width, copy_method(bytes), from, to);
}

/// Copies `from` to `to`, which has the same lengths. A scalar of `to` is the same scalar of `from`, or overlaps none
/// of `from`.
template <class V>
void move_elements(const V& from, const V& to) {
  const auto source = place_of(from);
  const auto target = place_of(to);
  if constexpr (V::Block::complex) {
    using R = typename V::Block::Part;
    const bool whole = source.im == source.re + 1 && target.im == target.re + 1;
    const int width = int(sizeof(R)) * (whole ? 2 : 1);
    move_scalars(to.dimensions, sizeof(R), width, source.re, source.strides, target.re, target.strides);
    if (!whole) move_scalars(to.dimensions, sizeof(R), width, source.im, source.strides, target.im, target.strides);
  } else {
    using T = typename V::Element;
    if constexpr (sizeof(T) <= 16)
      move_scalars(to.dimensions, sizeof(T), int(sizeof(T)), source.data, source.strides, target.data, target.strides);
    else
      each([](auto r, auto a) { r.store(a.load()); }, to, from);
  }
}

/// Returns the transposed matrix of a view.
template <class V>
V transposed(const V& view) {
  V out = view;
  std::swap(out.dimensions[0], out.dimensions[1]);
  return out;
}

}  // namespace tranship::vsip
