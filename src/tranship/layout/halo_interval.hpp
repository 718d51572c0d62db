// Private: The cells that two neighbours exchange along one dimension, seen from the one that owns [lower, upper).
//
//      receive low | send low |        ...        | send high | receive high
//                  ^ lower                                upper ^
//
// Interfaces that both neighbours own are never exchanged: a send starts one interface further inside.
#pragma once

#include <tranship/base/box.hpp>
#include <tranship/layout/partition.hpp>
#include <tranship/layout/tiling.hpp>

namespace tranship {

/// Returns the owned points that the neighbour at `side` receives. Throws `invalid_use` when `owned` has fewer than
/// `width` points to give: the neighbour would receive points that this part does not own.
Interval send_interval(Interval owned, Index width, Side side, Points points);
/// Returns the interval that receives the points of the neighbour at `side`.
Interval receive_interval(Interval owned, Index width, Side side);

/// Returns the interfaces that belong to a band of cells around a tile of `extent` cells. The tile keeps both of its
/// end interfaces, so a band above it holds the upper interface of each of its cells, and a band below it the lower
/// one. Use it for each dimension of the regions that Tiling::images returns; their maps send interfaces to interfaces.
constexpr Interval interfaces_of(Interval band, Index extent) noexcept {
  return {band.lower + (band.lower >= extent), band.upper + (band.upper >= extent)};
}

}  // namespace tranship
