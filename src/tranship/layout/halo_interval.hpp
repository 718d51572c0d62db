// Private: What two neighbours exchange along one dimension, seen from the one that owns [lower, upper).
//
//      receive low | send low |        ...        | send high | receive high
//                  ^ lower                                upper ^
//
// Points at interfaces that both neighbours own are never exchanged: a send starts one further inside.
#pragma once

#include <tranship/base/box.hpp>
#include <tranship/layout/partition.hpp>
#include <tranship/layout/tiling.hpp>

namespace tranship {

/// The owned points that the neighbour at `side` receives. Throws `invalid_use` when `owned` has fewer than `width`
/// points to give, for that neighbour would get points that no part here owns.
Interval send_interval(Interval owned, Index width, Side side, Points points);
/// Where the points of the neighbour at `side` go.
Interval receive_interval(Interval owned, Index width, Side side);

/// The interfaces that belong to a band of cells around a tile of `extent` cells: the tile keeps both of its end
/// interfaces, so that a band above it holds the upper interface of each of its cells, a band below it the lower one.
/// Applies to each dimension of the regions that Tiling::images gives; maps of that region send interfaces to
/// interfaces.
constexpr Interval interfaces_of(Interval band, Index extent) noexcept {
  return {band.lower + (band.lower >= extent), band.upper + (band.upper >= extent)};
}

}  // namespace tranship
