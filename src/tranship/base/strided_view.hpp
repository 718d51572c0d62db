// Detail: StridedView, where an N-d array lies in memory. Typed interfaces convert to it at once.
#pragma once

#include <tranship/base/device.hpp>
#include <tranship/base/element_type.hpp>
#include <tranship/base/index.hpp>

namespace tranship {

/// A view of memory that it does not own: element (i0, i1, ...) lies at data + (i0*strides[0] + i1*strides[1] + ...)
/// elements. Strides count elements and may be negative or zero. In a split complex array, `data` points to the real
/// parts and `imaginary` to the imaginary parts, and strides count parts.
struct StridedView {
  void* data = nullptr;
  ElementType type = ElementType::u8;
  Indices extents;
  Indices strides;
  void* imaginary = nullptr;
  /// The device that owns the memory; `data` is an address there.
  Device device = {};

  int dims() const noexcept { return extents.size(); }
};

/// Returns the strides, in elements, of a dense array with the last dimension fastest. Throws `overflow`.
Indices row_major_strides(const Indices& extents);
/// Returns the strides of a dense array; `order` lists the dimensions from slowest to fastest. Throws `overflow`.
Indices dense_strides(const Indices& extents, const Indices& order);

}  // namespace tranship
