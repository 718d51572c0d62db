// Detail: StridedSpan, an N-d array in memory as a value for kernels, and copies of such arrays by the lanes of a
// group. base/strided_view.hpp is its untyped counterpart on the host.
#pragma once

#include <tranship/kernels/copy_block.hpp>
#include <tranship/kernels/shared.hpp>
#include <tranship/kernels/strided_copy.hpp>
#include <tranship/lanes/contiguous.hpp>

namespace tranship {

/// Element (i0, i1, ...) lies at data + i0*strides[0] + i1*strides[1] + ...; strides count elements and may be negative
/// or zero. A span without dimensions is one element.
template <class T>
struct StridedSpan {
  /// One less than arrays have: elements that are not numbers need the last dimension for their bytes.
  static constexpr int dims_max = 7;

  T* data = nullptr;
  int dims = 0;
  long long extents[dims_max] = {};
  long long strides[dims_max] = {};

  /// Converts to a span of constant elements.
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

/// The offset of an array's first byte from its base, and the number of bytes to the end of its last; -1 if the number
/// of dimensions or an extent is impossible, or if there are more than `bytes_max`.
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

/// Returns the same elements with strides of 0 where a stride is not used and may be any number. If the span is empty,
/// all extents become 0.
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

/// Returns a hash of the shape.
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

/// Elements without a width of their own are moved as rows of bytes.
template <class T>
inline constexpr int strided_width = sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8 ||
                                             sizeof(T) == 16
                                         ? sizeof(T)
                                         : 1;

/// Not inlined, so that a kernel with many transfers has one copy.
__attribute__((noinline)) TRANSHIP_SHARED inline void canonicalise_once(CopyBlock& block, int width) {
  canonicalise(block, width);
}

/// Returns the block of two arrays with equal extents, whose bytes fit in 63 bits.
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

// These copy the share of one lane when all lanes copy a block that is not empty.

/// Elements for lanes that run side by side: a CopyBlock with as many dimensions as a StridedSpan has, and one for the
/// units of an element or a row. It is small and starts uninitialised, because each lane has one in its own memory.
struct StridedBlock {
  static constexpr int dims_max = 8;

  int dims;
  long long extents[dims_max];
  long long source_strides[dims_max];  ///< in bytes
  long long target_strides[dims_max];

