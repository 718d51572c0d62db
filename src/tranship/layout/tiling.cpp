#include "tranship/layout/tiling.hpp"

#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

constexpr int tile_dims_max = 3;
// Largest extent and margin. Places beyond a tile are counted across several neighbours, which takes more room than one
// array; the doubled coordinates of the maps between them still fit in 63 bits.
constexpr Index tile_extent_max = Index{1} << 59;

std::string to_string(const TileSide& side) {
  return fmt::format("tile {}, dimension {} {}", side.tile, side.dim, name_of(side.side));
}

/// Returns the cells that `map` sends into a tile of `extents`.
Box preimage(const IndexMap& map, const Indices& extents) {
  Box out;
  for (int d = 0; d < map.dims(); ++d) {
    const Index offset = map.offset_doubled(d) / 2;
    const Index extent = extents[map.image_dim(d)];
    out.lower.push_back(map.sign(d) > 0 ? -offset : offset - extent);
    out.upper.push_back(out.lower[d] + extent);
  }
  return out;
}

/// A tile that some order of crossings reaches; `region` is its whole box in the coordinates of the starting tile.
struct Arrival {
  int tile;
  IndexMap map;
  Box region;
};

/// Returns all tiles that some order of crossings reaches within `window`: the start first, each pair (tile, map) once.
std::vector<Arrival> arrivals(const Tiling& tiling, int start, const Box& window) {
  const Box home = Box::of_extents(tiling.extents(start));
  std::vector<Arrival> out{{start, IndexMap::identity(tiling.dims()), home}};
  const auto cross = [&](const Arrival& from, int d, Side side) {
    // A region that lies outside in d is only crossed further outward. A crossing changes nothing in the other
    // dimensions, so the sides of a region are those of `home` or lie beyond it.
    const Interval span = from.region[d];
    if (side == Side::high && (span.upper <= home.lower[d] || span.upper >= window.upper[d])) return;
    if (side == Side::low && (span.lower >= home.upper[d] || span.lower <= window.lower[d])) return;
    const Side actual = from.map.sign(d) > 0 ? side : opposite(side);
    const std::optional<TileNeighbor> next = tiling.neighbor(from.tile, from.map.image_dim(d), actual);
    if (!next) return;
    const IndexMap map = from.map.followed_by(next->map);
    for (const Arrival& known : out)
      if (known.tile == next->tile && known.map == map) return;
    out.push_back({next->tile, map, preimage(map, tiling.extents(next->tile))});
  };
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Arrival from = out[i];  // a copy: `out` grows
    for (int d = 0; d < tiling.dims(); ++d) {
      cross(from, d, Side::low);
      cross(from, d, Side::high);
    }
  }
  return out;
}

/// Returns the part of `box` that lies outside all arrivals except number `self`.
std::vector<Box> claimed_by_one(const Box& box, const std::vector<Arrival>& all, std::size_t self) {
  std::vector<Box> rest{box};
  for (std::size_t i = 0; i < all.size() && !rest.empty(); ++i) {
    if (i == self || intersect(box, all[i].region).empty()) continue;
    std::vector<Box> next;
    for (const Box& piece : rest) {
      const std::vector<Box> left = subtract(piece, all[i].region);
      next.insert(next.end(), left.begin(), left.end());
    }
    rest = std::move(next);
  }
  return rest;
}

}  // namespace

Tiling::Tiling(std::vector<Indices> tile_extents, std::vector<TileEdge> edges)
    : tile_extents_(std::move(tile_extents)), edges_(std::move(edges)) {
  if (tile_extents_.empty()) throw_error(ErrorCode::invalid_use, "a tiling needs at least 1 tile, has 0");
  if (dims() < 1 || dims() > tile_dims_max)
    throw_error(ErrorCode::invalid_use, "tiles have 1 to {} dimensions, not {}", tile_dims_max, dims());
  for (int tile = 0; tile < tiles(); ++tile) {
    if (extents(tile).size() != dims())
      throw_error(ErrorCode::invalid_use, "tile {} has {}, tile 0 has {}", tile,
                  amount(extents(tile).size(), "dimension"), dims());
    for (Index extent : extents(tile)) {
      if (extent < 1)
        throw_error(ErrorCode::invalid_use, "tile {} has extents {}: each must be at least 1", tile,
                    tranship::to_string(extents(tile)));
      if (extent > tile_extent_max)
        throw_error(ErrorCode::overflow, "an extent of tile {} is {}: at most {} is possible", tile, extent,
                    tile_extent_max);
    }
  }
  neighbors_.resize(static_cast<std::size_t>(tiles()) * dims() * 2);
  for (const TileEdge& edge : edges_) join(edge);
}

