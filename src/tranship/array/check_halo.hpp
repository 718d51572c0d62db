// Detail: check_halo, which tests that halos on a user's own tiling come from the right cells.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/layout/tiling.hpp>

namespace tranship {

/// The findings of check_halo on one rank, in cells.
struct HaloCheck {
  Index ghosts = 0;         ///< ghosts that have an owner and were compared with it
  Index untouched = 0;      ///< ghosts without an owner, such as a cube's corners, which the halo left alone
  Index wrong = 0;          ///< wrong stored cells of the rank, owned ones included
  std::string first_wrong;  ///< place, value and expected value of the first wrong cell; empty if there is none
};

/// Lays one field of 64-bit integers out on the tiles as `tiles` say (one distribution per tile, as in a HaloExchange),
/// gives every cell a number of its own and no number to the ghosts, exchanges the halo, and compares every stored cell
/// with the tiling. Dimensions beyond those of the tiles are compared at their place in the array. Costs memory and
/// time in proportion to the stored cells.
///
/// Collective over the world; waits until its timeout. Throws what the constructor of HaloExchange throws.
HaloCheck check_halo(World& world, const Tiling& tiling, const std::vector<Distribution>& tiles,
                     const std::vector<int>& tile_dims, CallSite where = CallSite::here());

}  // namespace tranship
