// Shows heat in a periodic box on 4 ranks, a seven-point stencil in 3-D whose exchange runs beside the interior's work.
// Prints how many cells differ from the same run on 1 rank: 0, as both have the same bytes.
// Run: build/release/bin/example_halo
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

const ts::Indices extents = {24, 20, 16};
constexpr int steps = 50;

/// One step for the local cells in `box`.
void diffuse(const ts::Array<double>& now, const ts::Array<double>& next, const ts::Box& box) {
  for (ts::Index i = box.lower[0]; i < box.upper[0]; ++i)
    for (ts::Index j = box.lower[1]; j < box.upper[1]; ++j)
      for (ts::Index k = box.lower[2]; k < box.upper[2]; ++k)
        next(i, j, k) =
            now(i, j, k) + 0.125 * (now(i - 1, j, k) + now(i + 1, j, k) + now(i, j - 1, k) + now(i, j + 1, k) +
                                    now(i, j, k - 1) + now(i, j, k + 1) - 6 * now(i, j, k));
}

/// The box without its outermost `depth` cells.
ts::Box shrunk(ts::Box box, ts::Index depth) {
  for (int d = 0; d < box.dims(); ++d) {
    box.lower[d] += depth;
    box.upper[d] -= depth;
  }
  return box;
}

/// The temperature of every cell after all steps, row-major, computed on a grid of ranks.
std::vector<double> simulate(const ts::Grid& grid) {
  std::vector<double> result(std::size_t(ts::checked_product(extents)));
  ts::launch(int(grid.size()), [&](ts::World& world) {
    const auto cells = ts::block().with_overlap(1, 1, ts::EdgePolicy::toroidal);
    const ts::Distribution box(extents, grid, {cells, cells, cells});
    ts::Array<double> now(world, box), next(world, box);
    now.fill_owned([](const ts::Indices& cell) { return cell == ts::Indices{3, 4, 5} ? 1000.0 : double(cell[0] % 2); });

    // A star of depth 1: faces only, no corners. One plan for each of the two arrays that take turns.
    const ts::HaloOptions faces{.stencil = {.kind = ts::StencilKind::star}};
    ts::HaloExchange halo_now({now}, faces), halo_next({next}, faces);
    ts::HaloExchange *halo = &halo_now, *other_halo = &halo_next;

    const ts::Box owned = shrunk(ts::Box::of_extents(now.extents()), 1);
    const ts::Box interior = shrunk(owned, 1);  // the cells that need no ghost
    const std::vector<ts::Box> edges = ts::subtract(owned, interior);
    for (int step = 0; step < steps; ++step) {
      halo->start();  // the ghosts are on their way
      diffuse(now, next, interior);
      halo->finish();  // the ghosts are there
      for (const ts::Box& edge : edges) diffuse(now, next, edge);
      std::swap(now, next);
      std::swap(halo, other_halo);
    }
    ts::for_each_owned(box, world.rank(), [&](const ts::Indices& local, const ts::Indices& cell) {
      result[std::size_t((cell[0] * extents[1] + cell[1]) * extents[2] + cell[2])] = now.get(local);
    });
  });
  return result;
}

}  // namespace

int main() try {
  const std::vector<double> together = simulate(ts::grid(2, 2, 1)), alone = simulate(ts::grid(1, 1, 1));
  std::size_t differing = 0;
  double heat = 0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    differing += together[i] != alone[i];
    heat += together[i];
  }
  std::printf("%d steps of %zu cells on 4 ranks and on 1: %zu cells differ, %.6f in all\n", steps, alone.size(),
              differing, heat);
  return differing == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "halo: %s\n", error.what());
  return EXIT_FAILURE;
}
