// Private: Decides whether strided views share memory, exactly, element by element and not only by the ranges that they
// span. Fields of one struct are interleaved but share nothing.
#pragma once

#include <cstdint>
#include <string>

#include <tranship/base/strided_view.hpp>

namespace tranship {

/// The bytes [lower, upper) that hold the elements of a view; for a split complex view, both planes and everything
/// between them. Empty (lower == upper) for a view without elements.
struct ByteRange {
  std::uintptr_t lower = 0;
  std::uintptr_t upper = 0;
};
ByteRange range_of(const StridedView& view);
/// Returns "0x7f00 to 0x7f3f": the first byte and the last.
std::string to_string(const ByteRange& range);

/// Returns true when two elements of a view share a byte: a stride of 0, or strides that meet again. This and the
/// functions below are exact up to about a million steps. More are needed only if both views have more than two
/// dimensions whose strides are not multiples of each other; such views are taken to share memory.
bool overlaps_itself(const StridedView& view);
/// Returns true when an element of one view and an element of the other share a byte.
bool share_bytes(const StridedView& a, const StridedView& b);
/// Returns true when an element of one view and an element of the other at another index share a byte. If the views
/// differ in extents, or in the stride of a dimension with more than one element, every shared byte counts.
bool share_out_of_step(const StridedView& a, const StridedView& b);

}  // namespace tranship
