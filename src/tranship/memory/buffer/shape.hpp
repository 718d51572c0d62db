// Private: BufferShape, the properties of a buffer that never change, and the offsets of its elements in every copy.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <tranship/memory/buffer.hpp>

namespace tranship::detail {

struct BufferShape {
  BufferShape(ElementType element_type, const Indices& shape, const Indices& steps, const BufferOptions& given);

  Devices& devices;
  const std::uint64_t number;  ///< unique in the process
  const ElementType type;
  const Indices extents;
  const Indices strides;
  const Index size_bytes;    ///< of the elements, without gaps
  const Index lowest_bytes;  ///< offset of the lowest byte from the first element: 0 or negative
  const Index span_bytes;    ///< from the lowest byte to the end of the highest element
  const Region whole;
  const BufferOptions options;

  int element_bytes() const { return tranship::size_bytes(type); }
  /// Bytes that a stream moves at once: one element, or 16 bytes of a wider one.
  int width() const { return std::min(element_bytes(), 16); }
  Index offset_bytes(const Box& box) const;
  std::int64_t bytes_of(const Region& region) const { return region.count() * element_bytes(); }
  /// Calls f(byte offset, element count) for each run of consecutive elements of a box. Where the last dimension is
  /// contiguous, a run is a row.
  template <class F>
  void for_each_row(const Box& box, F&& f) const {
    Indices rows = box.extents();
    const int last = box.dims() - 1;
    Index count = 1;
    if (last >= 0 && strides[last] == 1) std::swap(count, rows[last]);
    const Index base = offset_bytes(box);
    for_each_coordinate(rows, [&](const Indices& at) {
      Index offset = 0;
      for (int d = 0; d < box.dims(); ++d) offset += at[d] * strides[d];
      f(base + offset * element_bytes(), count);
    });
  }
};

}  // namespace tranship::detail
