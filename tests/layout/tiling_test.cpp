// Tilings against a walk over the surface: one cell at a time, through every edge, in every order of steps.
#include <functional>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/layout/halo_interval.hpp>
#include <tranship/layout/tile_ranks.hpp>
#include <tranship/layout/tiling.hpp>

namespace tranship {
namespace {

using Cell = std::vector<Index>;

Cell cell_of(const Indices& at) {
  return {at.begin(), at.end()};
}

/// Somebody on the surface: where they stand, and for each direction they set out with the direction of the tile they
/// stand on that it has become.
struct Walker {
  int tile;
  Indices cell;
  std::vector<int> axes;
  std::vector<int> signs;

  auto key() const { return std::tuple(tile, cell_of(cell), axes, signs); }
  friend bool operator<(const Walker& a, const Walker& b) { return a.key() < b.key(); }
};

std::optional<Walker> step(const Tiling& tiling, Walker at, int direction, int sign) {
  const int axis = at.axes[direction];
  const int forward = sign * at.signs[direction];
  at.cell[axis] += forward;
  if (at.cell[axis] >= 0 && at.cell[axis] < tiling.extents(at.tile)[axis]) return at;
  const auto beyond = tiling.neighbor(at.tile, axis, forward > 0 ? Side::high : Side::low);
  if (!beyond) return std::nullopt;
  at.tile = beyond->tile;
  at.cell = beyond->map.apply(at.cell);
  for (std::size_t d = 0; d < at.axes.size(); ++d) {
    at.signs[d] *= beyond->map.sign(at.axes[d]);
    at.axes[d] = beyond->map.image_dim(at.axes[d]);
  }
  return at;
}

/// Where one may stand after walking from `tile` to a cell in its coordinates, always away from it.
class Walk {
 public:
  Walk(const Tiling& tiling, int tile) : tiling_(tiling), tile_(tile) {}

  const std::set<Walker>& ends(const Indices& cell) {
    const auto known = ends_.find(cell_of(cell));
    if (known != ends_.end()) return known->second;
    std::set<Walker> out;
    bool inside = true;
    for (int d = 0; d < cell.size(); ++d) {
      const int sign = cell[d] < 0 ? -1 : cell[d] >= tiling_.extents(tile_)[d] ? 1 : 0;
      if (sign == 0) continue;
      inside = false;
      Indices before = cell;
      before[d] -= sign;
      for (const Walker& walker : ends(before))
        if (const auto next = step(tiling_, walker, d, sign)) out.insert(*next);
    }
    if (inside) {
      Walker start{tile_, cell, {}, {}};
      for (int d = 0; d < cell.size(); ++d) {
        start.axes.push_back(d);
        start.signs.push_back(1);
      }
      out.insert(start);
    }
    return ends_[cell_of(cell)] = out;
  }

