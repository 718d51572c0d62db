#include "tranship/layout/tile_ranks.hpp"

#include <climits>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

int checked_ranks_per_tile(const Tiling& mesh) {
  const Index per_tile = checked_product(mesh.extents(0));
  if (per_tile > INT_MAX / mesh.tiles())
    throw_error(ErrorCode::overflow, "{} of {} each need more ranks than can exist: {}", amount(mesh.tiles(), "tile"),
                amount(per_tile, "rank"), INT_MAX);
  return static_cast<int>(per_tile);
}

}  // namespace

TileRanks::TileRanks(const Tiling& tiling, const Indices& grid)
    : mesh_(tiling.with_extents(std::vector<Indices>(static_cast<std::size_t>(tiling.tiles()), grid))),
      ranks_per_tile_(checked_ranks_per_tile(mesh_)) {}

int TileRanks::tile_of(Rank rank) const {
  if (rank < 0 || rank >= count())
    throw_error(ErrorCode::invalid_use, "rank {} does not exist: there are {}", rank, count());
  return rank / ranks_per_tile_;
}

Indices TileRanks::coordinate_of(Rank rank) const {
  Indices out = grid();
  Index rest = rank - tile_of(rank) * ranks_per_tile_;
  for (int d = out.size() - 1; d >= 0; --d) {
    out[d] = rest % grid()[d];
    rest /= grid()[d];
  }
  return out;
}

Rank TileRanks::rank_at(int tile, const Indices& coordinate) const {
  if (coordinate.size() != mesh_.dims() || !Box::of_extents(mesh_.extents(tile)).contains(coordinate))
    throw_error(ErrorCode::invalid_use, "rank coordinate {} lies outside the grid {}", to_string(coordinate),
                to_string(grid()));
  Index within = 0;
  for (int d = 0; d < mesh_.dims(); ++d) within = within * grid()[d] + coordinate[d];
  return tile * ranks_per_tile_ + static_cast<int>(within);
}

std::optional<RankNeighbor> TileRanks::neighbor(Rank rank, const Indices& direction) const {
  Indices at = coordinate_of(rank);
  if (direction.size() != at.size())
    throw_error(ErrorCode::invalid_use, "the direction has {}, but the grid has {}",
                amount(direction.size(), "entry", "entries"), amount(at.size(), "dimension"));
  for (int d = 0; d < at.size(); ++d) {
    if (direction[d] < -1 || direction[d] > 1)
      throw_error(ErrorCode::invalid_use, "direction {} of dimension {} is none of -1, 0, 1", direction[d], d);
    at[d] += direction[d];
  }
  const std::optional<TileCell> found = mesh_.locate(tile_of(rank), at);
  if (!found) return std::nullopt;
  return RankNeighbor{rank_at(found->tile, found->cell), found->map};
}

}  // namespace tranship
