// Private: Ranks on a tiling. The same grid of ranks cuts every tile, and ranks are numbered tile by tile, row-major
// within a tile. The ranks themselves form a smaller tiling whose cells are ranks, so that neighbours follow from its
// edges.
#pragma once

#include <tranship/layout/tiling.hpp>

namespace tranship {

/// A neighbouring rank, and the map from this rank's frame to the neighbour's, in rank coordinates. Its turns and signs
/// (clockwise_rotations, vector_component) also hold for the data.
struct RankNeighbor {
  Rank rank = -1;
  IndexMap map;
};

class TileRanks {
 public:
  /// Throws `invalid_use` when the cuts of two joined sides do not meet: a cubed sphere needs a square grid.
  TileRanks(const Tiling& tiling, const Indices& grid);

  const Indices& grid() const noexcept { return mesh_.extents(0); }
  /// Returns the number of ranks on all tiles together.
  Rank count() const noexcept { return mesh_.tiles() * ranks_per_tile_; }
  int tile_of(Rank rank) const;
  Indices coordinate_of(Rank rank) const;
  Rank rank_at(int tile, const Indices& coordinate) const;

  /// Returns the rank one step away in each dimension with a nonzero entry (-1, 0 or 1). Returns nothing beyond an open
  /// side, and beyond a corner where the orders of crossing disagree. The result may be the rank itself.
  std::optional<RankNeighbor> neighbor(Rank rank, const Indices& direction) const;

 private:
  Tiling mesh_;
  int ranks_per_tile_;
};

}  // namespace tranship