 private:
  const Tiling& tiling_;
  int tile_;
  std::map<Cell, std::set<Walker>> ends_;
};

/// Every cell within the margins of every tile: images() agrees with the walk, and so does locate(). Returns how many
/// cells have no image.
Index expect_images_match_walk(const Tiling& tiling, const Indices& low, const Indices& high) {
  Index without = 0;
  for (int tile = 0; tile < tiling.tiles(); ++tile) {
    SCOPED_TRACE("tile " + std::to_string(tile));
    Indices window = tiling.extents(tile);
    for (int d = 0; d < tiling.dims(); ++d) window[d] += low[d] + high[d];
    std::map<Cell, const TileImage*> given;
    const std::vector<TileImage> images = tiling.images(tile, low, high);
    EXPECT_EQ(images.at(0).tile, tile);
    EXPECT_EQ(images.at(0).map, IndexMap::identity(tiling.dims()));
    EXPECT_EQ(images.at(0).region, Box::of_extents(tiling.extents(tile)));
    for (const TileImage& image : images)
      for_each_coordinate(image.region.extents(), [&](const Indices& at) {
        Indices cell = at;
        for (int d = 0; d < cell.size(); ++d) cell[d] += image.region.lower[d];
        EXPECT_TRUE(given.emplace(cell_of(cell), &image).second) << to_string(cell) << " is in two regions";
      });
    Walk walk(tiling, tile);
    for_each_coordinate(window, [&](const Indices& at) {
      Indices cell = at;
      for (int d = 0; d < cell.size(); ++d) cell[d] -= low[d];
      const std::set<Walker>& ends = walk.ends(cell);
      const auto image = given.find(cell_of(cell));
      const auto located = tiling.locate(tile, cell);
      ASSERT_EQ(image != given.end(), ends.size() == 1) << to_string(cell) << " with " << ends.size() << " ends";
      ASSERT_EQ(located.has_value(), ends.size() == 1) << to_string(cell);
      if (image == given.end()) {
        ++without;
        return;
      }
      const Walker& end = *ends.begin();
      const TileImage& found = *image->second;
      ASSERT_EQ(found.tile, end.tile) << to_string(cell);
      ASSERT_EQ(found.map.apply(cell), end.cell) << to_string(cell);
      for (int d = 0; d < cell.size(); ++d)
        ASSERT_EQ(vector_component(found.map, d), (VectorComponent{end.axes[d], end.signs[d]})) << to_string(cell);
      ASSERT_EQ(located->tile, end.tile);
      ASSERT_EQ(located->cell, end.cell);
      ASSERT_EQ(located->map, found.map);
      given.erase(image);
    });
    EXPECT_TRUE(given.empty()) << given.size() << " cells outside of the margins";
  }
  return without;
}

Index expect_images_match_walk(const Tiling& tiling, Index margin) {
  const Indices margins = Indices::filled(tiling.dims(), margin);
  return expect_images_match_walk(tiling, margins, margins);
}

/// The map of every joined side leads to a side whose map leads back, and takes the interfaces on the one to those on
/// the other.
void expect_edges_have_mates(const Tiling& tiling) {
  for (int tile = 0; tile < tiling.tiles(); ++tile)
    for (int d = 0; d < tiling.dims(); ++d)
      for (Side side : {Side::low, Side::high}) {
        const auto there = tiling.neighbor(tile, d, side);
        if (!there) continue;
        const int e = there->map.image_dim(d);
        const Index shared = side == Side::low ? 0 : tiling.extents(tile)[d];
        const Index image = there->map.apply(d, shared, Points::interfaces);
        const Index extent = tiling.extents(there->tile)[e];
        ASSERT_TRUE(image == 0 || image == extent) << image << " of " << extent;
        const auto back = tiling.neighbor(there->tile, e, image == 0 ? Side::low : Side::high);
        ASSERT_TRUE(back.has_value());
        EXPECT_EQ(back->tile, tile);
        EXPECT_EQ(back->map, there->map.inverse());
        for (int c = 0; c < tiling.dims(); ++c) {
          const VectorComponent out = vector_component(there->map, c);
          const VectorComponent home = vector_component(back->map, out.component);
          EXPECT_EQ(home.component, c);
          EXPECT_EQ(home.sign * out.sign, 1);
          if (c == d) continue;
          // Along the edge the interfaces 0..extent pair up with 0..extent.
          const Index last = tiling.extents(tile)[c];
          EXPECT_EQ(there->map.apply(c, 0, Points::interfaces), out.sign > 0 ? 0 : last);
          EXPECT_EQ(there->map.apply(c, last, Points::interfaces), out.sign > 0 ? last : 0);
        }
      }
}

void expect_error(ErrorCode code, const std::string& part, const std::function<void()>& f) {
  try {
    f();
    ADD_FAILURE() << "no error that says: " << part;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_NE(error.message().find(part), std::string::npos) << error.message();
  }
}

constexpr Side low = Side::low;
constexpr Side high = Side::high;

Tiling moebius(Index ny, Index nx) {
  return Tiling({{ny, nx}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_signs = {-1}}});
}

Tiling klein_bottle(Index ny, Index nx) {
  return Tiling({{ny, nx}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_signs = {-1}},
                             {.from = {0, 0, high}, .to = {0, 0, low}}});
}

Tiling projective_plane(Index ny, Index nx) {
  return Tiling({{ny, nx}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_signs = {-1}},
                             {.from = {0, 0, high}, .to = {0, 0, low}, .along_signs = {-1}}});
}

/// Tile 1 lies east of tile 0, tile 2 north of it.
Tiling l_shape() {
  return Tiling({{3, 4}, {3, 2}, {5, 4}},
                {{.from = {0, 1, high}, .to = {1, 1, low}}, {.from = {0, 0, high}, .to = {2, 0, low}}});
}

