// HaloExchange: fills the overlap of one or several arrays, in one message per pair of ranks.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/plan/halo.hpp>

namespace tranship {

enum class HaloDirection : std::uint8_t {
  update,   ///< ghosts become copies of their owners' cells
  adjoint,  ///< ghosts are added to their owners' cells, and become zero
};

/// A field on a tiling: on every rank one array per tile (empty where the rank holds none of it), and its tile
/// dimensions.
struct TiledArray {
  std::vector<ArrayRef> tiles;
  std::vector<int> tile_dims;
};

class HaloExchange : public ArrayExchange {
 public:
  /// Collective over the world of the arrays, which must be one. The arrays may differ in type and layout. Throws as
  /// plan_halo and Exchange do.
  explicit HaloExchange(const std::vector<ArrayRef>& arrays, const HaloOptions& halo = {},
                        HaloDirection direction = HaloDirection::update, ExchangeOptions options = {});
  /// On a tiling.
  HaloExchange(const Tiling& tiling, const std::vector<TiledArray>& fields, const TiledHaloOptions& halo = {},
               HaloDirection direction = HaloDirection::update, ExchangeOptions options = {});
};

}  // namespace tranship
