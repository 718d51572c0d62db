// Private: Ranks on a tiling: every tile is cut by the same grid of ranks, and ranks are numbered tile by tile,
// row-major within a tile. To its ranks a tiling is a smaller tiling, whose cells are the ranks, so that neighbours
// need no rule of their own.
#pragma once

#include <tranship/layout/tiling.hpp>

namespace tranship {

/// A neighbouring rank, and the map from this rank's frame to its own, in rank coordinates; its turns and signs
/// (clockwise_rotations, vector_component) are those of the data.
struct RankNeighbor {
  Rank rank = -1;
  IndexMap map;
};

class TileRanks {
 public:
  /// Throws `invalid_use` where the cuts of two joined sides do not meet: a cubed sphere needs a square grid.
  TileRanks(const Tiling& tiling, const Indices& grid);

  const Indices& grid() const noexcept { return mesh_.extents(0); }
  /// Ranks on all tiles together.
  Rank count() const noexcept { return mesh_.tiles() * ranks_per_tile_; }
  int tile_of(Rank rank) const;
  Indices coordinate_of(Rank rank) const;
  Rank rank_at(int tile, const Indices& coordinate) const;

  /// The rank one step away in each dimension with a nonzero entry (-1, 0 or 1); empty beyond an open side, and beyond
  /// a corner where orders of crossing disagree. May be the rank itself.
  std::optional<RankNeighbor> neighbor(Rank rank, const Indices& direction) const;

 private:
  Tiling mesh_;
  int ranks_per_tile_;
};

}  // namespace tranship