TEST(Tiling, CubedSphereMatchesWalk) {
  for (Index n = 1; n <= 4; ++n) {
    const Tiling cube = cubed_sphere(n);
    expect_edges_have_mates(cube);
    for (Index margin = 0; margin <= 2 * n; ++margin) {
      SCOPED_TRACE("n = " + std::to_string(n) + ", margin " + std::to_string(margin));
      const Index without = expect_images_match_walk(cube, margin);
      // Up to the width of a tile, what lacks an image is just the four corners of each of the six tiles.
      if (margin <= n) {
        EXPECT_EQ(without, 6 * 4 * margin * margin);
      }
    }
  }
}

TEST(Tiling, WalkingStraightAroundACubeComesHome) {
  const Index n = 3;
  const Tiling cube = cubed_sphere(n);
  for (int tile = 0; tile < 6; ++tile)
    for_each_coordinate({n, n}, [&](const Indices& cell) {
      for (int d = 0; d < 2; ++d)
        for (int sign : {-1, 1}) {
          const Walker start{tile, cell, {0, 1}, {1, 1}};
          std::optional<Walker> at = start;
          std::set<int> tiles;
          for (Index i = 0; i < 4 * n; ++i) {
            ASSERT_TRUE(i == 0 || at->key() != start.key());
            at = step(cube, *at, d, sign);
            ASSERT_TRUE(at.has_value());
            tiles.insert(at->tile);
          }
          EXPECT_EQ(at->key(), start.key());
          EXPECT_EQ(tiles.size(), 4u);
        }
    });
}

TEST(Tiling, PeriodicMatchesWalk) {
  for (Index ny = 1; ny <= 3; ++ny)
    for (Index nx = 1; nx <= 3; ++nx)
      for (Index margin = 0; margin <= 5; ++margin)
        EXPECT_EQ(expect_images_match_walk(doubly_periodic(ny, nx), margin), 0);
  // Periodic in x only: nothing lies beyond y.
  const Tiling channel = periodic({2, 3}, {1});
  EXPECT_EQ(expect_images_match_walk(channel, {2, 4}, {1, 0}), (2 + 1) * (4 + 3));
  EXPECT_FALSE(channel.neighbor(0, 0, low).has_value());
}

TEST(Tiling, FoldsMatchWalk) {
  for (Index ny = 1; ny <= 3; ++ny)
    for (Index nx = 1; nx <= 4; ++nx) {
      const Tiling ocean = folded(ny, nx);
      expect_edges_have_mates(ocean);
      for (Index margin = 0; margin <= 5; ++margin) expect_images_match_walk(ocean, margin);
    }
  // Beyond the fold lies the last row, backwards; both components change sign.
  const auto beyond = folded(5, 8).locate(0, {6, 1});
  ASSERT_TRUE(beyond.has_value());
  EXPECT_EQ(beyond->cell, (Indices{3, 6}));
  EXPECT_EQ(vector_component(beyond->map, 0), (VectorComponent{0, -1}));
  EXPECT_EQ(vector_component(beyond->map, 1), (VectorComponent{1, -1}));
  EXPECT_EQ(clockwise_rotations(beyond->map), 2);
}

TEST(Tiling, MirrorsAndMoebiusBandsMatchWalk) {
  const Tiling mirror({{3, 2}}, {{.from = {0, 1, low}, .to = {0, 1, low}}});
  const Tiling split_sphere({{2, 4}, {2, 4}}, {{.from = {0, 0, low}, .to = {1, 0, low}},
                                               {.from = {0, 0, high}, .to = {1, 0, high}},
                                               {.from = {0, 1, low}, .to = {1, 1, low}},
                                               {.from = {0, 1, high}, .to = {1, 1, high}}});
  for (const Tiling& tiling :
       {mirror, split_sphere, moebius(3, 2), klein_bottle(3, 2), klein_bottle(1, 2), projective_plane(2, 3)}) {
    expect_edges_have_mates(tiling);
    for (Index margin = 0; margin <= 6; ++margin) expect_images_match_walk(tiling, margin);
  }
  EXPECT_EQ(clockwise_rotations(moebius(3, 2).neighbor(0, 1, high)->map), std::nullopt);
  EXPECT_EQ(mirror.locate(0, {1, -2})->cell, (Indices{1, 1}));
}

