// Fields on a cubed sphere, against geometry: the cube stands in space, winds are vectors of it, and points are where
// they are. How a tile is cut into ranks changes nothing.
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/array/check_halo.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/interface_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/plan/interfaces.hpp>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace tranship {
namespace {

using test::On;
using test::require;

using Vector = std::array<double, 3>;

Vector operator+(const Vector& a, const Vector& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
Vector operator*(double s, const Vector& a) {
  return {s * a[0], s * a[1], s * a[2]};
}
double dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// A face of the cube [-1, 1]^3: its centre, and which ways its dimensions (y, x) go.
struct Face {
  Vector centre;
  std::array<Vector, 2> ways;
};

/// Stands the tiles in space, so that each edge is one line of it. What goes on beyond a side goes on down the next
/// face.
std::vector<Face> faces_of(const Tiling& cube) {
  std::vector<Face> faces(6);
  std::vector<bool> known(6, false);
  faces[0] = {{0, 0, 1}, {{{0, 1, 0}, {1, 0, 0}}}};
  known[0] = true;
  for (int turn = 0; turn < 6; ++turn)
    for (int t = 0; t < 6; ++t)
      for (int d = 0; known[t] && d < 2; ++d)
        for (const int side : {-1, 1}) {
          const TileNeighbor there = *cube.neighbor(t, d, side < 0 ? Side::low : Side::high);
          Face face{double(side) * faces[t].ways[d], {}};
          face.ways[there.map.image_dim(d)] = double(-side * there.map.sign(d)) * faces[t].centre;
          face.ways[there.map.image_dim(1 - d)] = double(there.map.sign(1 - d)) * faces[t].ways[1 - d];
          if (known[there.tile]) {
            require(faces[there.tile].centre == face.centre && faces[there.tile].ways == face.ways,
                    "tile {} and its neighbours do not close to a cube", t);
          }
          faces[there.tile] = face;
          known[there.tile] = true;
        }
  return faces;
}

/// A point in the plane of a tile, folded down over one edge where it lies beyond it; `ways` are the plane's directions
/// there.
struct Folded {
  Vector point;
  std::array<Vector, 2> ways;
};
Folded fold(const Face& face, const std::array<double, 2>& at) {
  Folded out{face.centre, face.ways};
  for (int d = 0; d < 2; ++d) {
    const double side = at[d] < 0 ? -1 : 1, beyond = std::abs(at[d]) - 1;
    if (beyond > 0) {
      out.point = out.point + side * face.ways[d] + (-beyond) * face.centre;
      out.ways[d] = -side * face.centre;
    } else {
      out.point = out.point + at[d] * face.ways[d];
    }
  }
  return out;
}

Vector wind_at(const Vector& place) {
  const Vector& p = place;
  return {std::sin(3 * p[2]) + p[1], p[0] * p[2] - 0.3, std::cos(2 * p[0]) - p[1]};
}

/// The component of the wind along a line on the sphere that goes in direction `way` on the cube.
double component(const Vector& point, const Vector& way) {
  const double norm = std::sqrt(dot(point, point));
  const Vector place = (1 / norm) * point;
  const Vector tangent = way + (-dot(way, place)) * place;
  return dot(wind_at(place), tangent) / std::sqrt(dot(tangent, tangent));
}

struct Component {
  bool y_staggered = false, x_staggered = false;
  Index width = 2;
};

std::vector<Distribution> tiles_of(Index n, Index layout, const Component& kind) {
  std::vector<Distribution> out;
  const auto cut = [&](bool staggered) {
    return (staggered ? block().with_interfaces() : block()).with_overlap(kind.width, kind.width, EdgePolicy::open);
  };
  for (int t = 0; t < 6; ++t)
    out.push_back(Distribution({n + kind.y_staggered, n + kind.x_staggered},
                               Grid({layout, layout}, {.first = Rank(t * layout * layout)}),
                               {cut(kind.y_staggered), cut(kind.x_staggered)}));
  return out;
}

double& element(const ArrayRef& array, const Indices& local) {
  return static_cast<double*>(array.view.data)[local[0] * array.view.strides[0] + local[1] * array.view.strides[1]];
}

TiledArray allocate(World& world, const std::vector<Distribution>& tiles) {
  TiledArray out{.tiles = {}, .tile_dims = {0, 1}};
  for (const Distribution& tile : tiles) out.tiles.push_back(allocate_array(world, {ElementType::f64, tile}));
  return out;
}

class CubedSphere : public test::OnRanks {
 public:
  Index layout() const { return Index(std::lround(std::sqrt(ranks() / 6))); }
};
INSTANTIATE_TEST_SUITE_P(, CubedSphere,
                         testing::Values(std::tuple{On::threads, 6}, std::tuple{On::processes, 6},
                                         std::tuple{On::apart, 6}, std::tuple{On::dealt, 6},
                                         std::tuple{On::threads, 24}, std::tuple{On::sim, 24}, std::tuple{On::sim, 54}),
                         test::OnRanks::name);

constexpr Index cells = 6;

TEST_P(CubedSphere, EveryGhostIsItsOwners) {
  const Tiling cube = cubed_sphere(cells);
  for (const Component& kind : {Component{}, {.y_staggered = true, .x_staggered = true}, {.width = 1}}) {
    test::run_once(on(), {.ranks = ranks()}, 3, [&](World& world) {
      const std::vector<Distribution> tiles = tiles_of(cells, layout(), kind);
      const HaloCheck found = check_halo(world, cube, tiles, {0, 1});
      require(found.wrong == 0, "{}", found.first_wrong);
      // On ranks at the corner of a tile one corner of the ghosts has no owner, on all others none; one rank a tile has
      // four.
      const Index own_y = cells / layout() + kind.y_staggered, own_x = cells / layout() + kind.x_staggered;
      const Index w = kind.width, stored = (own_y + 2 * w) * (own_x + 2 * w);
      require(found.ghosts + found.untouched == stored - own_y * own_x, "{} ghosts and {} left alone of {}",
              found.ghosts, found.untouched, stored - own_y * own_x);
      const Rank place = world.rank() % Rank(layout() * layout());
      const bool at_y = place / layout() == 0 || place / layout() == layout() - 1;
      const bool at_x = place % layout() == 0 || place % layout() == layout() - 1;
      require(found.untouched == (layout() == 1  ? 4
                                  : at_y && at_x ? 1
                                                 : 0) *
                                     w * w,
              "{} ghosts left alone of rank {}", found.untouched, world.rank());
    });
  }
}

TEST_P(CubedSphere, WindsTurnAsTheyDoInSpace) {
  const Tiling cube = cubed_sphere(cells);
  const std::vector<Face> faces = faces_of(cube);
  const auto position = [](Index cell) { return (2.0 * double(cell) + 1) / double(cells) - 1; };
  test::run_once(on(), {.ranks = ranks()}, 3, [&](World& world) {
    const std::vector<Distribution> tiles = tiles_of(cells, layout(), {});
    const std::vector<TiledArray> wind{allocate(world, tiles), allocate(world, tiles)};  // along y, along x
    for (int t = 0; t < 6; ++t)
      for (int d = 0; d < 2; ++d)
        for_each_owned(tiles[std::size_t(t)], world.rank(), [&](const Indices& local, const Indices& cell) {
          const Folded at = fold(faces[std::size_t(t)], {position(cell[0]), position(cell[1])});
          element(wind[std::size_t(d)].tiles[std::size_t(t)], local) = component(at.point, at.ways[std::size_t(d)]);
        });
    TiledHaloOptions options;
    options.vectors = {{{.field = 0, .along = 0}, {.field = 1, .along = 1}}};
    HaloExchange(cube, wind, options)();
    for (int t = 0; t < 6; ++t)
      for (int d = 0; d < 2; ++d)
        for_each_stored(tiles[std::size_t(t)], world.rank(), [&](const Indices& local, const Distribution::Cell& cell) {
          const auto is_out = [](Index c) { return c < 0 || c >= cells; };
          if (is_out(cell.at[0]) && is_out(cell.at[1])) return;
          const Folded at = fold(faces[std::size_t(t)], {position(cell.at[0]), position(cell.at[1])});
          const double expected = component(at.point, at.ways[std::size_t(d)]);
          const double found = element(wind[std::size_t(d)].tiles[std::size_t(t)], local);
          require(std::abs(found - expected) < 1e-14, "component {} at [{}] of tile {} is {}, needs {}", d,
                  to_string(cell.at), t, found, expected);
        });
  });
}

/// What a rank holds before: on points that two ranks share, two values.
double own_value(Rank rank, int component, int tile, const Indices& at) {
  return 1 + double(rank) * 1e5 + component * 1e4 + tile * 1e3 + double(at[0] * 20 + at[1]);
}

/// The x component lies on the interfaces of y, and the other way round, as NDSL's D grid has them; or each on its own
/// dimension's interfaces (C grid).
TEST_P(CubedSphere, SharedInterfacesGetTheValuesOfTheUpperSide) {
  const Tiling cube = cubed_sphere(cells);
  const std::vector<Face> faces = faces_of(cube);
  for (const bool is_d_grid : {true, false})
    test::run_once(on(), {.ranks = ranks()}, 3, [&](World& world) {
      // Component c goes along dimension c, and counts interfaces of dimension `across`.
      const auto across = [&](int c) { return is_d_grid ? 1 - c : c; };
      std::vector<std::vector<Distribution>> tiles;
      std::vector<TiledArray> fields;
      for (int c = 0; c < 2; ++c) {
        tiles.push_back(
            tiles_of(cells, layout(), {.y_staggered = across(c) == 0, .x_staggered = across(c) == 1, .width = 1}));
        fields.push_back(allocate(world, tiles.back()));
      }
      const auto point_of = [&](int t, int c, const Indices& at) {
        std::array<double, 2> place;
        for (int d = 0; d < 2; ++d)
          place[std::size_t(d)] = (2.0 * double(at[d]) + (across(c) == d ? 0 : 1)) / double(cells) - 1;
        return fold(faces[std::size_t(t)], place).point;
      };
      const auto key_of = [](const Vector& p) {
        return std::tuple{std::lround(p[0] * 1000), std::lround(p[1] * 1000), std::lround(p[2] * 1000)};
      };
      // The owners of the low sides of all tiles, by where the points lie.
      struct Owner {
        double value;
        Vector way;
      };
      std::map<std::tuple<long, long, long>, Owner> low_sides;
      for (int t = 0; t < 6; ++t)
        for (int c = 0; c < 2; ++c)
          for (Index i = 0; i < cells; ++i) {
            Indices at{i, i};
            at[across(c)] = 0;
            const Rank owner = tiles[std::size_t(c)][std::size_t(t)].owner(at);
            low_sides[key_of(point_of(t, c, at))] = {own_value(owner, c, t, at),
                                                     faces[std::size_t(t)].ways[std::size_t(c)]};
          }
      for (int t = 0; t < 6; ++t)
        for (int c = 0; c < 2; ++c) {
          const ArrayRef& array = fields[std::size_t(c)].tiles[std::size_t(t)];
          for_each_stored(tiles[std::size_t(c)][std::size_t(t)], world.rank(),
                          [&](const Indices& local, const Distribution::Cell&) { element(array, local) = -7; });
          for_each_owned(tiles[std::size_t(c)][std::size_t(t)], world.rank(),
                         [&](const Indices& local, const Indices& at) {
                           element(array, local) = own_value(world.rank(), c, t, at);
                         });
        }
      InterfaceExchange(cube, fields, {{{.field = 0, .along = 0}, {.field = 1, .along = 1}}})();
      Index turned = 0;
      for (int t = 0; t < 6; ++t)
        for (int c = 0; c < 2; ++c)
          for_each_stored(
              tiles[std::size_t(c)][std::size_t(t)], world.rank(),
              [&](const Indices& local, const Distribution::Cell& cell) {
                double expected = -7;
                if (cell.owned && cell.at[across(c)] < cells) {
                  const Rank owner = tiles[std::size_t(c)][std::size_t(t)].owner(cell.at);
                  expected = own_value(owner, c, t, cell.at);
                } else if (cell.owned) {
                  const auto found = low_sides.find(key_of(point_of(t, c, cell.at)));
                  require(found != low_sides.end(), "no low side at [{}] of tile {}", to_string(cell.at), t);
                  // Across the edge a way of this face goes on as one of the next face, or down it.
                  const Vector& way = faces[std::size_t(t)].ways[std::size_t(c)];
                  const double along = c == across(c) ? dot(-1.0 * faces[std::size_t(t)].centre, found->second.way)
                                                      : dot(way, found->second.way);
                  require(std::abs(along) == 1, "ways differ at [{}] of tile {}", to_string(cell.at), t);
                  turned += along < 0;
                  expected = along * found->second.value;
                }
                const double value = element(fields[std::size_t(c)].tiles[std::size_t(t)], local);
                require(value == expected, "component {} at [{}] of tile {} is {}, needs {}", c, to_string(cell.at), t,
                        value, expected);
              });
      // Each tile has one high side that is turned; the component along it changes its sign there, the one across it
      // not.
      const Index expected = is_d_grid ? cells : 0;
      require(layout() > 1 || turned == expected, "{} points were negated, not {}", turned, expected);
    });
}

TEST(CheckHalo, OtherTilingsOfAnyCut) {
  const auto check = [](int ranks, const Tiling& tiling, const Distribution& tile, Index ghosts, Index untouched) {
    test::run_once(On::threads, {.ranks = ranks}, 1, [&](World& world) {
      const HaloCheck found = check_halo(world, tiling, {tile}, {0, 1});
      require(found.wrong == 0, "{}", found.first_wrong);
      require(found.ghosts == ghosts && found.untouched == untouched, "{} ghosts, {} left alone; needs {} and {}",
              found.ghosts, found.untouched, ghosts, untouched);
    });
  };
  const Partition ring = block().with_overlap(2, 2, EdgePolicy::open);
  // One and two ranks along a periodic dimension: both neighbours are one rank.
  for (const auto& [ny, nx] : {std::pair{1, 1}, {1, 2}, {2, 1}, {2, 2}})
    check(ny * nx, doubly_periodic(4 * ny, 6 * nx), Distribution({4 * ny, 6 * nx}, Grid({ny, nx}), {ring, ring}),
          8 * 10 - 24, 0);
  check(1, periodic({4, 6}, {1}), Distribution({4, 6}, Grid({1, 1}), {ring, ring}), 2 * 2 * 4, 2 * 2 * 10);
}

TEST(CheckHalo, MisuseIsRefused) {
  test::run_once(On::threads, {.ranks = 1}, 1, [](World& world) {
    const Partition ring = block().with_overlap(1, 1, EdgePolicy::open);
    const Distribution tile({4, 6}, Grid({1, 1}), {ring, ring});
    require(test::error_of([&] {
              check_halo(world, doubly_periodic(4, 5), {tile}, {0, 1});
            }).starts_with("mismatch"),
            "extents that differ were taken");
    require(test::error_of([&] {
              check_halo(world, doubly_periodic(4, 6), {tile, tile}, {0, 1});
            }).starts_with("invalid_use"),
            "two arrays for one tile were taken");
  });
}

TEST(TiledInterfaces, MisuseIsRefused) {
  const auto field_of = [](const Tiling& tiling, Index ny, Index nx, bool y, bool x) {
    TiledField out{.tiles = {}, .tile_dims = {0, 1}};
    for (int t = 0; t < tiling.tiles(); ++t)
      out.tiles.push_back({ElementType::f64, Distribution({ny + y, nx + x}, Grid({1, 1}),
                                                          {y ? block().with_interfaces() : block(),
                                                           x ? block().with_interfaces() : block()})});
    return out;
  };
  const auto error = [&](const Tiling& tiling, Index ny, Index nx, bool y, bool x) {
    const std::vector<TiledField> fields{field_of(tiling, ny, nx, y, x)};
    return test::error_of([&] { plan_interfaces(tiling, fields, 0); });
  };
  EXPECT_EQ(error(doubly_periodic(4, 6), 4, 6, true, false), "");
  EXPECT_EQ(error(doubly_periodic(4, 6), 4, 6, false, false).substr(0, 11), "invalid_use");
  EXPECT_EQ(error(doubly_periodic(4, 6), 4, 6, true, true).substr(0, 11), "unsupported");
  EXPECT_EQ(error(doubly_periodic(4, 6), 4, 5, true, false).substr(0, 8), "mismatch");
  EXPECT_EQ(error(folded(4, 6), 4, 6, true, false).substr(0, 11), "unsupported");  // a high side with itself
  EXPECT_EQ(error(folded(4, 6), 4, 6, false, true), "");
  // A scalar whose stagger would change its dimension across an edge.
  EXPECT_EQ(error(cubed_sphere(4), 4, 4, true, false).substr(0, 11), "invalid_use");
}

}  // namespace
}  // namespace tranship
