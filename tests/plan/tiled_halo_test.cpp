// Halos on tilings against the oracle: where a cell beyond a tile is found comes from geometry written here (the cube
// in space, a torus and a fold by arithmetic, an L in the plane), and from Tiling::locate for whatever is left.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include <tranship/layout/uneven_blocks.hpp>

#include "support/oracle.hpp"
#include "support/random_layouts.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using namespace test;

/// Lays one field out on every tile. Tile dimensions are (y, x) or more; other dimensions stand before, between or
/// behind them.
struct FieldShape {
  std::vector<int> dims{0, 1};    ///< per array dimension: the tile dimension, or -1 for one of `levels` cells
  std::vector<bool> staggered{};  ///< per tile dimension; empty: cells
  Index width = 1;
  Index levels = 3;
  Partition cut = block();
  std::vector<Partition> cuts{};  ///< per tile dimension, instead of `cut`
  Overlap levels_overlap{};
  ElementType type = ElementType::i64;
};

enum class RanksOfTiles { each_its_own, all_the_same };

TiledField field_on(const Tiling& tiling, const Indices& ranks_per_tile, const FieldShape& shape,
                    RanksOfTiles ranks = RanksOfTiles::each_its_own) {
  TiledField out;
  const Index count = checked_product(ranks_per_tile);
  out.tile_dims.resize(tiling.dims());
  for (int t = 0; t < tiling.tiles(); ++t) {
    Indices extents, grid_extents;
    std::vector<Partition> partitions;
    for (int d = 0; d < int(shape.dims.size()); ++d) {
      const int k = shape.dims[d];
      if (k < 0) {
        extents.push_back(shape.levels);
        grid_extents.push_back(1);
        partitions.push_back(whole().with_overlap(shape.levels_overlap.left, shape.levels_overlap.right));
        continue;
      }
      out.tile_dims[k] = d;
      const bool staggered = !shape.staggered.empty() && shape.staggered[k];
      extents.push_back(tiling.extents(t)[k] + staggered);
      grid_extents.push_back(ranks_per_tile[k]);
      Partition cut = shape.cuts.empty() ? shape.cut : shape.cuts[k];
      if (staggered) cut = cut.with_interfaces();
      partitions.push_back(cut.with_overlap(shape.width, shape.width, EdgePolicy::open));
    }
    const Rank first = ranks == RanksOfTiles::each_its_own ? Rank(t * count) : 0;
    out.tiles.push_back(
        {shape.type, Distribution(extents, Grid(grid_extents, {.first = first}), std::move(partitions))});
  }
  return out;
}

// ---- The cube in space ----------------------------------------------------------------------------------------------

using Vector = std::array<Index, 3>;

