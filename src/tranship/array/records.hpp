// Detail: Elements that are no numbers: any trivially copyable type, moved as bytes. To plans and exchanges such an
// array has one more dimension, the inside of an element, in units that are aligned as the element is.
#pragma once

#include <memory>

#include <tranship/layout/distribution.hpp>

namespace tranship {

struct RecordSize {
  std::size_t bytes = 0;
  std::size_t alignment = 1;

  ElementType unit() const noexcept;
  /// Units in an element.
  Index units() const noexcept { return Index(bytes) / size_bytes(unit()); }
};

/// The layout with the inside of an element as its last, fastest dimension. Throws `unsupported` for memory layouts
/// with `align`, or with complex numbers in planes.
ArraySpec spec_of_records(const Distribution& distribution, RecordSize size);
/// The view of a rank's part with that dimension, whose own `extents` and `strides` count elements.
StridedView view_of_records(const ArraySpec& spec, Rank rank, void* data, const Indices& extents,
                            const Indices& strides);

/// What Array<T> keeps to show elements where exchanges see units.
struct RecordShape {
  std::shared_ptr<const Distribution> distribution = nullptr;
  Indices extents = {};
  Indices strides = {};  ///< in elements
};
RecordShape shape_of_records(const Distribution& distribution, const StridedView& view, RecordSize size);

}  // namespace tranship
