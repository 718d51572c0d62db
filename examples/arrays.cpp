// Shows what an array can be: foreign memory, disjoint groups, structs, boxes, adjoints, tilings, shared interfaces.
// Prints "every cell arrived" when the checks of all parts hold.
// Run: build/release/bin/example_arrays
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

double entry(const ts::Indices& cell) {
  return 1 + double(cell[0]) + 1e-3 * double(cell[1]);
}

void check(bool holds, const char* what) {
  if (!holds) throw ts::Error(ts::ErrorCode::internal, std::string("wrong: ") + what);
}

/// Memory of the program's own, here with a row of padding, and read-only; the target has its columns together.
void foreign_memory(ts::World& world) {
  const auto rows = ts::distribution({100, 60}, ts::grid(4, 1), {ts::block(), ts::whole()});
  std::vector<double> mine(25 * 64);
  for (ts::Index i = 0; i < 25; ++i)
    for (ts::Index j = 0; j < 60; ++j) mine[std::size_t(i * 64 + j)] = entry({25 * world.rank() + i, j});

  const ts::StridedView view{
      .data = mine.data(), .type = ts::ElementType::f64, .extents = {25, 60}, .strides = {64, 1}};
  ts::Array<const double> a(world, rows, view);
  ts::Array<double> b(world,
                      ts::distribution({100, 60}, ts::grid(2, 2), {ts::block(), ts::block()}, {.order = {1, 0}}));
  ts::Redistribution(a, b)();

  check(b.count_wrong(entry) == 0 && b.strides()[0] == 1, "foreign memory");
}

/// Ranks 0 and 1 simulate, ranks 2 and 3 analyse.
void disjoint_groups(ts::World& world) {
  const ts::Grid simulating({2, 1}, {.first = 0}), analysing({1, 2}, {.first = 2});
  ts::Array<double> a(world, ts::distribution({40, 30}, simulating, {ts::block(), ts::whole()}));
  ts::Array<double> b(world, ts::distribution({40, 30}, analysing, {ts::whole(), ts::cyclic(4)}));
  a.fill_owned(entry);
  ts::Redistribution(a, b)();

  check(b.count_wrong(entry) == 0, "disjoint groups");
}

struct Particle {
  double mass;
  int id;
};

/// One message per pair of ranks for all arrays; a box of one array to another place in another; structs.
void several_at_once(ts::World& world) {
  const auto rows = ts::distribution({64, 48}, ts::grid(4, 1), {ts::block(), ts::whole()});
  const auto tiles = ts::distribution({64, 48}, ts::grid(2, 2), {ts::cyclic(8), ts::cyclic(8)});
  ts::Array<double> u(world, rows), v(world, rows), to_u(world, tiles), to_v(world, tiles);
  ts::Array<Particle> p(world, rows), to_p(world, tiles);
  u.fill_owned(entry);
  v.fill_owned([](const ts::Indices& cell) { return -entry(cell); });
  p.fill_owned([](const ts::Indices& cell) { return Particle{entry(cell), int(cell[1])}; });
  ts::Redistribution({{u, to_u}, {v, to_v}, {p, to_p}})();

  ts::Array<double> corner(world, ts::distribution({20, 20}, ts::grid(4, 1), {ts::block(), ts::whole()}));
  ts::Redistribution cut(to_u, corner,
                         {.part = ts::SubArray{.source = {40, 28}, .target = {0, 0}, .extents = {20, 20}}});
  cut();

  check(to_u.count_wrong(entry) == 0, "several arrays");
  check(to_v.count_wrong([](const ts::Indices& cell) { return -entry(cell); }) == 0, "several arrays");
  check(corner.count_wrong([](const ts::Indices& cell) { return entry({cell[0] + 40, cell[1] + 28}); }) == 0, "a box");
  ts::for_each_owned(tiles, world.rank(), [&](const ts::Indices& local, const ts::Indices& cell) {
    check(to_p.get(local).id == cell[1], "structs");
  });
}

/// Sums that are combined in ghosts go to their owners: the exact transpose of the halo.
void adjoints(ts::World& world) {
  const auto ring = ts::block().with_overlap(1, 1, ts::EdgePolicy::toroidal);
  ts::Array<double> forces(world, ts::distribution({40}, ts::grid(4), {ring}));
  for (ts::Index i = 0; i < forces.extents()[0]; ++i) forces(i) = 1;  // every rank adds 1 to what it sees
  ts::HaloExchange give_back({forces}, {}, ts::HaloDirection::adjoint);
  give_back();

  check(forces(0) == 0 && forces(1) == 2 && forces(2) == 1, "an adjoint");

  ts::Array<int> marks(world, forces.distribution());
  for (ts::Index i = 0; i < marks.extents()[0]; ++i) marks(i) = int(10 * world.rank() + i);
  ts::HaloExchange largest({marks}, {.depth = 1}, ts::Combine::maximum);
  largest();

  check(world.rank() > 0 || marks(1) == 41, "a maximum");  // that of the last rank, which sees the first cell as well
}

/// Six tiles of a cubed sphere, each on one rank: the halo goes over their edges, turned as they are.
void tilings(ts::World& world) {
  const auto cells = ts::block().with_overlap(2, 2, ts::EdgePolicy::open);
  ts::TiledArray heights{.tiles = {}, .tile_dims = {0, 1}};
  for (int tile = 0; tile < 6; ++tile) {
    const ts::Grid owner({1, 1}, {.first = tile % world.size()});
    ts::Array<double> heights_of_tile(world, ts::distribution({12, 12}, owner, {cells, cells}));
    heights_of_tile.fill_owned([&](const ts::Indices&) { return 1.0 + tile; });
    heights.tiles.push_back(heights_of_tile);
  }
  ts::HaloExchange halo(ts::cubed_sphere(12), {heights}, {{.depth = 1}});
  halo();

  if (world.rank() > 0) return;
  const ts::StridedView& first = heights.tiles[0].view;  // tile 0, which has tile 4 to its west
  const auto at = [&](ts::Index y, ts::Index x) {
    return static_cast<const double*>(first.data)[y * first.strides[0] + x * first.strides[1]];
  };
  check(at(7, 1) == 5 && at(7, 0) == 0 && at(7, 2) == 1, "a halo over the edge of a tile");
}

/// Points between parts, which both compute: the owner's value for both.
void shared_interfaces(ts::World& world) {
  ts::Array<double> flux(world, ts::distribution({41}, ts::grid(4), {ts::block().with_interfaces()}));
  for (ts::Index i = 0; i < flux.extents()[0]; ++i) flux(i) = world.rank();
  ts::InterfaceExchange synchronise({flux});
  synchronise();

  check(flux(10) == (world.rank() < 3 ? world.rank() + 1 : 3), "shared interfaces");
}

}  // namespace

int main() try {
  ts::launch(4, [](ts::World& world) {
    foreign_memory(world);
    disjoint_groups(world);
    several_at_once(world);
    adjoints(world);
    tilings(world);
    shared_interfaces(world);
  });
  std::puts("every cell arrived");
} catch (const std::exception& error) {
  std::fprintf(stderr, "arrays: %s\n", error.what());
  return EXIT_FAILURE;
}