Vector operator+(const Vector& a, const Vector& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
Vector operator-(const Vector& a, const Vector& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
Vector operator*(Index s, const Vector& a) {
  return {s * a[0], s * a[1], s * a[2]};
}
Index dot(const Vector& a, const Vector& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

/// A face: its corner (0, 0) and the directions of its dimensions (y, x) and outward. Lengths are doubled, so that cell
/// i has its centre at 2i + 1 and interface i lies at 2i.
struct Face {
  Vector corner;
  Vector axes[2];
  Vector outward;
};

/// The faces as NDSL numbers and turns them: east of an even tile t lies t + 1, its rows continuing; north of it lies
/// t + 2, whose west side runs along t's north side backward.
std::vector<Face> faces_of_cube(Index n) {
  std::vector<Face> faces{{{-n, -n, n}, {{0, 1, 0}, {1, 0, 0}}, {0, 0, 1}}};
  auto east = [&](Face f) { return Face{f.corner + 2 * n * f.axes[1], {f.axes[0], -1 * f.outward}, f.axes[1]}; };
  auto north = [&](Face f) {
    return Face{f.corner + 2 * n * (f.axes[0] + f.axes[1]), {-1 * f.axes[1], -1 * f.outward}, f.axes[0]};
  };
  for (int pair = 0; pair < 3; ++pair) {
    if (pair > 0) faces.push_back(north(faces[2 * pair - 2]));
    faces.push_back(east(faces[2 * pair]));
  }
  return faces;
}

/// Walks straight on from a face over the edges of the cube. Beyond two sides at once three faces meet: left alone.
FindPoint on_cube(Index n) {
  return [n, faces = faces_of_cube(n)](int tile, const Indices& at,
                                       const std::vector<bool>& staggered) -> std::optional<TiledPoint> {
    auto outside = [&](Index p) { return p < 0 || p > 2 * n; };
    Index p[2];
    Vector directions[2];
    for (int k = 0; k < 2; ++k) {
      p[k] = 2 * at[k] + !staggered[k];
      directions[k] = faces[tile].axes[k];
    }
    if (outside(p[0]) && outside(p[1])) return std::nullopt;
    while (outside(p[0]) || outside(p[1])) {
      const int k = outside(p[0]) ? 0 : 1;
      const Face& face = faces[tile];
      const Index side = p[k] < 0 ? -1 : 1;
      const Index over = p[k] < 0 ? -p[k] : p[k] - 2 * n;
      const Vector edge = face.corner + (p[k] < 0 ? 0 : 2 * n) * face.axes[k] + p[1 - k] * face.axes[1 - k];
      const Vector point = edge - over * face.outward;
      const Vector ahead = side * face.axes[k];
      // What pointed ahead points down behind the edge.
      for (Vector& v : directions)
        if (dot(v, ahead) != 0) v = -dot(v, ahead) * face.outward;
      int next = 0;
      while (faces[next].outward != ahead) ++next;
      tile = next;
      for (int d = 0; d < 2; ++d) p[d] = dot(point - faces[tile].corner, faces[tile].axes[d]);
    }
    TiledPoint out{.tile = tile, .at = {p[0] >> 1, p[1] >> 1}, .components = {}};
    for (int k = 0; k < 2; ++k) {
      const int c = dot(directions[k], faces[tile].axes[0]) != 0 ? 0 : 1;
      out.components.push_back({c, int(dot(directions[k], faces[tile].axes[c]))});
    }
    return out;
  };
}

std::vector<Partition> uneven(Index n, Index ly, Index lx) {
  std::vector<Index> y, x;
  for (Index k = 0; k <= ly; ++k) y.push_back(k == ly ? n : std::min(n, k));
  for (Index k = 0; k <= lx; ++k) x.push_back(k == 0 ? 0 : n - std::min(n, lx - k));
  return {irregular(y), irregular(x)};
}

TEST(TiledHalo, TheCubeOfTheTestIsACube) {
  const std::vector<Face> faces = faces_of_cube(2);
  ASSERT_EQ(faces.size(), 6u);
  for (const Face& face : faces) {
    EXPECT_EQ(dot(face.corner, face.outward), 2);
    EXPECT_EQ(dot(face.axes[0], face.axes[1]), 0);
    for (const Face& other : faces) EXPECT_EQ(face.outward == other.outward, &face == &other);
  }
}

TEST(TiledHalo, CubedSphereScalars) {
  test::Thinned thinned(5);
  for (Index n = 1; n <= 6; ++n) {
    const Tiling tiling = cubed_sphere(n);
    for (const Indices& layout : {Indices{1, 1}, {2, 2}, {3, 3}, {1, 3}}) {
      if (!thinned.takes_next()) continue;
      const std::vector<TiledField> fields{field_on(tiling, layout, {.width = 3}),
                                           field_on(tiling, layout, {.cuts = uneven(n, layout[0], layout[1])}),
                                           field_on(tiling, layout, {.width = 2, .cut = cyclic(2)})};
      EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n)), "") << "n " << n;
    }
  }
}

TEST(TiledHalo, LocateFindsWhatTheCubeInSpaceHas) {
  for (const Index n : {1, 4}) {
    const Tiling tiling = cubed_sphere(n);
    const std::vector<TiledField> fields{field_on(tiling, {1, 2}, {.staggered = {true, false}, .width = 2}),
                                         field_on(tiling, {2, 1}, {.staggered = {false, true}, .width = 2})};
    for (const FindPoint& find : {on_cube(n), by_locate(tiling)})
      EXPECT_EQ(tiled_halo_fault(tiling, fields, find, {.vectors = {vector_of({0, 1})}}), "") << "n " << n;
  }
}

