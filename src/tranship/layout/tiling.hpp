// Detail: Tiling, a surface of boxes of cells (tiles) joined by edges. An edge is an index map: coordinates of one
// tile, continued beyond its side, become coordinates of the tile on the other side. Rotations, mirrored edges, folds
// and the signs of vector components all follow from that map; no topology is a special case.
//
// Invariant: every joined side has a mate, and the maps of the two sides are inverse to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/index_map.hpp>

namespace tranship {

/// The end of a dimension of a box.
enum class Side : std::uint8_t { low, high };

constexpr Side opposite(Side side) noexcept {
  return side == Side::low ? Side::high : Side::low;
}
constexpr const char* name_of(Side side) noexcept {
  return side == Side::low ? "low" : "high";
}

struct TileSide {
  int tile = 0;
  int dim = 0;
  Side side = Side::low;
  friend bool operator==(const TileSide&, const TileSide&) = default;
};

/// Joins two sides, or a side to itself (a fold). One edge gives the maps of both directions.
///
/// The dimensions of `from`'s tile other than `from.dim`, in increasing order, run along the edge. For each of them,
/// `along_dims` says which dimension of `to`'s tile runs with it, and `along_signs` in which direction (+1 or -1). If
/// empty, the dimensions pair up in increasing order, all in the same direction.
struct TileEdge {
  TileSide from;
  TileSide to;
  Indices along_dims = {};
  Indices along_signs = {};
};

/// The tile beyond a side, and the map from the coordinates of the tile on this side to its coordinates.
struct TileNeighbor {
  int tile = 0;
  IndexMap map;
  friend bool operator==(const TileNeighbor&, const TileNeighbor&) = default;
};

/// A box of cells in the coordinates of some tile, the tile that owns these cells, and the map to the owner's
/// coordinates.
struct TileImage {
  int tile = 0;
  IndexMap map;
  Box region;
};

/// A cell in its owner's coordinates, and the map to them.
struct TileCell {
  int tile = 0;
  Indices cell;
  IndexMap map;
};

class Tiling {
 public:
  /// Takes tiles of the given extents (1 to 3 dimensions, the same number for all; every extent at least 1). Throws
  /// `invalid_use` for sides that do not exist or are joined twice, for extents that differ along an edge, and for a
  /// side joined to itself by a map that is not its own inverse. Throws `overflow` for an extent above 2^59.
  Tiling(std::vector<Indices> tile_extents, std::vector<TileEdge> edges);

  int dims() const noexcept { return tile_extents_[0].size(); }
  int tiles() const noexcept { return static_cast<int>(tile_extents_.size()); }
  const Indices& extents(int tile) const;
  const std::vector<TileEdge>& edges() const noexcept { return edges_; }

  /// Returns the tile beyond a side, or nothing if the side is not joined.
  std::optional<TileNeighbor> neighbor(int tile, int dim, Side side) const;

  /// Returns the tile itself, then the cells around it up to the margins, as disjoint boxes. Margins count cells, one
  /// per dimension, 0 or more; they may exceed a tile. Throws `invalid_use` for a negative margin and `overflow` for
  /// one above 2^59.
  ///
  /// Beyond one side, a cell is where its edge leads. A cell outside in several dimensions can be reached by crossing
  /// sides in several orders. Orders that meet a side that is not joined do not count. The cell has an image if at
  /// least one order remains and all that remain arrive at the same cell of the same tile by the same map:
  /// - on a doubly periodic tile all orders agree, and corners are like any other cell;
  /// - beyond the corner of a cube, where three tiles meet, they disagree: no image;
  /// - where x is periodic and y open, no order arrives beyond y: no image;
  /// - around the inner corner of an L of three tiles one order arrives, and gives the image.
  ///
  /// Time grows with the square of the number of tiles that the margins reach, not with the extents of the tiles.
  std::vector<TileImage> images(int tile, const Indices& margins_low, const Indices& margins_high) const;

  /// Returns the owner of one cell, given in the coordinates of `tile`, inside or outside of it; follows the rule of
  /// images().
  std::optional<TileCell> locate(int tile, const Indices& cell) const;

  /// Returns the same tiles and edges with other extents, for a coarser or finer mesh or a mesh of ranks.
  Tiling with_extents(std::vector<Indices> tile_extents) const { return Tiling(std::move(tile_extents), edges_); }

  /// Tilings are equal if extents and neighbours are; the order of the edges does not matter.
  friend bool operator==(const Tiling& a, const Tiling& b) {
    return a.tile_extents_ == b.tile_extents_ && a.neighbors_ == b.neighbors_;
  }

 private:
  void join(const TileEdge& edge);
  void require_side(const TileSide& side) const;
  std::size_t slot(const TileSide& side) const noexcept;

  std::vector<Indices> tile_extents_;
  std::vector<TileEdge> edges_;
  std::vector<std::optional<TileNeighbor>> neighbors_;  // by tile, dimension, side
};

/// One tile that is periodic in the given dimensions.
Tiling periodic(const Indices& extents, const Indices& periodic_dims);
/// One tile of ny by nx cells, dimensions (y, x), periodic in both.
Tiling doubly_periodic(Index ny, Index nx);
/// Six tiles of n by n cells, dimensions (y, x), joined as NDSL and GFDL's FV3 join the faces of a cube.
Tiling cubed_sphere(Index n);
/// One tile of ny by nx cells, dimensions (y, x): periodic in x, open at the low end of y, and folded at its high end,
/// like tripolar ocean grids: cell (ny, i) is cell (ny-1, nx-1-i). The fold lies on the upper interfaces of the last
/// row (NEMO's F-point pivot).
Tiling folded(Index ny, Index nx);

/// The component of a vector at the owner that gives a component at this end, and its sign (+1 or -1).
struct VectorComponent {
  int component = 0;
  int sign = 1;
  friend bool operator==(const VectorComponent&, const VectorComponent&) = default;
};
/// Returns the source of component d of a vector that is needed in the domain of `map` and read in its image: v[d] =
/// sign * owner's v[component].
VectorComponent vector_component(const IndexMap& map, int d);

/// Returns the quarter turns of a map in two dimensions (y, x), 0 to 3, counted like NDSL's n_clockwise_rotations, or
/// nothing for a map that mirrors. One turn takes x to the owner's y, and y to its x reversed.
std::optional<int> clockwise_rotations(const IndexMap& map);
/// Returns the map that turns around the origin by this many quarters, positive or negative: its clockwise_rotations
/// are `rotations` modulo 4.
IndexMap clockwise_turn(int rotations);

}  // namespace tranship