TEST(Tiling, BlocksMatchWalk) {
  const Tiling blocks = l_shape();
  expect_edges_have_mates(blocks);
  for (Index margin = 0; margin <= 9; ++margin) expect_images_match_walk(blocks, margin);
  // From tile 1, around the inner corner of the L: only by tile 0.
  const auto around = blocks.locate(1, {4, -1});
  ASSERT_TRUE(around.has_value());
  EXPECT_EQ(around->tile, 2);
  EXPECT_EQ(around->cell, (Indices{1, 3}));
  // From tile 0, beyond its corner: both ways end at open sides.
  EXPECT_FALSE(blocks.locate(0, {3, 4}).has_value());
}

TEST(Tiling, TilesThatOverlapBeyondACornerKeepOnlyWhatOneOrderReaches) {
  // North then east leads to tile 4, east then north to tile 3; they agree on nothing, and overlap in one cell.
  const Tiling blocks({{2, 2}, {2, 3}, {3, 2}, {1, 3}, {3, 1}}, {{.from = {0, 1, high}, .to = {1, 1, low}},
                                                                 {.from = {0, 0, high}, .to = {2, 0, low}},
                                                                 {.from = {1, 0, high}, .to = {3, 0, low}},
                                                                 {.from = {2, 1, high}, .to = {4, 1, low}}});
  for (Index margin = 0; margin <= 5; ++margin) expect_images_match_walk(blocks, margin);
  EXPECT_FALSE(blocks.locate(0, {2, 2}).has_value());
  EXPECT_EQ(blocks.locate(0, {2, 3})->tile, 3);
  EXPECT_EQ(blocks.locate(0, {3, 2})->tile, 4);
}

TEST(Tiling, OneAndThreeDimensionsMatchWalk) {
  const Tiling ring = periodic({3}, {0});
  EXPECT_EQ(expect_images_match_walk(ring, 8), 0);
  const Tiling torus = periodic({2, 1, 3}, {0, 1, 2});
  EXPECT_EQ(expect_images_match_walk(torus, 2), 0);
  // A screw: going up in z turns the square base by a quarter. Two boxes whose x faces join with y and z swapped.
  const Tiling screw({{2, 2, 3}},
                     {{.from = {0, 2, high}, .to = {0, 2, low}, .along_dims = {1, 0}, .along_signs = {1, -1}},
                      {.from = {0, 0, high}, .to = {0, 0, low}}});
  const Tiling swapped({{2, 3, 2}, {2, 2, 3}}, {{.from = {0, 0, high}, .to = {1, 0, high}, .along_dims = {2, 1}},
                                                {.from = {0, 1, low}, .to = {1, 2, high}, .along_signs = {-1, 1}}});
  for (const Tiling& tiling : {screw, swapped}) {
    expect_edges_have_mates(tiling);
    for (Index margin = 0; margin <= 4; ++margin) expect_images_match_walk(tiling, margin);
  }
}

TEST(Tiling, CubeEdgesTurnVectors) {
  // West of tile 0 lies the north side of tile 4, a quarter turn away: x there runs against y here.
  const auto west = cubed_sphere(5).locate(0, {1, -2});
  ASSERT_TRUE(west.has_value());
  EXPECT_EQ(west->tile, 4);
  EXPECT_EQ(west->cell, (Indices{3, 3}));
  EXPECT_EQ(clockwise_rotations(west->map), 1);
  EXPECT_EQ(vector_component(west->map, 0), (VectorComponent{1, -1}));
  EXPECT_EQ(vector_component(west->map, 1), (VectorComponent{0, 1}));
}

TEST(Tiling, CostDoesNotDependOnExtents) {
  const Index vast = Index{1} << 40;
  EXPECT_EQ(cubed_sphere(vast).images(3, {3, 3}, {3, 3}).size(), 5u);
  EXPECT_EQ(doubly_periodic(vast, 7).images(0, {3, 3}, {3, 3}).size(), 9u);
  EXPECT_EQ(doubly_periodic(vast, vast).locate(0, {-1, vast})->cell, (Indices{vast - 1, 0}));
}

TEST(Tiling, LargestExtentsAndMarginsAreExact) {
  const Index most = Index{1} << 59;
  const Tiling ocean = folded(most, most);
  const std::vector<TileImage> images = ocean.images(0, {0, most}, {most, most});
  ASSERT_EQ(images.size(), 6u);
  const Indices corner{2 * most - 1, 2 * most - 1};
  const auto located = ocean.locate(0, corner);
  ASSERT_TRUE(located.has_value());
  EXPECT_EQ(located->cell, (Indices{0, 0}));
  expect_error(ErrorCode::overflow, "1152921504606846976", [&] { folded(2 * most, 3); });
  expect_error(ErrorCode::overflow, "1152921504606846976", [&] { ocean.images(0, {0, 2 * most}, {0, 0}); });
}

