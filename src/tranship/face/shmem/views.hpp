// Private: views as OpenSHMEM and NVSHMEM take them, whose elements lie in one row.
#pragma once

#include <string_view>

#include <tranship/base/strided_view.hpp>
#include <tranship/collectives/collectives.hpp>

namespace tranship {

/// Views of a transfer: equal extents, or as many elements as the smaller one has.
struct MatchedViews {
  StridedView target;
  StridedView source;
};
/// NVSHMEM's "smaller size wins" for elements that lie in one row; otherwise extents must be equal, and types always.
/// Throws `invalid_use`.
MatchedViews matched(const StridedView& target, const StridedView& source);

/// The elements of a view as collectives take them: throws `invalid_use` where they do not lie side by side.
SymmetricSpan span_of(const StridedView& view, std::string_view what);

}  // namespace tranship