// Many slices of one family along an edge that runs backward on the other side.
TEST(TiledHalo, CyclicSlicesAlongMirroredEdges) {
  const Index n = 17;
  const Tiling tiling = cubed_sphere(n);
  for (const Index block_size : {1, 2, 3}) {
    const std::vector<TiledField> fields{field_on(tiling, {2, 2}, {.width = 2, .cut = cyclic(block_size)})};
    EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n)), "");
    EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {HaloOptions{.stencil = {StencilKind::star}}}), "");
  }
}

TEST(TiledHalo, CubedSphereWiderThanTheTile) {
  const Tiling tiling = cubed_sphere(2);
  const std::vector<TiledField> fields{field_on(tiling, {2, 2}, {.width = 5})};
  EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(2)), "");
}

// Components on cells, on the sides they cross (C), on the sides they run along (D), each with its own rank layout.
TEST(TiledHalo, CubedSphereVectors) {
  struct Staggering {
    std::vector<bool> y, x;
  };
  const Staggering kinds[] = {
      {{false, false}, {false, false}}, {{true, false}, {false, true}}, {{false, true}, {true, false}}};
  test::Thinned thinned(5);
  for (const Staggering& kind : kinds)
    for (const Index n : {1, 2, 3, 5}) {
      const Tiling tiling = cubed_sphere(n);
      for (const Index layout : {1, 2, 3})
        for (const Index width : {1, 3}) {
          if ((layout == 3 && width > 1 && n < 5) || !thinned.takes_next()) continue;
          const std::vector<TiledField> fields{
              field_on(tiling, {layout, layout}, {.staggered = kind.y, .width = width}),
              field_on(tiling, {layout, layout}, {.staggered = kind.x, .width = width})};
          EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {.vectors = {vector_of({0, 1})}}), "") << "n " << n;
        }
    }
}

TEST(TiledHalo, ComponentsMayBeLaidOutDifferently) {
  const Index n = 4;
  const Tiling tiling = cubed_sphere(n);
  const std::vector<TiledField> fields{
      field_on(tiling, {2, 1},
               {.dims = {-1, 1, 0}, .staggered = {false, true}, .width = 2, .cuts = {cyclic(1), block()}}),
      field_on(tiling, {1, 3}, {.dims = {0, -1, 1}, .staggered = {true, false}, .width = 2})};
  EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {.vectors = {vector_of({0, 1})}}), "");
}

TEST(TiledHalo, OtherDimensionsInAnyPlaceWithTheirOwnEdges) {
  const Index n = 3;
  const Tiling tiling = cubed_sphere(n);
  const std::vector<std::vector<int>> places{{-1, 0, 1}, {0, -1, 1}, {0, 1, -1}, {1, 0}, {1, -1, 0}, {-1, 1, -1, 0}};
  test::Thinned thinned(5);
  for (const std::vector<int>& dims : places)
    for (const EdgePolicy edge :
         {EdgePolicy::truncate, EdgePolicy::toroidal, EdgePolicy::zero, EdgePolicy::replicate}) {
      if (!thinned.takes_next()) continue;
      const Overlap levels{{1, edge}, {2, edge}};
      const std::vector<TiledField> fields{
          field_on(tiling, {2, 2}, {.dims = dims, .width = 2, .levels_overlap = levels})};
      EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n)), "");
      EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {HaloOptions{.stencil = {StencilKind::star}}}), "");
    }
}

TEST(TiledHalo, FusedFieldsStencilsAndDepths) {
  const Index n = 4;
  const Tiling tiling = cubed_sphere(n);
  for (const RanksOfTiles ranks : {RanksOfTiles::each_its_own, RanksOfTiles::all_the_same}) {
    const std::vector<TiledField> fields{field_on(tiling, {2, 2}, {.width = 3}, ranks),
                                         field_on(tiling, {2, 2}, {.width = 2, .type = ElementType::f32}, ranks),
                                         field_on(tiling, {2, 2}, {.staggered = {true, false}, .width = 2}, ranks),
                                         field_on(tiling, {2, 2}, {.staggered = {false, true}, .width = 2}, ranks),
                                         field_on(tiling, {1, 2}, {.width = 2}, ranks)};
    const std::vector<std::vector<VectorField>> vectors{vector_of({2, 3}),
                                                        {{.field = 0, .along = 1}, {.field = 4, .along = 0}}};
    EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {{.depth_low = {2, 1}, .depth_high = {1, 2}}, vectors}), "");
    EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n), {{.stencil = {StencilKind::star}}, vectors}), "");
    EXPECT_EQ(tiled_halo_fault(tiling, fields, on_cube(n),
                               {{.stencil = {StencilKind::offsets, {{0, 2}, {-1, 1}, {-2, 0}}}}, vectors}),
              "");
  }
}