const Indices& Tiling::extents(int tile) const {
  if (tile < 0 || tile >= tiles())
    throw_error(ErrorCode::invalid_use, "tile {} does not exist: there are {}", tile, tiles());
  return tile_extents_[static_cast<std::size_t>(tile)];
}

void Tiling::require_side(const TileSide& side) const {
  extents(side.tile);
  if (side.dim < 0 || side.dim >= dims())
    throw_error(ErrorCode::invalid_use, "dimension {} does not exist: tiles have {}", side.dim, dims());
}

std::size_t Tiling::slot(const TileSide& side) const noexcept {
  return (static_cast<std::size_t>(side.tile) * static_cast<std::size_t>(dims()) + static_cast<std::size_t>(side.dim)) *
             2 +
         (side.side == Side::high);
}

std::optional<TileNeighbor> Tiling::neighbor(int tile, int dim, Side side) const {
  require_side({tile, dim, side});
  return neighbors_[slot({tile, dim, side})];
}

void Tiling::join(const TileEdge& edge) {
  const auto& [from, to, along_dims, along_signs] = edge;
  require_side(from);
  require_side(to);
  for (const TileSide& side : {from, to})
    if (neighbors_[slot(side)]) throw_error(ErrorCode::invalid_use, "a side is joined twice: {}", to_string(side));
  for (const Indices& along : {along_dims, along_signs})
    if (!along.empty() && along.size() != dims() - 1)
      throw_error(ErrorCode::invalid_use, "an edge of tiles with {} runs along {}, not {}", amount(dims(), "dimension"),
                  dims() - 1, along.size());

  Indices image_dims = Indices::filled(dims(), to.dim);
  Indices signs = Indices::filled(dims(), 1);
  Indices offsets = Indices::filled(dims(), 0);
  // Depth s beyond the side of `from` is depth s inside the side of `to`, both in doubled coordinates.
  const Index length_from = extents(from.tile)[from.dim];
  const Index length_to = extents(to.tile)[to.dim];
  signs[from.dim] = from.side == to.side ? -1 : 1;
  offsets[from.dim] =
      (to.side == Side::high ? 2 * length_to : 0) - (from.side == Side::high ? 2 * length_from * signs[from.dim] : 0);
  for (int d = 0, i = 0; d < dims(); ++d) {
    if (d == from.dim) continue;
    image_dims[d] = along_dims.empty() ? (i < to.dim ? i : i + 1) : along_dims[i];
    if (image_dims[d] < 0 || image_dims[d] >= dims() || image_dims[d] == to.dim)
      throw_error(ErrorCode::invalid_use, "dimension {} does not run along the side of {}", image_dims[d],
                  to_string(to));
    const Index extent_from = extents(from.tile)[d];
    const Index extent_to = extents(to.tile)[static_cast<int>(image_dims[d])];
    if (extent_from != extent_to)
      throw_error(ErrorCode::invalid_use, "edge joins {} to {} ({} to {})", amount(extent_from, "cell"), extent_to,
                  to_string(from), to_string(to));
    if (!along_signs.empty()) signs[d] = along_signs[i];
    offsets[d] = signs[d] < 0 ? 2 * extent_to : 0;
    ++i;
  }
  const IndexMap map(image_dims, signs, offsets);
  if (from == to && map.inverse() != map)
    throw_error(ErrorCode::invalid_use, "a side joined to itself needs a map that is its own inverse, not {} ({})",
                tranship::to_string(map), to_string(from));
  neighbors_[slot(from)] = TileNeighbor{to.tile, map};
  neighbors_[slot(to)] = TileNeighbor{from.tile, map.inverse()};
}

