// halo: all 26 neighbours of a periodic cube of doubles, n x n x n cells a rank, beside MPI, PETSc and loops by hand.
// "split slowest": ranks are neighbours along the slowest dimension, rows go over whole; "split stride-1": along the
// fastest one, runs as long as the halo is wide go over. The limit is memcpy of as many bytes as there are ghosts, from
// the arrays of those who own them, after they were rewritten where data is fresh; "lines" is memcpy of as many lines
// as the exchange touches. "stencil": a 7-point stencil between start() and finish(), beside exchange and stencil in
// sequence; its limit is the stencil without any exchange.
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/contest_case.hpp>

namespace {

using namespace tranship;
using bench::GoalRule;
using bench::Rivals;
using contest::Freshness;
using contest::Work;

enum class Split { slowest, stride_1, all };

const char* name_of(Split split) {
  return split == Split::slowest ? "split slowest" : split == Split::stride_1 ? "split stride-1" : "2x2x2";
}

Work cube(std::int64_t n, int width, int fields, Split split) {
  Work work;
  work.task = contest::Task::halo;
  work.ranks = split == Split::all ? 8 : 2;
  work.dims = 3;
  for (int d = 0; d < 3; ++d) {
    const int parts = split == Split::all || (split == Split::slowest ? 0 : 2) == d ? 2 : 1;
    work.axes[d] = {n * parts, {parts, 0}, {}};
  }
  work.width = width;
  work.fields = fields;
  return work;
}

/// The goals of the case that published figures exist for; every other case must be ahead of every peer.
std::vector<GoalRule> goals_of(std::int64_t n, int width, int fields, Split split) {
  std::vector<GoalRule> goals = {{Rivals::everybody, 1.0}};
  if (n != 128 || width != 3) return goals;
  if (split == Split::all) return {{Rivals::mpi_calls, fields == 1 ? 2.5 : 2.2}, {Rivals::windows, 1.0}};
  if (split == Split::slowest)
    return {
        {Rivals::limit, fields == 1 ? 0.66 : 0.63}, {Rivals::mpi_calls, fields == 1 ? 2.5 : 2.8}, {Rivals::windows, 1}};
  return {
      {Rivals::limit, fields == 1 ? 0.40 : 0.44}, {Rivals::mpi_calls, fields == 1 ? 1.4 : 2.0}, {Rivals::windows, 1}};
}

std::string name_of(std::int64_t n, int width, int fields, Split split) {
  return fmt::format("{0}x{0}x{0} a rank, width {1}, {2}, {3} field{4}, {5} ranks", n, width, name_of(split), fields,
                     fields == 1 ? "" : "s", split == Split::all ? 8 : 2);
}

void measure_stencils(bench::Report& report, std::int64_t n) {
  for (const Split split : {Split::slowest, Split::stride_1}) {
    Work work = cube(n, 1, 1, split);
    work.task = contest::Task::stencil;
    measure(report,
            {.name = fmt::format("stencil between start and finish, {0}x{0}x{0} a rank, {1}", n, name_of(split)),
             .work = work,
             .states = {Freshness::fresh, Freshness::warm}});
  }
}

}  // namespace

TRANSHIP_BENCH(halo, "26 neighbours of periodic cubes, against MPI and PETSc; overlap with a stencil") {
  std::vector<std::int64_t> sizes = {16, 32, 64, 128};
  std::vector<int> widths = {1, 3};
  std::vector<Freshness> states = {Freshness::fresh, Freshness::warm, Freshness::cold};
  if (report.is_quick()) {
    sizes = {32};
    widths = {3};
    states.pop_back();
  }
  for (const std::int64_t n : sizes)
    for (const Split split : {Split::slowest, Split::stride_1})
      for (const int width : widths)
        for (const int fields : {1, 8})
          measure(report, {.name = name_of(n, width, fields, split),
                           .work = cube(n, width, fields, split),
                           .states = states,
                           .goals = goals_of(n, width, fields, split)});
  measure_stencils(report, sizes.back());
  for (const std::int64_t n : sizes)
    for (const int fields : {1, 8})
      measure(report, {.name = name_of(n, 3, fields, Split::all),
                       .work = cube(n, 3, fields, Split::all),
                       .states = {Freshness::fresh, Freshness::warm},
                       .goals = goals_of(n, 3, fields, Split::all)});
}