// ---- The plane ------------------------------------------------------------------------------------------------------

/// An interface beyond [0, n] belongs to the cell whose far side it is; so does a point that wraps around.
Index wrapped(Index at, Index n, bool staggered) {
  const Index shift = staggered && at > n ? 1 : 0;
  if (staggered && at >= 0 && at <= n) return at;
  return ((at - shift) % n + n) % n + shift;
}

FindPoint on_torus(Index ny, Index nx) {
  return [=](int, const Indices& at, const std::vector<bool>& staggered) -> std::optional<TiledPoint> {
    return TiledPoint{0, {wrapped(at[0], ny, staggered[0]), wrapped(at[1], nx, staggered[1])}, {{0, 1}, {1, 1}}};
  };
}

FindPoint on_fold(Index ny, Index nx) {
  return [=](int, const Indices& at, const std::vector<bool>& staggered) -> std::optional<TiledPoint> {
    const Index y = at[0], x = wrapped(at[1], nx, staggered[1]), top = ny - 1 + staggered[0];
    if (y < 0 || y > 2 * ny - 1 + staggered[0]) return std::nullopt;
    if (y <= top) return TiledPoint{0, {y, x}, {{0, 1}, {1, 1}}};
    return TiledPoint{0, {2 * ny - 1 + staggered[0] - y, nx - 1 + staggered[1] - x}, {{0, -1}, {1, -1}}};
  };
}

TEST(TiledHalo, DoublyPeriodic) {
  test::Thinned thinned(5);
  for (const Indices& extents : {Indices{1, 1}, {1, 4}, {3, 5}, {6, 6}}) {
    const Tiling tiling = doubly_periodic(extents[0], extents[1]);
    for (const Indices& layout : {Indices{1, 1}, {1, 2}, {2, 2}, {3, 1}})
      for (const Index width : {1, 3, 7}) {
        if (!thinned.takes_next()) continue;
        const std::vector<TiledField> fields{field_on(tiling, layout, {.width = width}),
                                             field_on(tiling, layout, {.staggered = {true, false}, .width = width}),
                                             field_on(tiling, layout, {.staggered = {false, true}, .width = width}),
                                             field_on(tiling, layout, {.width = width, .cut = cyclic(1)})};
        EXPECT_EQ(tiled_halo_fault(tiling, fields, on_torus(extents[0], extents[1]), {.vectors = {vector_of({1, 2})}}),
                  "");
      }
  }
}

TEST(TiledHalo, Folded) {
  for (const Indices& extents : {Indices{1, 2}, {3, 4}, {4, 5}}) {
    const Tiling tiling = folded(extents[0], extents[1]);
    for (const Indices& layout : {Indices{1, 1}, {2, 3}, {3, 2}})
      for (const Index width : {1, 2, 5}) {
        const std::vector<TiledField> fields{
            field_on(tiling, layout, {.width = width}),
            field_on(tiling, layout, {.staggered = {true, false}, .width = width}),
            field_on(tiling, layout, {.staggered = {false, true}, .width = width}),
            field_on(tiling, layout, {.dims = {1, -1, 0}, .staggered = {true, true}, .width = width})};
        EXPECT_EQ(tiled_halo_fault(tiling, fields, on_fold(extents[0], extents[1]), {.vectors = {vector_of({1, 2})}}),
                  "");
      }
  }
}

