// Detail: StridedSpan, an N-d array in memory as a value for kernels, and how the lanes of a group copy one into
// another. On the host base/strided_view.hpp is the same without a type.
#pragma once

#include <tranship/kernels/copy_block.hpp>
#include <tranship/kernels/shared.hpp>
#include <tranship/kernels/strided_copy.hpp>

namespace tranship {

/// Element (i0, i1, ...) lies at data + i0*strides[0] + i1*strides[1] + ...; strides count elements and may be negative
/// or zero. No dimensions is one element.
template <class T>
struct StridedSpan {
  /// One less than arrays have: elements that are no numbers need the last one for their bytes.
  static constexpr int dims_max = 7;

  T* data = nullptr;
  int dims = 0;
  long long extents[dims_max] = {};
  long long strides[dims_max] = {};

  /// To what may only be read.
  template <class U>
  requires(detail::is_same<const T, U> && !detail::is_same<T, U>) TRANSHIP_SHARED constexpr operator StridedSpan<U>()
      const {
    StridedSpan<U> out;
    out.data = data;
    out.dims = dims;
    for (int d = 0; d < dims_max; ++d) {
      out.extents[d] = extents[d];
      out.strides[d] = strides[d];
    }
    return out;
  }
};

namespace detail {

/// The first byte of an array from its base, and how many there are to the end of the last one; -1 where they cannot
/// be: where a number of dimensions or an extent is impossible, or they are more than `bytes_max`.
struct StridedReach {
  long long first = 0;
  long long bytes = 0;
};
template <class T>
TRANSHIP_SHARED inline StridedReach reach_of(const StridedSpan<T>& span, unsigned long long bytes_max) {
  constexpr StridedReach impossible{0, -1};
  if (span.dims < 0 || span.dims > StridedSpan<T>::dims_max) return impossible;
  bool is_empty = false;
  for (int d = 0; d < span.dims; ++d) {
    if (span.extents[d] < 0) return impossible;
    is_empty |= span.extents[d] == 0;
  }
  if (is_empty) return {};
  constexpr unsigned long long most = ~0ull >> 2;
  const unsigned long long elements_max = (bytes_max < most ? bytes_max : most) / sizeof(T);
  if (elements_max == 0) return impossible;
  unsigned long long before = 0, after = 0, left = elements_max - 1;
  for (int d = 0; d < span.dims; ++d) {
    const auto steps = static_cast<unsigned long long>(span.extents[d]) - 1;
    const bool is_back = span.strides[d] < 0;
    const auto stride = is_back ? 0 - static_cast<unsigned long long>(span.strides[d])
                                : static_cast<unsigned long long>(span.strides[d]);
    if (steps == 0 || stride == 0) continue;
    if (stride > left / steps) return impossible;
    (is_back ? before : after) += steps * stride;
    left -= steps * stride;
  }
  return {-static_cast<long long>(before * sizeof(T)), static_cast<long long>((before + after + 1) * sizeof(T))};
}

/// The same elements, with 0 for strides that are not taken, which may be any number; of nothing, all extents are 0.
template <class T>
TRANSHIP_SHARED inline StridedSpan<T> plain(const StridedSpan<T>& span) {
  StridedSpan<T> out = span;
  bool is_empty = false;
  for (int d = 0; d < span.dims; ++d) is_empty |= span.extents[d] == 0;
  for (int d = 0; d < span.dims; ++d) {
    if (is_empty) out.extents[d] = 0;
    if (out.extents[d] <= 1) out.strides[d] = 0;
  }
  return out;
}

/// A number that differs where shapes differ, but for very few of them.
template <class T>
TRANSHIP_SHARED inline unsigned long long mark_of(const StridedSpan<T>& span) {
  unsigned long long mark = static_cast<unsigned long long>(span.dims);
  const auto add = [&](long long value) { mark = (mark ^ static_cast<unsigned long long>(value)) * 0x100000001b3ull; };
  for (int d = 0; d < span.dims && d < StridedSpan<T>::dims_max; ++d) {
    add(span.extents[d]);
    add(span.strides[d]);
  }
  return mark;
}

/// Elements that have no width of their own are rows of bytes.
template <class T>
inline constexpr int strided_width = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                                             sizeof(T) == 16
                                         ? sizeof(T)
                                         : 1;

/// In a function of its own, of which a kernel with many transfers has one copy.
__attribute__((noinline)) TRANSHIP_SHARED inline void canonicalise_once(CopyBlock& block, int width) {
  canonicalise(block, width);
}

/// The block of two arrays of the same extents, whose bytes fit in 63 bits.
template <class T>
TRANSHIP_SHARED inline CopyBlock block_of(const StridedSpan<T>& target, const StridedSpan<const T>& source) {
  const StridedSpan<T> to = plain(target);
  const StridedSpan<const T> from = plain(source);
  CopyBlock block;
  block.dims = to.dims;
  constexpr auto width = static_cast<long long>(sizeof(T));
  for (int d = 0; d < to.dims; ++d) {
    block.extents[d] = to.extents[d];
    block.source_strides[d] = from.strides[d] * width;
    block.target_strides[d] = to.strides[d] * width;
  }
  if constexpr (strided_width<T> != sizeof(T)) {
    const int d = block.dims++;
    block.extents[d] = width;
    block.source_strides[d] = block.target_strides[d] = 1;
  }
  canonicalise_once(block, strided_width<T>);
  return block;
}

// What one lane copies of a block that is not empty, when all of them copy it.

/// For lanes that run side by side: element by element, in the order of the target, so that neighbours write side by
/// side. `aligned` is how elements lie on both sides.
template <int width, int aligned>
TRANSHIP_SHARED inline void copy_strided_interleaved(int lane, int lanes, const CopyBlock& block, unsigned char* target,
                                                     const unsigned char* source) {
  const auto count = static_cast<unsigned long long>(element_count(block));
  for (unsigned long long i = lane; i < count; i += lanes) {
    unsigned char* to = target;
    const unsigned char* from = source;
    unsigned long long rest = i;
    for (int d = block.dims - 1; d >= 0; --d) {
      const auto extent = static_cast<unsigned long long>(block.extents[d]);
      const auto at = static_cast<long long>(rest % extent);
      rest /= extent;
      to += at * block.target_strides[d];
      from += at * block.source_strides[d];
    }
    copy_bytes(__builtin_assume_aligned(to, aligned), __builtin_assume_aligned(from, aligned), width);
  }
}

/// For lanes that run one after the other: the slowest dimension in as many parts as there are lanes.
template <int width>
TRANSHIP_SHARED inline void copy_strided_in_rows(int lane, int lanes, CopyBlock block, unsigned char* target,
                                                 const unsigned char* source) {
  if (block.dims == 0) {
    if (lane == 0) move_block<CopyElement<width>>(block, source, target);
    return;
  }
  const long long each = block.extents[0] / lanes, more = block.extents[0] % lanes;
  const long long lower = lane * each + (lane < more ? lane : more);
  block.extents[0] = each + (lane < more ? 1 : 0);
  move_block<CopyElement<width>>(block, source + lower * block.source_strides[0],
                                 target + lower * block.target_strides[0]);
}

}  // namespace detail
}  // namespace tranship
