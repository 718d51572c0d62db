// Detail: check_halo: whether halos on a tiling of one's own come from where they should.
#pragma once

#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/layout/distribution.hpp>
#include <tranship/layout/tiling.hpp>

namespace tranship {

/// What check_halo has found on one rank.
struct HaloCheck {
  Index ghosts = 0;         ///< that have an owner, and were compared with it
  Index untouched = 0;      ///< that have none, such as a cube's corners, and were left alone
  Index wrong = 0;          ///< of the rank's stored cells, its own included
  std::string first_wrong;  ///< where it is, what it holds and what it should hold; empty without one
};

/// Lays one field of 64-bit integers out on the tiles as `tiles` say (one for each tile, as those of a HaloExchange),
/// gives every cell a number of its own and every ghost none, exchanges the halo, and compares every stored cell with
/// what the tiling says. Dimensions that are not the tiles' are compared where they lie in the array. Costs memory and
/// time for all stored cells.
///
/// Collective over the world, and waits until its timeout. Throws as the constructor of HaloExchange does.
HaloCheck check_halo(World& world, const Tiling& tiling, const std::vector<Distribution>& tiles,
                     const std::vector<int>& tile_dims, CallSite where = CallSite::here());

}  // namespace tranship
