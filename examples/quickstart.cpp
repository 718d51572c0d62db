// Shows the three calls: describe, plan, run. Blocks of rows become cyclic tiles, as dense solvers use, and come back.
// Prints the shapes that rank 0 holds, and how its part of the exchange runs.
// Run: build/release/bin/example_quickstart
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tranship/tranship.hpp>

namespace ts = tranship;

namespace {

double entry(const ts::Indices& cell) {
  return double(cell[0]) + 1e-4 * double(cell[1]);
}

}  // namespace

int main() try {
  ts::launch(4, [](ts::World& world) {
    // Describe: where the data is, and where it must be.
    const auto rows = ts::distribution({1024, 1024}, ts::grid(4, 1), {ts::block(), ts::whole()});
    const auto tiles = ts::distribution({1024, 1024}, ts::grid(2, 2), {ts::cyclic(64), ts::cyclic(64)});
    ts::Array<double> a(world, rows), b(world, tiles), c(world, rows);

    // Plan: collective, once.
    ts::Redistribution turn(a, b), turn_back(b, c);

    // Run: as often as you like.
    a.fill_owned(entry);
    turn();
    turn_back();

    const ts::Index wrong = b.count_wrong(entry) + c.count_wrong(entry);
    if (world.rank() == 0) {
      std::printf("rank 0 had %lld x %lld cells in rows and has %lld x %lld in tiles\n", (long long)a.extents()[0],
                  (long long)a.extents()[1], (long long)b.extents()[0], (long long)b.extents()[1]);
      std::printf("how its part of the turn runs:\n%s", turn.explain().c_str());
    }
    if (wrong != 0) throw ts::Error(ts::ErrorCode::internal, std::to_string(wrong) + " cells are wrong");
  });
  std::puts("every cell arrived, there and back");
} catch (const std::exception& error) {
  std::fprintf(stderr, "quickstart: %s\n", error.what());
  return EXIT_FAILURE;
}