TEST(TiledHalo, AnLOfThreeTiles) {
  // Tile 0 at the corner, 1 to its right, 2 above it.
  const std::vector<Indices> corners{{0, 0}, {0, 4}, {3, 0}}, extents{{3, 4}, {3, 2}, {5, 4}};
  const Tiling tiling(extents, {{.from = {0, 1, Side::high}, .to = {1, 1, Side::low}},
                                {.from = {0, 0, Side::high}, .to = {2, 0, Side::low}}});
  const FindPoint in_plane = [&](int tile, const Indices& at,
                                 const std::vector<bool>& staggered) -> std::optional<TiledPoint> {
    for (int t = 0; t < 3; ++t) {
      bool inside = true;
      Indices there;
      for (int k = 0; k < 2; ++k) {
        const Index cell = at[k] < 0 || !staggered[k] ? at[k]
                           : at[k] > extents[tile][k] ? at[k] - 1
                                                      : std::min(at[k], extents[tile][k] - 1);
        const Index by = corners[tile][k] - corners[t][k];
        inside &= cell + by >= 0 && cell + by < extents[t][k];
        there.push_back(at[k] + by);
      }
      if (inside) return TiledPoint{t, there, {{0, 1}, {1, 1}}};
    }
    return std::nullopt;
  };
  for (const Index width : {1, 2, 7})
    for (const Indices& layout : {Indices{1, 1}, {2, 2}}) {
      const std::vector<TiledField> fields{field_on(tiling, layout, {.width = width}),
                                           field_on(tiling, layout, {.staggered = {true, false}, .width = width}),
                                           field_on(tiling, layout, {.staggered = {false, true}, .width = width})};
      EXPECT_EQ(tiled_halo_fault(tiling, fields, in_plane, {.vectors = {vector_of({1, 2})}}), "");
    }
}

// ---- Anything else --------------------------------------------------------------------------------------------------

TEST(TiledHalo, RandomTilings) {
  const auto fault_of = [](std::uint64_t seed) {
    Random random(seed);
    const int dims = int(random.between(1, 3));
    const int tiles = int(random.between(1, 3));
    const Index n = random.between(1, dims == 1 ? 20 : dims == 2 ? 8 : 3);
    std::vector<Indices> extents(tiles, Indices::filled(dims, n));
    std::vector<TileSide> sides;
    for (int t = 0; t < tiles; ++t)
      for (int d = 0; d < dims; ++d)
        for (const Side side : {Side::low, Side::high})
          if (!random.one_in(4)) sides.push_back({t, d, side});
    random.shuffle(sides);
    std::vector<TileEdge> edges;
    for (std::size_t i = 0; i + 1 < sides.size(); i += 2) {
      TileEdge edge{.from = sides[i], .to = sides[i + 1]};
      std::vector<Index> along;
      for (int d = 0; d < dims; ++d)
        if (d != edge.to.dim) along.push_back(d);
      random.shuffle(along);
      edge.along_dims = Indices(along);
      for (std::size_t k = 0; k < along.size(); ++k) edge.along_signs.push_back(random.one_in(2) ? 1 : -1);
      edges.push_back(edge);
    }
    const Tiling tiling(extents, edges);
    std::vector<TiledField> fields;
    TiledHaloOptions options;
    const Index width = random.between(1, dims == 3 ? 1 : 3);
    auto add = [&] {
      Indices layout;
      FieldShape shape{.dims = {}, .width = width, .levels = random.between(1, 2)};
      for (int d = 0; d < dims; ++d) {
        layout.push_back(random.between(1, 2));
        shape.dims.push_back(d);
        shape.cuts.push_back(random.one_in(3) ? cyclic(random.between(1, 2))
                                              : irregular(random_bounds(random, n, layout[d])));
      }
      if (random.one_in(2)) shape.dims.push_back(-1);
      if (shape.dims.back() != -1) random.shuffle(shape.dims);
      fields.push_back(
          field_on(tiling, layout, shape, random.one_in(2) ? RanksOfTiles::each_its_own : RanksOfTiles::all_the_same));
    };
    add();
    if (random.one_in(2)) {
      // Components of one vector, which must agree in what is not the tile's.
      fields.assign(dims, fields[0]);
      options.vectors.push_back({});
      for (int d = 0; d < dims; ++d) options.vectors[0].push_back({.field = d, .along = d});
      random.shuffle(options.vectors[0]);
    }
    return tiled_halo_fault(tiling, fields, by_locate(tiling), options);
  };
  EXPECT_EQ(first_fault(0.1, fault_of), "");
}

}  // namespace
}  // namespace tranship