  TRANSHIP_SHARED long long count() const {
    long long count = 1;
    for (int d = 0; d < dims; ++d) count *= extents[d];
    return count;
  }
};

/// Inserts a dimension so that target strides decrease.
__attribute__((noinline)) TRANSHIP_SHARED inline void add_dimension(StridedBlock& block, long long extent,
                                                                    long long source_stride, long long target_stride) {
  int at = block.dims++;
  TRANSHIP_UNROLL_BY(1)
  for (; at > 0 && magnitude(block.target_strides[at - 1]) < magnitude(target_stride); --at) {
    block.extents[at] = block.extents[at - 1];
    block.source_strides[at] = block.source_strides[at - 1];
    block.target_strides[at] = block.target_strides[at - 1];
  }
  block.extents[at] = extent;
  block.source_strides[at] = source_stride;
  block.target_strides[at] = target_stride;
}
/// Joins dimensions that continue each other on both sides.
__attribute__((noinline)) TRANSHIP_SHARED inline void join_dimensions(StridedBlock& block) {
  int out = 0;
  TRANSHIP_UNROLL_BY(1)
  for (int d = 0; d < block.dims; ++d) {
    const bool is_next = out > 0 && block.source_strides[out - 1] == block.source_strides[d] * block.extents[d] &&
                         block.target_strides[out - 1] == block.target_strides[d] * block.extents[d];
    const int at = is_next ? out - 1 : out++;
    block.extents[at] = is_next ? block.extents[at] * block.extents[d] : block.extents[d];
    block.source_strides[at] = block.source_strides[d];
    block.target_strides[at] = block.target_strides[d];
  }
  block.dims = out;
}
/// Returns the elements of two arrays with equal extents in an order that suits the target. The elements of a target
/// are distinct, so any order gives the same result. A block without dimensions is one element; an empty block has an
/// extent of 0.
template <class T>
TRANSHIP_SHARED inline StridedBlock strided_block_of(const StridedSpan<T>& target, const StridedSpan<const T>& source) {
  constexpr auto width = static_cast<long long>(sizeof(T));
  StridedBlock block;
  block.dims = 0;
  bool is_empty = false;
  TRANSHIP_UNROLL_BY(1)
  for (int d = 0; d < target.dims; ++d) is_empty |= target.extents[d] == 0;
  TRANSHIP_UNROLL_BY(1)
  for (int d = 0; d < target.dims; ++d)
    // An unused stride may be any number.
    if (is_empty)
      add_dimension(block, 0, 0, 0);
    else if (target.extents[d] != 1)
      add_dimension(block, target.extents[d], source.strides[d] * width, target.strides[d] * width);
  join_dimensions(block);
  return block;
}

/// Cuts the rows of a block into the widest units, of at most 16 bytes, that are aligned on both sides, and returns
/// their width. If elements along the last dimension are not contiguous, each element is a row.
TRANSHIP_SHARED inline int cut_into_units(StridedBlock& block, int width, const void* target, const void* source) {
  long long row_bytes = width;
  const int last = block.dims - 1;
  if (last >= 0 && block.source_strides[last] == width && block.target_strides[last] == width)
    row_bytes *= block.extents[block.dims = last];
  unsigned long long places = 16 | static_cast<unsigned long long>(row_bytes) |
                              reinterpret_cast<unsigned long long>(target) |
                              reinterpret_cast<unsigned long long>(source);
  for (int d = 0; d < block.dims; ++d)
    places |= static_cast<unsigned long long>(block.source_strides[d] | block.target_strides[d]);
  const auto unit = static_cast<int>(places & (0 - places));
  if (row_bytes > unit) {
    const int d = block.dims++;
    block.extents[d] = row_bytes / unit;
    block.source_strides[d] = block.target_strides[d] = unit;
  }
  return unit;
}

/// Copies units in the order of the target, so that neighbouring lanes write adjacent memory, and several units at a
/// time. Index must hold twice their count: a device divides 64-bit numbers five times as slowly as 32-bit ones.
template <int width, class Index>
TRANSHIP_SHARED inline void copy_units_indexed(Index lane, Index lanes, Index count, const StridedBlock& block,
                                               unsigned char* target, const unsigned char* source) {
  constexpr int ahead = 4;
  for (Index first = lane; first < count; first += ahead * lanes) {
    CopiedWord<width> words[ahead];
    unsigned char* to[ahead];
    TRANSHIP_UNROLL
    for (int k = 0; k < ahead; ++k) {
      const Index i = first + static_cast<Index>(k) * lanes;
      if (i >= count) continue;
      to[k] = target;
      const unsigned char* from = source;
      Index rest = i;
      TRANSHIP_UNROLL_BY(1)
      for (int d = block.dims - 1; d >= 0; --d) {
        const auto extent = static_cast<Index>(block.extents[d]);
        const auto at = static_cast<long long>(rest % extent);
        rest /= extent;
        to[k] += at * block.target_strides[d];
        from += at * block.source_strides[d];
      }
      words[k] = load_copied<width>(from);
    }
    TRANSHIP_UNROLL
    for (int k = 0; k < ahead; ++k)
      if (first + static_cast<Index>(k) * lanes < count) store_copied<width>(to[k], words[k]);
  }
}
/// Not inlined, so that a kernel with many transfers has one copy.
template <int width>
__attribute__((noinline)) TRANSHIP_SHARED inline void copy_units(int lane, int lanes, const StridedBlock& block,
                                                                 unsigned char* target, const unsigned char* source) {
  const auto count = static_cast<unsigned long long>(block.count());
  if (count >> 31)
    copy_units_indexed<width>(static_cast<unsigned long long>(lane), static_cast<unsigned long long>(lanes), count,
                              block, target, source);
  else
    copy_units_indexed<width>(static_cast<unsigned>(lane), static_cast<unsigned>(lanes), static_cast<unsigned>(count),
                              block, target, source);
}

/// For lanes that run side by side. Changes `block`, whose elements have `width` bytes.
TRANSHIP_SHARED inline void copy_strided_interleaved(int lane, int lanes, StridedBlock& block, int width,
                                                     unsigned char* target, const unsigned char* source) {
  switch (cut_into_units(block, width, target, source)) {
    case 1:
      return copy_units<1>(lane, lanes, block, target, source);
    case 2:
      return copy_units<2>(lane, lanes, block, target, source);
    case 4:
      return copy_units<4>(lane, lanes, block, target, source);
    case 8:
      return copy_units<8>(lane, lanes, block, target, source);
    default:
      return copy_units<16>(lane, lanes, block, target, source);
  }
}

/// For lanes that run one after the other: cuts the slowest dimension into one part per lane.
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
