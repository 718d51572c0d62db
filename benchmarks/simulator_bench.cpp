// simulator: what programs cost that are simulated, under one seed.
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>
#include <simulated_stencil.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/world.hpp>

namespace {

using namespace tranship;

using Stencil = double (*)(World&, int, int);

/// How many times as long a program takes whose own loads and stores are seen, and where they could be, but nothing is
/// simulated.
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

TRANSHIP_BENCH(simulator, "what simulated programs cost") {
  measure_hooks(report);
}
