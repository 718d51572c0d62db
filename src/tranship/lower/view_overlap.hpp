// Private: Whether strided views share memory: exactly, element by element, not only by the ranges that they span.
// Fields of one struct lie interleaved, and share nothing.
#pragma once

#include <cstdint>
#include <string>

#include <tranship/base/strided_view.hpp>

namespace tranship {

/// The bytes [lower, upper) that hold the elements of a view; of split complex views, of both planes and what lies
/// between them. Equal for a view without elements.
struct ByteRange {
  std::uintptr_t lower = 0;
  std::uintptr_t upper = 0;
};
ByteRange range_of(const StridedView& view);
/// "0x7f00 to 0x7f3f": the first byte and the last.
std::string to_string(const ByteRange& range);

/// Returns true when two elements of a view share a byte: a stride of 0, or strides that meet again. This and the
/// functions below are exact up to about a million steps, which only strides of more than two dimensions in both views
/// that are no multiples of each other take; what would need more is taken to share.
bool overlaps_itself(const StridedView& view);
/// Returns true when an element of one view and an element of the other share a byte.
bool share_bytes(const StridedView& a, const StridedView& b);
/// Returns true when an element of one view and an element of the other at another index share a byte. Views that
/// differ in extents, or in the strides of a dimension of more than one element, are not in step: for them every shared
/// byte counts.
bool share_out_of_step(const StridedView& a, const StridedView& b);

}  // namespace tranship
