// planning: what it costs one rank to plan, against the extent, the number of ranks and the number of dimensions. Time
// and size must not grow with the extent, and must stay far below the number of pairs of ranks.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/plan/halo.hpp>
#include <tranship/plan/redistribution.hpp>

namespace {

using namespace tranship;
using bench::Better;

ArraySpec spec(const Indices& extents, Grid grid, std::vector<Partition> partitions) {
  return {ElementType::f64, Distribution(extents, std::move(grid), std::move(partitions))};
}

struct Case {
  std::string name;
  std::function<TransferPlan()> plan;
  std::optional<double> target_us = std::nullopt;
};

void measure(bench::Report& report, const std::vector<Case>& cases) {
  std::vector<bench::Contestant> contestants;
  std::vector<Index> runs;
  for (const Case& c : cases) {
    runs.push_back(c.plan().stored_runs());
    contestants.push_back({[&c] { (void)c.plan(); }});
  }
  const std::vector<double> ns = bench::medians_ns(contestants, report.measure_options());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    report.add({.name = cases[i].name + ", time", .unit = "us", .ours = ns[i] * 1e-3, .target = cases[i].target_us});
    report.add({.name = cases[i].name + ", size", .unit = "runs", .ours = double(runs[i])});
  }
}

/// A grid of `ranks` (a power of two) over `dims` dimensions, as square as it gets.
Indices square_grid(int dims, Index ranks) {
  Indices out = Indices::filled(dims, 1);
  for (int d = 0; ranks > 1; d = (d + 1) % dims, ranks /= 2) out[d] *= 2;
  return out;
}

}  // namespace

TRANSHIP_BENCH(planning, "one rank's plan against extent, ranks and dimensions") {
  std::vector<Case> cases;

  // One size for every extent: block-cyclic with overlap, 16 ranks to 24.
  for (const Index n : {Index(1'000'000), Index(1'000'000'000), Index(1'000'000'000'000)})
    cases.push_back({fmt::format("cyclic 16x64 to 24x100, overlap 3, N = {:.0e}", double(n)), [n] {
                       const ArraySpec from = spec({n}, grid(16), {cyclic(64)});
                       const ArraySpec to = spec({n}, grid(24), {cyclic(100).with_overlap(3, 3, EdgePolicy::toroidal)});
                       return plan_redistribution(from, to, 5);
                     }});

  // Against the number of ranks: a corner turn of the whole world, in which each rank has a message for every other.
  std::vector<Index> worlds = {64, 4096};
  if (!report.is_quick()) worlds = {64, 512, 4096, 32'768, 65'536};
  for (const Index ranks : worlds)
    cases.push_back({fmt::format("2-D rows to columns, {} ranks", ranks), [ranks] {
                       const Index n = 1 << 20;
                       const ArraySpec from = spec({n, n}, grid(ranks, 1), {block(), whole()});
                       const ArraySpec to = spec({n, n}, grid(1, ranks), {whole(), block()});
                       return plan_redistribution(from, to, Rank(ranks / 3));
                     }});
  for (const Index ranks : worlds) {
    // Pencils: x is whole before, y after.
    const Indices square = square_grid(2, ranks);
    cases.push_back(
        {fmt::format("3-D pencils x to y, {} ranks", ranks),
         [ranks, square] {
           const Index n = 4096;
           const ArraySpec from = spec({n, n, n}, Grid({1, square[0], square[1]}), {whole(), block(), block()});
           const ArraySpec to = spec({n, n, n}, Grid({square[0], 1, square[1]}), {block(), whole(), block()});
           return plan_redistribution(from, to, Rank(ranks / 3));
         },
         ranks == 4096 ? std::optional<double>(20'000) : std::nullopt});
    cases.push_back({fmt::format("3-D cyclic 8 to cyclic 12, {} ranks", ranks),
                     [ranks] {
                       const Index n = 4096;
                       const Grid cube(square_grid(3, ranks));
                       const ArraySpec from = spec({n, n, n}, cube, {cyclic(8), cyclic(8), cyclic(8)});
                       const ArraySpec to = spec({n, n, n}, cube, {cyclic(12), cyclic(12), cyclic(12)});
                       return plan_redistribution(from, to, Rank(ranks / 3));
                     },
                     ranks == 4096 ? std::optional<double>(20'000) : std::nullopt});
    cases.push_back(
        {fmt::format("3-D halo of 26 neighbours, {} ranks", ranks), [ranks] {
           const Index n = 4096;
           const Partition ring = block().with_overlap(3, 3, EdgePolicy::toroidal);
           const std::vector<ArraySpec> fields = {spec({n, n, n}, Grid(square_grid(3, ranks)), {ring, ring, ring})};
           return plan_halo(fields, Rank(ranks / 3));
         }});
  }

  // Against the number of dimensions, 256 ranks.
  for (int dims = 1; dims <= dims_max; ++dims)
    cases.push_back({fmt::format("block to cyclic 4, {}-D, 256 ranks", dims), [dims] {
                       const Indices extents = Indices::filled(dims, 96);
                       const Grid square(square_grid(dims, 256));
                       const ArraySpec from = spec(extents, square, std::vector<Partition>(dims, block()));
                       const ArraySpec to = spec(extents, square, std::vector<Partition>(dims, cyclic(4)));
                       return plan_redistribution(from, to, 85);
                     }});
  measure(report, cases);
}
