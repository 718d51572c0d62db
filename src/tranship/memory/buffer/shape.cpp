#include "tranship/memory/buffer/shape.hpp"

#include <atomic>

#include <tranship/base/fail.hpp>

namespace tranship::detail {
namespace {

/// The lowest and highest element of a view, in elements relative to its first one; [0, -1] for an empty view.
Interval reach_of(const Indices& extents, const Indices& strides) {
  Interval out{0, 0};
  for (int d = 0; d < extents.size(); ++d) {
    if (extents[d] == 0) return {0, -1};
    const Index way = checked_multiply(extents[d] - 1, strides[d]);
    (way < 0 ? out.lower : out.upper) += way;
  }
  return out;
}

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

BufferShape::BufferShape(ElementType element_type, const Indices& shape, const Indices& steps,
                         const BufferOptions& given)
    : devices(given.devices ? *given.devices : Devices::standard()),
      number(next_number()),
      type(element_type),
      extents(shape),
      strides(steps),
      size_bytes(checked_multiply(checked_product(shape), tranship::size_bytes(element_type))),
      lowest_bytes(reach_of(shape, steps).lower * tranship::size_bytes(element_type)),
      span_bytes((reach_of(shape, steps).upper + 1) * tranship::size_bytes(element_type) - lowest_bytes),
      whole(Region::whole(shape)),
      options(given) {}

Index BufferShape::offset_bytes(const Box& box) const {
  Index offset = 0;
  for (int d = 0; d < box.dims(); ++d) offset += box.lower[d] * strides[d];
  return offset * element_bytes();
}

}  // namespace tranship::detail
