// planning: the cost of a plan on one rank, against the extent, the number of ranks and the number of dimensions. Time
// and size must not grow with the extent, and must stay far below the number of pairs of ranks. Other cases measure the
// use of plans and layouts before anything moves: they are checked, explained, loaded, relabelled and connected.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/array/pipe.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/plan/check_plan.hpp>
#include <tranship/plan/explain.hpp>
#include <tranship/plan/halo.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/plan/redistribution.hpp>
#include <tranship/plan/relabel.hpp>

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

constexpr double second_us = 1e6;

/// A case without a contestant beside it; each makes a row.
struct Act {
  std::string name;
  std::function<void()> run;
  double target_us;
};

void measure(bench::Report& report, const std::vector<Act>& acts) {
  for (const Act& act : acts) {
    if (!report.wants(act.name)) continue;
    const std::vector<double> ns = bench::medians_ns({{act.run}}, report.measure_options());
    report.add({.name = act.name, .unit = "us", .ours = ns[0] * 1e-3, .target = act.target_us});
  }
}

/// Returns the distribution with its parts dealt to the same ranks in a random order.
Distribution shuffled(const Distribution& distribution) {
  std::vector<Rank> ranks = distribution.grid().ranks();
  SplitMix64 random(1);
  for (std::size_t i = ranks.size() - 1; i > 0; --i) std::swap(ranks[i], ranks[random.next() % (i + 1)]);
  return distribution.on_ranks(std::move(ranks));
}

/// Blocks of random sizes.
Partition random_blocks(Index extent, Index parts, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<Index> bounds{0, extent};
  for (Index part = 1; part < parts; ++part) bounds.push_back(Index(random.next() % std::uint64_t(extent)));
  std::sort(bounds.begin(), bounds.end());
  return irregular(std::move(bounds));
}

/// Blocks without a common factor meet in lattices, whatever the extent.
void measure_walks(bench::Report& report) {
  std::vector<Act> acts;
  std::vector<std::unique_ptr<TransferPlan>> plans;
  for (const auto& [a, b] : {std::pair<Index, Index>(9973, 10'007), {1'000'003, 1'000'033}})
    for (const Index n : {Index(1'000'000'000), Index(1'000'000'000'000), Index(1'000'000'000'000'000)}) {
      const TransferPlan& plan = *plans.emplace_back(std::make_unique<TransferPlan>(
          plan_redistribution(spec({n}, grid(4), {cyclic(a)}), spec({n}, grid(5), {cyclic(b)}), 1)));
      const std::string name = fmt::format("cyclic 4x{} to 5x{}, N = {:.0e}", a, b, double(n));
      acts.push_back({name + ", explained", [&plan] { (void)explain_text(plan); }, 5000});
      acts.push_back({name + ", checked", [&plan] { check_plan(plan).value(); }, 500});
    }
  measure(report, acts);
}

void measure_relabelling(bench::Report& report) {
  const Index parts = 2048, n = 100'000'000;
  const auto line = [&](const Partition& cut) { return Distribution({n}, grid(parts), {cut}); };
  const auto act = [&](const std::string& what, const Distribution& from, const Distribution& to) {
    return Act{fmt::format("relabel {} parts, {}", parts, what), [from, to] { (void)relabel(from, to); },
               second_us / 2};
  };
  std::vector<Act> acts{act("block to cyclic 64, shuffled", line(block()), shuffled(line(cyclic(64))))};
  if (!report.is_quick()) {
    acts.push_back(act("cyclic 64 to cyclic 100, shuffled", line(cyclic(64)), shuffled(line(cyclic(100)))));
    acts.push_back(act("blocks of random sizes", line(random_blocks(n, parts, 1)), line(random_blocks(n, parts, 2))));
    acts.push_back(act("blocks of random sizes to cyclic 64", line(random_blocks(n, parts, 1)), line(cyclic(64))));
    acts.push_back(act("3-D tiles, shuffled",
                       Distribution({960, 960, 960}, grid(8, 16, 16), {cyclic(3), block(), cyclic(5)}),
                       shuffled(Distribution({960, 960, 960}, grid(16, 4, 32), {cyclic(1), block(), cyclic(2)}))));
  }
  measure(report, acts);
}

void measure_loading(bench::Report& report) {
  const Index peers = 100'000;
  if (!report.wants("load a plan")) return;
  const std::string text = save_plan(plan_redistribution(spec({peers, peers}, grid(peers, 1), {block(), whole()}),
                                                         spec({peers, peers}, grid(1, peers), {whole(), block()}), 3));
  measure(report, {{fmt::format("load a plan of {} peers", peers), [&] { (void)load_plan(text); }, second_us / 2}});
}

/// The ranks are threads. Each channel has memory of its own, which is not touched before it is used.
void measure_connecting(bench::Report& report) {
  const std::string name = "connect a channel of 2e8 elements, cyclic 64 to cyclic 100, 4 ranks";
  if (!report.wants(name)) return;
  std::vector<double> us;
  launch(4, [&](World& world) {
    const Index n = 200'000'000;
    const ArraySpec from{ElementType::u8, Distribution({n}, grid(4), {cyclic(64)})};
    const ArraySpec to{ElementType::u8, Distribution({n}, grid(4), {cyclic(100)})};
    for (int round = 0; round < 15; ++round) {
      world.barrier();
      const auto start = std::chrono::steady_clock::now();
      const Pipe pipe(world, from, to, {.from = {.count = 1}, .to = {.count = 1}});
      world.barrier();
      if (world.rank() == 0)
        us.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
      world.barrier();
    }
  });
  report.add({.name = name, .unit = "us", .ours = bench::median(us), .target = 5000});
}

/// Returns a grid of `ranks` (a power of two) over `dims` dimensions, as square as possible.
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

  measure_walks(report);
  measure_relabelling(report);
  measure_loading(report);
  measure_connecting(report);
}