TEST(Tiling, EqualByContent) {
  EXPECT_EQ(cubed_sphere(3), cubed_sphere(4).with_extents(std::vector<Indices>(6, Indices{3, 3})));
  EXPECT_NE(cubed_sphere(3), cubed_sphere(4));
  EXPECT_NE(doubly_periodic(3, 3), periodic({3, 3}, {0}));
  EXPECT_EQ(periodic({3, 3}, {1, 0}),
            Tiling({{3, 3}}, {{.from = {0, 0, low}, .to = {0, 0, high}}, {.from = {0, 1, low}, .to = {0, 1, high}}}));
}

TEST(Tiling, MisuseIsRefused) {
  const auto make = [](std::vector<Indices> tiles, std::vector<TileEdge> edges) {
    return [=] { Tiling(tiles, edges); };
  };
  const ErrorCode bad = ErrorCode::invalid_use;
  expect_error(bad, "at least 1 tile, has 0", make({}, {}));
  expect_error(bad, "1 to 3 dimensions, not 4", make({{1, 1, 1, 1}}, {}));
  expect_error(bad, "1 to 3 dimensions, not 0", make({Indices{}}, {}));
  expect_error(bad, "tile 1 has 1 dimension, tile 0 has 2", make({{2, 2}, {2}}, {}));
  expect_error(bad, "extents 2, 0", make({{2, 0}}, {}));
  expect_error(bad, "edge joins 12 cells to 10", make({{12, 5}, {10, 5}}, {{.from = {0, 1, high}, .to = {1, 1, low}}}));
  expect_error(bad, "edge joins 12 cells to 5", make({{12, 5}}, {{.from = {0, 1, high}, .to = {0, 0, low}}}));
  expect_error(bad, "tile 2 does not exist: there are 2",
               make({{2, 2}, {2, 2}}, {{.from = {0, 1, high}, .to = {2, 1, low}}}));
  expect_error(bad, "dimension 2 does not exist: tiles have 2",
               make({{2, 2}}, {{.from = {0, 2, high}, .to = {0, 1, low}}}));
  expect_error(bad, "joined twice: tile 0, dimension 1 high",
               make({{2, 2}}, {{.from = {0, 1, high}, .to = {0, 1, low}}, {.from = {0, 0, low}, .to = {0, 1, high}}}));
  expect_error(bad, "runs along 1, not 2",
               make({{2, 2}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_signs = {1, 1}}}));
  expect_error(bad, "sign 2", make({{2, 2}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_signs = {2}}}));
  expect_error(bad, "does not run along",
               make({{2, 2}}, {{.from = {0, 1, high}, .to = {0, 1, low}, .along_dims = {1}}}));
  expect_error(bad, "not a permutation",
               make({{2, 2, 2}}, {{.from = {0, 2, high}, .to = {0, 2, low}, .along_dims = {0, 0}}}));
  expect_error(
      bad, "its own inverse",
      make({{2, 2, 2}}, {{.from = {0, 2, high}, .to = {0, 2, high}, .along_dims = {1, 0}, .along_signs = {1, -1}}}));
  const Tiling cube = cubed_sphere(3);
  expect_error(bad, "margin is -1", [&] { cube.images(0, {0, -1}, {0, 0}); });
  expect_error(bad, "3 margins for 2", [&] { cube.images(0, {0, 0, 0}, {0, 0}); });
  expect_error(bad, "tile 6 does not exist", [&] { cube.images(6, {0, 0}, {0, 0}); });
  expect_error(bad, "tile -1 does not exist", [&] { cube.neighbor(-1, 0, low); });
  expect_error(bad, "the cell has 1 coordinate, but the tiling has 2 dimensions", [&] { cube.locate(0, {0}); });
  expect_error(bad, "the map has 3", [&] { clockwise_rotations(IndexMap::identity(3)); });
}