std::vector<TileImage> Tiling::images(int tile, const Indices& margins_low, const Indices& margins_high) const {
  Box window = Box::of_extents(extents(tile));
  for (const Indices& margins : {margins_low, margins_high}) {
    if (margins.size() != dims())
      throw_error(ErrorCode::invalid_use, "{} for {}", amount(margins.size(), "margin"), amount(dims(), "dimension"));
    for (Index margin : margins) {
      if (margin < 0)
        throw_error(ErrorCode::invalid_use, "a margin is {}: it must be 0 or more", amount(margin, "cell"));
      if (margin > tile_extent_max)
        throw_error(ErrorCode::overflow, "a margin is {}: at most {} is possible", amount(margin, "cell"),
                    tile_extent_max);
    }
  }
  for (int d = 0; d < dims(); ++d) {
    window.lower[d] -= margins_low[d];
    window.upper[d] += margins_high[d];
  }
  const std::vector<Arrival> all = arrivals(*this, tile, window);
  std::vector<TileImage> out;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (const Box& region : claimed_by_one(intersect(all[i].region, window), all, i))
      out.push_back({all[i].tile, all[i].map, region});
  return out;
}

std::optional<TileCell> Tiling::locate(int tile, const Indices& cell) const {
  const Indices& inside = extents(tile);
  if (cell.size() != dims())
    throw_error(ErrorCode::invalid_use, "the cell has {}, but the tiling has {}", amount(cell.size(), "coordinate"),
                amount(dims(), "dimension"));
  Indices low, high;
  for (int d = 0; d < dims(); ++d) {
    low.push_back(cell[d] < 0 ? checked_multiply(cell[d], -1) : 0);
    high.push_back(cell[d] < inside[d] ? 0 : cell[d] - inside[d] + 1);
  }
  for (const TileImage& image : images(tile, low, high))
    if (image.region.contains(cell)) return TileCell{image.tile, image.map.apply(cell), image.map};
  return std::nullopt;
}

Tiling periodic(const Indices& extents, const Indices& periodic_dims) {
  std::vector<TileEdge> edges;
  for (Index d : periodic_dims) {
    const int dim = static_cast<int>(d);
    edges.push_back({.from = {0, dim, Side::high}, .to = {0, dim, Side::low}});
  }
  return Tiling({extents}, std::move(edges));
}

Tiling doubly_periodic(Index ny, Index nx) {
  return periodic({ny, nx}, {0, 1});
}

Tiling cubed_sphere(Index n) {
  constexpr int y = 0, x = 1;
  std::vector<TileEdge> edges;
  for (int tile = 0; tile < 6; ++tile) {
    const int next = (tile + 1) % 6, second = (tile + 2) % 6;
    // Each tile continues straight into the next tile, on the x side for even tiles and on the y side for odd ones. On
    // its other side it turns a corner into the second next tile.
    const int straight = tile % 2 == 0 ? x : y;
    const int turning = 1 - straight;
    edges.push_back({.from = {tile, straight, Side::high}, .to = {next, straight, Side::low}});
    edges.push_back({.from = {tile, turning, Side::high}, .to = {second, straight, Side::low}, .along_signs = {-1}});
  }
  return Tiling(std::vector<Indices>(6, Indices{n, n}), std::move(edges));
}

Tiling folded(Index ny, Index nx) {
  const TileSide north{0, 0, Side::high};
  return Tiling({{ny, nx}}, {{.from = {0, 1, Side::high}, .to = {0, 1, Side::low}},
                             {.from = north, .to = north, .along_signs = {-1}}});
}

VectorComponent vector_component(const IndexMap& map, int d) {
  return {map.image_dim(d), map.sign(d)};
}

std::optional<int> clockwise_rotations(const IndexMap& map) {
  if (map.dims() != 2)
    throw_error(ErrorCode::invalid_use, "quarter turns are counted in 2 dimensions, the map has {}", map.dims());
  const bool swaps = map.image_dim(0) == 1;
  if (swaps == (map.sign(0) == map.sign(1))) return std::nullopt;
  if (swaps) return map.sign(0) < 0 ? 1 : 3;
  return map.sign(0) > 0 ? 0 : 2;
}

IndexMap clockwise_turn(int rotations) {
  switch (floor_modulo(rotations, 4)) {
    case 1:
      return IndexMap({1, 0}, {-1, 1}, {0, 0});
    case 2:
      return IndexMap({0, 1}, {-1, -1}, {0, 0});
    case 3:
      return IndexMap({1, 0}, {1, -1}, {0, 0});
    default:
      return IndexMap::identity(2);
  }
}

}  // namespace tranship
