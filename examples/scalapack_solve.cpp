// Shows ScaLAPACK's pdgesv on matrices that tranship moves from rows to cyclic tiles; see docs/scalapack.md.
// Prints the number of equations and the largest error of the solution.
// Run: mpirun -n 6 build/release/bin/example_scalapack_solve (built where ScaLAPACK and Open MPI are installed)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <tranship/tranship.hpp>

namespace ts = tranship;

extern "C" {
void Cblacs_pinfo(int* process, int* processes);
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridexit(int context);
void Cblacs_exit(int keeps_mpi);
void Cigebs2d(int context, const char* scope, const char* topology, int rows, int columns, int* a, int leading);
void Cigebr2d(int context, const char* scope, const char* topology, int rows, int columns, int* a, int leading,
              int from_row, int from_column);
void pdgesv_(const int* n, const int* right_sides, double* a, const int* a_row, const int* a_column,
             const int* a_descriptor, int* pivots, double* b, const int* b_row, const int* b_column,
             const int* b_descriptor, int* info);
}

namespace {

constexpr int n = 300, right_sides = 7, block = 16;

/// A descriptor's nine numbers, by their names in ScaLAPACK's guide.
enum Field { DTYPE, CTXT, M, N, MB, NB, RSRC, CSRC, LLD };

struct Processes {
  int context = 0;  // of BLACS
  int rows = 1, columns = 1;
};

/// Cells in the last tile count as well, so no process has more rows.
int rows_max(int extent, const Processes& grid) {
  const int tiles = (extent + block - 1) / block;
  return (tiles + grid.rows - 1) / grid.rows * block;
}

/// The layout that a descriptor describes, where all processes have the same LLD.
ts::Distribution layout_of(const std::vector<int>& descriptor, const Processes& grid) {
  std::vector<ts::Rank> ranks;  // of the parts: the first one is held by the source process
  for (int p = 0; p < grid.rows; ++p)
    for (int q = 0; q < grid.columns; ++q)
      ranks.push_back((p + descriptor[RSRC]) % grid.rows * grid.columns + (q + descriptor[CSRC]) % grid.columns);
  return {{descriptor[M], descriptor[N]},
          ts::Grid({grid.rows, grid.columns}, {.ranks = ranks}),
          {ts::cyclic(descriptor[MB]), ts::cyclic(descriptor[NB])},
          {.strides = {1, descriptor[LLD]}}};
}

double a_entry(ts::Index i, ts::Index j) {
  return double((7 * i + 3 * j) % 11) / 11 + (i == j ? n : 0);
}

double x_entry(ts::Index i, ts::Index k) {
  return 1 + double((3 * i + k) % 7);
}

double b_entry(ts::Index i, ts::Index k) {
  double sum = 0;
  for (ts::Index j = 0; j < n; ++j) sum += a_entry(i, j) * x_entry(j, k);
  return sum;
}

/// Process 0 makes the id of a world, and BLACS brings it to the others.
ts::WorldId world_id(const Processes& grid, int process) {
  int words[ts::WorldId::size_bytes / sizeof(int)];
  ts::WorldId id;
  if (process == 0) {
    id = ts::WorldId::make();
    std::memcpy(words, id.bytes.data(), sizeof words);
    Cigebs2d(grid.context, "All", " ", int(std::size(words)), 1, words, int(std::size(words)));
  } else {
    Cigebr2d(grid.context, "All", " ", int(std::size(words)), 1, words, int(std::size(words)), 0, 0);
    std::memcpy(id.bytes.data(), words, sizeof words);
  }
  return id;
}

/// Returns the largest error of the solution in this rank's rows. The program keeps rows of A and B, as it computes
/// them; ScaLAPACK wants cyclic tiles in column-major memory. To show all of a descriptor, the tiles begin at a process
/// that is not the first, and columns are further apart than they need be.
double solve(ts::World& world, const Processes& grid) {
  const int leading = rows_max(n, grid) + 5;
  const int from_row = grid.rows - 1, from_column = grid.columns / 2;
  const std::vector<int> a_descriptor = {1, grid.context, n, n, block, block, from_row, from_column, leading};
  const std::vector<int> b_descriptor = {1, grid.context, n, right_sides, block, block, from_row, from_column, leading};

  const auto rows_of = [&](int columns) {
    return ts::distribution({n, columns}, ts::grid(world.size(), 1), {ts::block(), ts::whole()});
  };
  ts::Array<double> a(world, rows_of(n)), b(world, rows_of(right_sides));
  ts::Array<double> a_tiles(world, layout_of(a_descriptor, grid)), b_tiles(world, layout_of(b_descriptor, grid));
  a.fill_owned([](const ts::Indices& cell) { return a_entry(cell[0], cell[1]); });
  b.fill_owned([](const ts::Indices& cell) { return b_entry(cell[0], cell[1]); });

  ts::Redistribution({{a, a_tiles}, {b, b_tiles}})();  // one message for each pair of ranks
  std::vector<int> pivots(std::size_t(rows_max(n, grid) + block));
  const int one = 1;
  int info = 0;
  pdgesv_(&n, &right_sides, a_tiles.data(), &one, &one, a_descriptor.data(), pivots.data(), b_tiles.data(), &one, &one,
          b_descriptor.data(), &info);
  if (info != 0) throw ts::Error(ts::ErrorCode::internal, "pdgesv returns " + std::to_string(info));
  ts::Redistribution(b_tiles, b)();

  double error = 0;
  ts::for_each_owned(b.distribution(), world.rank(), [&](const ts::Indices& local, const ts::Indices& cell) {
    error = std::max(error, std::abs(b.get(local) - x_entry(cell[0], cell[1])));
  });
  return error;
}

}  // namespace

/// Each process that mpirun starts is a process of BLACS and a rank of tranship, under one number; all are on one
/// machine.
int main() try {
  int process = 0, processes = 0;
  Cblacs_pinfo(&process, &processes);
  Processes grid;
  for (int rows = 1; rows * rows <= processes; ++rows)
    if (processes % rows == 0) grid.rows = rows;
  grid.columns = processes / grid.rows;
  Cblacs_get(-1, 0, &grid.context);
  Cblacs_gridinit(&grid.context, "Row", grid.rows, grid.columns);  // process p * columns + q is at (p, q)

  double error = 0;
  {
    ts::RankScope scope = ts::RankScope::join(world_id(grid, process), process, processes);
    for (const double one : scope.world().all_gather(solve(scope.world(), grid))) error = std::max(error, one);
  }
  if (process == 0)
    std::printf("%d equations, %d right sides on %d x %d processes: the largest error is %.1e\n", n, right_sides,
                grid.rows, grid.columns, error);
  Cblacs_gridexit(grid.context);
  Cblacs_exit(0);
  return error < 1e-9 ? EXIT_SUCCESS : EXIT_FAILURE;
} catch (const std::exception& error) {
  std::fprintf(stderr, "scalapack_solve: %s\n", error.what());
  return EXIT_FAILURE;
}