TEST(TileRanks, NumbersTilesThenRows) {
  const TileRanks ranks(Tiling({{6, 6}, {6, 6}}, {}), {2, 3});
  EXPECT_EQ(ranks.count(), 12);
  for (Rank rank = 0; rank < ranks.count(); ++rank)
    EXPECT_EQ(ranks.rank_at(ranks.tile_of(rank), ranks.coordinate_of(rank)), rank);
  EXPECT_EQ(ranks.rank_at(1, {1, 2}), 11);
  EXPECT_EQ(ranks.coordinate_of(7), (Indices{0, 1}));
  EXPECT_EQ(ranks.neighbor(7, {1, 1})->rank, 11);
  EXPECT_FALSE(ranks.neighbor(7, {-1, 0}).has_value());
}

TEST(TileRanks, OneAndTwoRanksOnAPeriodicAxis) {
  const TileRanks one(doubly_periodic(4, 4), {1, 2});
  for (Index dy = -1; dy <= 1; ++dy)
    for (Index dx = -1; dx <= 1; ++dx) {
      EXPECT_EQ(one.neighbor(0, {dy, dx})->rank, dx == 0 ? 0 : 1);
      EXPECT_TRUE(one.neighbor(0, {dy, dx})->map.is_translation());
    }
}

TEST(TileRanks, MisuseIsRefused) {
  expect_error(ErrorCode::invalid_use, "edge joins 3 cells to 2", [] { TileRanks(cubed_sphere(6), {2, 3}); });
  const TileRanks ranks(cubed_sphere(6), {2, 2});
  expect_error(ErrorCode::invalid_use, "rank 24 does not exist: there are 24", [&] { ranks.tile_of(24); });
  expect_error(ErrorCode::invalid_use, "direction 2", [&] { ranks.neighbor(0, {2, 0}); });
  expect_error(ErrorCode::invalid_use, "the direction has 1 entry, but the grid has 2 dimensions",
               [&] { ranks.neighbor(0, {1}); });
  expect_error(ErrorCode::invalid_use, "outside the grid 2, 2", [&] { ranks.rank_at(0, {0, 2}); });
  expect_error(ErrorCode::overflow, "need more ranks than can exist: 2147483647", [] {
    TileRanks(cubed_sphere(6), {Index{1} << 16, Index{1} << 16});
  });
}

TEST(HaloInterval, InterfacesOfRegionsAreDisjointCompleteAndLandOnTheirOwner) {
  for (const Tiling& tiling : {cubed_sphere(3), folded(3, 4), doubly_periodic(2, 1), klein_bottle(3, 2)})
    for (int tile = 0; tile < tiling.tiles(); ++tile)
      for (int d = 0; d < 2; ++d) {
        const Index extent = tiling.extents(tile)[d];
        const Index margin = 2 * extent;
        Indices margins{0, 0};
        margins[d] = margin;
        std::set<Index> seen;
        Index cells = 0;
        for (const TileImage& image : tiling.images(tile, margins, margins)) {
          cells += image.region[d].length();
          const Interval interfaces = interfaces_of(image.region[d], extent);
          for (Index i = interfaces.lower; i < interfaces.upper; ++i) {
            EXPECT_TRUE(seen.insert(i).second) << "interface " << i << " twice";
            const Index at_owner = image.map.apply(d, i, Points::interfaces);
            EXPECT_GE(at_owner, 0);
            EXPECT_LE(at_owner, tiling.extents(image.tile)[image.map.image_dim(d)]);
          }
        }
        EXPECT_EQ(static_cast<Index>(seen.size()), cells + 1);
        EXPECT_EQ(*seen.rbegin() - *seen.begin(), cells);
      }
}

TEST(HaloInterval, RefusesMoreThanIsOwned) {
  EXPECT_EQ(send_interval({3, 7}, 4, low, Points::cells), (Interval{3, 7}));
  EXPECT_EQ(send_interval({3, 7}, 3, low, Points::interfaces), (Interval{4, 7}));
  EXPECT_EQ(send_interval({3, 7}, 3, high, Points::interfaces), (Interval{3, 6}));
  expect_error(ErrorCode::invalid_use, "5 points takes 5 owned points from the high side, but this part owns 4", [] {
    send_interval({3, 7}, 5, high, Points::cells);
  });
  expect_error(ErrorCode::invalid_use, "but this part owns 3", [] {
    send_interval({3, 7}, 4, low, Points::interfaces);
  });
  expect_error(ErrorCode::invalid_use, "-1 points", [] { send_interval({3, 7}, -1, low, Points::cells); });
  expect_error(ErrorCode::invalid_use, "-1 points", [] { receive_interval({3, 7}, -1, low); });
}

}  // namespace
}  // namespace tranship
