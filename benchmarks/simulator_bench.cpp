// simulator: the cost of a simulated run, against the data that it moves and the number of ranks. Time must grow about
// in proportion to the messages, and checking the order of accesses must not dominate a run.
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>
#include <simulated_stencil.hpp>

#include <tranship/array/pipe.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/collectives/world_collectives.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/tranship.hpp>

namespace {

using namespace tranship;

struct Case {
  std::string name;
  int ranks;
  std::function<void(World&)> body;
  std::optional<double> target_ms = std::nullopt;
};

SimulationReport run(const Case& one, OrderChecks order) {
  return simulate(
      {.ranks = one.ranks, .order = order, .heap_bytes = std::size_t(4) << 20, .steps_max = std::int64_t(1) << 40},
      one.body);
}

Case allreduce(int ranks, const char* algorithm, Index size_bytes, std::optional<double> target_ms = std::nullopt) {
  return {fmt::format("{} of {} bytes, {} ranks", algorithm, size_bytes, ranks), ranks,
          [=](World& world) {
            WorldCollectives all(world);
            all.use(algorithm);
            std::vector<float> from(std::size_t(size_bytes) / sizeof(float)), to(from.size());
            all.all_reduce(to, from, Reduction::sum);
          },
          target_ms};
}

Case corner_turn(int ranks, std::optional<double> target_ms = std::nullopt) {
  return {fmt::format("a corner turn, {} ranks", ranks), ranks,
          [](World& world) {
            const Index n = 2 * world.size();
            const Array<double> rows(world, Distribution({n, n}, grid(world.size(), 1), {block(), whole()}));
            const Array<double> columns(world, Distribution({n, n}, grid(1, world.size()), {whole(), block()}));
            Redistribution turn(rows, columns);
            turn();
          },
          target_ms};
}

Case pipes(int count) {
  return {fmt::format("{} pipes, a frame each", count), 2, [count](World& world) {
            const auto on = [](Rank rank) {
              return ArraySpec{ElementType::f64, Distribution({8}, Grid({1}, {.first = rank}), {whole()})};
            };
            std::vector<Pipe> all;
            for (int i = 0; i < count; ++i) all.emplace_back(world, on(0), on(1));
            for (Pipe& pipe : all) {
              if (pipe.sends()) {
                pipe.sender().get();
                pipe.sender().put();
              }
              if (pipe.receives()) {
                pipe.receiver().get();
                pipe.receiver().put();
              }
            }
            for (Pipe& pipe : all)
              if (pipe.sends()) pipe.sender().drain();
          }};
}

Case halos(int ranks, int steps) {
  return {fmt::format("{} steps of a 2-D halo, {} ranks", steps, ranks), ranks, [steps](World& world) {
            const Partition ring = block().with_overlap(1, 1, EdgePolicy::toroidal);
            const Index n = 8;
            const Array<double> field(world, Distribution({n, n * world.size()}, grid(1, world.size()), {ring, ring}));
            HaloExchange halo({field});
            for (int i = 0; i < steps; ++i) halo();
          }};
}

Index resident_bytes() {
  Index pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * Index(page_bytes());
}

/// Returns the memory of a rank that has met all others. It must run before the other cases: memory that they free
/// would be used again.
double bytes_per_rank(int ranks) {
  const Index before = resident_bytes();
  Index during = 0;
  simulate({.ranks = ranks}, [&](World& world) {
    world.barrier();
    if (world.rank() == 0) during = resident_bytes();
    world.barrier();
  });
  return double(during - before) / ranks;
}

using Stencil = double (*)(World&, int, int);

/// Measures how many times as long a program takes that is built with race hooks: in a simulation, which observes its
/// loads and stores, and outside of one.
void measure_hooks(bench::Report& report) {
  constexpr int ranks = 4, size = 128, steps = 20;
  const auto under_a_seed = [](Stencil stencil) {
    double sum = 0;
    simulate({.ranks = ranks, .seed = 1}, [&](World& world) { sum += stencil(world, size, steps); });
    return sum;
  };
  const auto alone = [](Stencil stencil) {
    double sum = 0;
    launch(1, [&](World& world) { sum = stencil(world, size, ranks * steps); });
    return sum;
  };
  const auto measure = [&](const std::string& name, const auto& run, std::optional<double> target) {
    if (!report.wants(name)) return;
    report.announce(name);
    const double plain = run(simulated::stencil_plain), hooked = run(simulated::stencil_hooked);
    if (plain != hooked)
      throw_error(ErrorCode::internal, "the plain stencil gives {}, the hooked one {}", plain, hooked);
    const std::vector<double> ns =
        bench::medians_ns({{[&] { run(simulated::stencil_plain); }}, {[&] { run(simulated::stencil_hooked); }}},
                          report.measure_options());
    report.add({.name = name, .unit = "times the plain program", .ours = ns[1] / ns[0], .target = target});
  };
  measure(fmt::format("race hooks, a stencil of {0}x{0} cells on {1} ranks", size, ranks), under_a_seed, 20);
  measure("race hooks, the same on 1 rank outside of a simulation", alone, std::nullopt);
}

}  // namespace

TRANSHIP_BENCH(simulator, "simulated runs against messages and ranks, and the cost of hooks") {
  constexpr int many = 256;
  report.add({.name = fmt::format("memory of a rank, of {}", many), .unit = "KB", .ours = bytes_per_rank(many) / 1024});
  constexpr double half_a_second_ms = 500;
  std::vector<Case> cases = {
      allreduce(8, "allreduce/packets", 512),
      allreduce(8, "allreduce/packets", 2048),
      corner_turn(14),
      corner_turn(56, half_a_second_ms),
      pipes(50),
      pipes(200),
      halos(16, 20),
  };
  if (!report.is_quick()) cases.push_back(allreduce(8, "allreduce/packets", 8192));
  std::vector<bench::Contestant> contestants;
  for (const Case& one : cases)
    for (const OrderChecks order : {OrderChecks::on, OrderChecks::off})
      contestants.push_back({[&one, order] { (void)run(one, order); }});
  const std::vector<double> ns = bench::medians_ns(contestants, report.measure_options());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    report.add({.name = cases[i].name, .unit = "ms", .ours = ns[2 * i] * 1e-6, .target = cases[i].target_ms});
    report.add({.name = cases[i].name + ", order unchecked", .unit = "ms", .ours = ns[2 * i + 1] * 1e-6});
  }
  measure_hooks(report);
}
