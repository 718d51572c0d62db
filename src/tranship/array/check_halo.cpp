#include "tranship/array/check_halo.hpp"

#include <cstdint>
#include <optional>

#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/halo_interval.hpp>

namespace tranship {
namespace {

/// The value of a ghost that the halo has not filled.
constexpr std::int64_t nothing = -1;

class Numbers {
 public:
  Numbers(const Tiling& tiling, const std::vector<Distribution>& tiles, const std::vector<int>& tile_dims)
      : tiling_(tiling), tiles_(tiles), tile_dims_(tile_dims) {
    Index next = 0;
    for (const Distribution& tile : tiles) {
      first_.push_back(next);
      next = checked_add(next, checked_product(tile.extents()));
    }
    for (int t = 0; t < int(tiles.size()); ++t) {
      Indices low, high;
      for (const int d : tile_dims) {
        const Overlap& overlap = tiles[std::size_t(t)].axis(d).partition().overlap;
        low.push_back(overlap.left.width);
        high.push_back(overlap.right.width);
      }
      images_.push_back(tiling.images(t, low, high));
    }
  }

  std::int64_t of(int tile, const Indices& cell) const {
    std::int64_t number = 0;
    const Indices& extents = tiles_[std::size_t(tile)].extents();
    for (int d = 0; d < cell.size(); ++d) number = number * extents[d] + cell[d];
    return first_[std::size_t(tile)] + number;
  }

  /// Returns the number of a stored cell, whose coordinates may lie outside the tile.
  std::int64_t expected(int tile, const Indices& cell) const {
    const Distribution& array = tiles_[std::size_t(tile)];
    for (const TileImage& image : images_[std::size_t(tile)]) {
      Indices there = cell;
      bool is_inside = true;
      for (int k = 0; k < tiling_.dims(); ++k) {
        const int d = tile_dims_[std::size_t(k)];
        const Points points = array.axis(d).partition().points;
        const Interval region =
            points == Points::cells ? image.region[k] : interfaces_of(image.region[k], tiling_.extents(tile)[k]);
        is_inside = is_inside && region.contains(cell[d]);
        there[tile_dims_[std::size_t(image.map.image_dim(k))]] = image.map.apply(k, cell[d], points);
      }
      if (is_inside) return of(image.tile, there);
    }
    return nothing;
  }

 private:
  const Tiling& tiling_;
  const std::vector<Distribution>& tiles_;
  const std::vector<int>& tile_dims_;
  std::vector<Index> first_;
  std::vector<std::vector<TileImage>> images_;
};

std::int64_t& element(const ArrayRef& array, const Indices& local) {
  Index at = 0;
  for (int d = 0; d < local.size(); ++d) at += local[d] * array.view.strides[d];
  return static_cast<std::int64_t*>(array.view.data)[at];
}

}  // namespace

HaloCheck check_halo(World& world, const Tiling& tiling, const std::vector<Distribution>& tiles,
                     const std::vector<int>& tile_dims, CallSite where) {
  TiledArray field{.tiles = {}, .tile_dims = tile_dims};
  for (const Distribution& tile : tiles) field.tiles.push_back(allocate_array(world, {ElementType::i64, tile}));
  HaloExchange halo(tiling, {field}, {}, HaloDirection::update, {}, where);  // checks the arguments
  const Numbers numbers(tiling, tiles, tile_dims);
  const Rank rank = world.rank();
  for (int t = 0; t < int(tiles.size()); ++t) {
    const ArrayRef& array = field.tiles[std::size_t(t)];
    for_each_stored(tiles[std::size_t(t)], rank,
                    [&](const Indices& local, const Distribution::Cell&) { element(array, local) = nothing; });
    for_each_owned(tiles[std::size_t(t)], rank,
                   [&](const Indices& local, const Indices& cell) { element(array, local) = numbers.of(t, cell); });
  }
  halo(where);

  HaloCheck out;
  for (int t = 0; t < int(tiles.size()); ++t) {
    const Distribution& array = tiles[std::size_t(t)];
    for_each_stored(array, rank, [&](const Indices& local, const Distribution::Cell& cell) {
      for (int d = 0; d < local.size(); ++d) {
        bool is_tiled = false;
        for (const int k : tile_dims) is_tiled = is_tiled || k == d;
        if (!is_tiled && (cell.at[d] < 0 || cell.at[d] >= array.extents()[d])) return;
      }
      const std::int64_t expected = numbers.expected(t, cell.at), found = element(field.tiles[std::size_t(t)], local);
      if (found != expected) {
        if (++out.wrong == 1)
          out.first_wrong = fmt::format("rank {}: cell [{}] of tile {} holds number {}, needs {}", rank,
                                        to_string(cell.at), t, found, expected);
      } else if (!cell.owned) {
        ++(expected == nothing ? out.untouched : out.ghosts);
      }
    });
  }
  return out;
}

}  // namespace tranship
