// Private: checks of views for calls of OpenSHMEM and NVSHMEM, which take elements in one row.
#pragma once

#include <string_view>

#include <tranship/base/strided_view.hpp>
#include <tranship/collectives/collectives.hpp>

namespace tranship {

/// The views of a transfer, with equal extents or cut to the elements of the smaller one.
struct MatchedViews {
  StridedView target;
  StridedView source;
};
/// Applies NVSHMEM's "smaller size wins" to elements that lie in one row. Throws `invalid_use` when other views differ
/// in extents, and when any views differ in type.
MatchedViews matched(const StridedView& target, const StridedView& source);

/// Returns the elements of a view for collectives. Throws `invalid_use` unless they lie side by side.
SymmetricSpan span_of(const StridedView& view, std::string_view what);

}  // namespace tranship
