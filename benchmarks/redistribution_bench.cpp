// redistribution: a matrix, or a cube in pencils, from one distribution to another, beside libraries and loops by hand.
// GB/s count the bytes of the array once. "transposed": from row blocks to column blocks, where the target's local
// memory lies in the other order of dimensions, as FFTW leaves it.
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_case.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Freshness;
using contest::Work;

void measure(bench::Report& report, std::string name, const Work& work, std::vector<GoalRule> goals) {
  measure(report, bench::ContestCase{.name = std::move(name),
                                     .work = work,
                                     .states = {Freshness::fresh, Freshness::warm},
                                     .goals = std::move(goals),
                                     .bytes = double(contest::cell_count(work)) * sizeof(double)});
}

/// n x n from p0 x p1 parts to q0 x q1, in blocks of `from` and of `to` cells (0: one block a part).
Work matrix(std::int64_t n, int p0, int p1, std::int64_t from, int q0, int q1, std::int64_t to) {
  Work work;
  work.ranks = p0 * p1;
  work.dims = 2;
  work.axes[0] = {n, {p0, from}, {q0, to}};
  work.axes[1] = {n, {p1, from}, {q1, to}};
  return work;
}

/// A cube whose first dimension is whole before, and whose second one is after.
Work pencils(std::int64_t n, int ranks) {
  Work work;
  work.ranks = ranks;
  work.dims = 3;
  work.axes[0] = {n, {1, 0}, {2, 0}};
  work.axes[1] = {n, {2, 0}, {1, 0}};
  work.axes[2] = {n, {ranks / 2, 0}, {ranks / 2, 0}};
  return work;
}

}  // namespace

TRANSHIP_BENCH(redistribution, "matrices and pencils between distributions, against MPI, FFTW, ScaLAPACK") {
  std::vector<std::int64_t> sizes = {1024};
  if (!report.is_quick()) sizes = {128, 512, 1024, 2048, 4096, 8192};
  for (const int ranks : {2, 4}) {
    for (const std::int64_t n : sizes) {
      const std::string suffix = fmt::format(", {0}x{0}, {1} ranks", n, ranks);
      // Matrices that stay in the caches have goals of their own, whatever the layouts.
      const auto goals = [&](std::vector<GoalRule> of_large) {
        return n >= 4096 ? of_large : std::vector<GoalRule>{{Rivals::by_call, 1.0}, {Rivals::windows, 0.85}};
      };
      Work turn = matrix(n, ranks, 1, 0, 1, ranks, 0);
      measure(report, "rows to columns, same order" + suffix, turn,
              goals({{Rivals::limit, 1.0}, {Rivals::mpi_calls, 1.6}, {Rivals::fftw, 6}, {Rivals::windows, 1}}));
      turn.order = contest::Order::transposed;
      measure(
          report, "rows to columns, transposed" + suffix, turn,
          goals({{Rivals::limit, 0.75}, {Rivals::packed_alltoallv, 3.4}, {Rivals::fftw, 3.9}, {Rivals::windows, 1}}));
      // On two ranks from rows of blocks to columns of blocks; on four both grids are 2x2.
      const int p1 = ranks / 2, q0 = ranks / 2;
      measure(report, fmt::format("cyclic 64 on 2x{} to cyclic 96 on {}x2", p1, q0) + suffix,
              matrix(n, 2, p1, 64, q0, 2, 96),
              goals({{Rivals::limit, 0.9}, {Rivals::alltoallw, 1.9}, {Rivals::scalapack, 8}, {Rivals::windows, 1}}));
    }
    const std::int64_t n = report.is_quick() ? 64 : 256;
    measure(report, fmt::format("pencils x to y, {0}x{0}x{0}, {1} ranks", n, ranks), pencils(n, ranks),
            {{Rivals::everybody, 1.0}});
  }
}
