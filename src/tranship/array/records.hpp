// Detail: Records, elements of any trivially copyable type that are moved as bytes. To plans and exchanges, an array of
// records has one more dimension, the inside of an element, counted in units that have the element's alignment.
#pragma once

#include <memory>

#include <tranship/layout/distribution.hpp>

namespace tranship {

struct RecordSize {
  std::size_t bytes = 0;
  std::size_t alignment = 1;

  ElementType unit() const noexcept;
  /// Returns the number of units in an element.
  Index units() const noexcept { return Index(bytes) / size_bytes(unit()); }
};

/// Returns the layout with the inside of an element as its last, fastest dimension. Throws `unsupported` for memory
/// layouts with `align` and for complex numbers in planes.
ArraySpec spec_of_records(const Distribution& distribution, RecordSize size);
/// Returns the view of a rank's part with that dimension. The arguments `extents` and `strides` count elements.
StridedView view_of_records(const ArraySpec& spec, Rank rank, void* data, const Indices& extents,
                            const Indices& strides);

/// The shape that Array<T> shows in elements while exchanges count units.
struct RecordShape {
  std::shared_ptr<const Distribution> distribution = nullptr;
  Indices extents = {};
  Indices strides = {};  ///< in elements
};
RecordShape shape_of_records(const Distribution& distribution, const StridedView& view, RecordSize size);

}  // namespace tranship
