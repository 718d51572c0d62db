// simulator: what programs cost that are simulated, under one seed.
#include <fmt/core.h>
#include <harness/registry.hpp>
#include <simulated_stencil.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/world.hpp>

namespace {

using namespace tranship;

/// How many times as long a program takes whose own loads and stores are seen.
void measure_hooks(bench::Report& report) {
  constexpr int ranks = 4, size = 128, steps = 20;
  const std::string name = fmt::format("race hooks, a stencil of {0}x{0} cells on {1} ranks", size, ranks);
  if (!report.wants(name)) return;
  report.announce(name);
  const auto run = [&](double (*stencil)(World&, int, int)) {
    double sum = 0;
    simulate({.ranks = ranks, .seed = 1}, [&](World& world) { sum += stencil(world, size, steps); });
    return sum;
  };
  const double plain = run(simulated::stencil_plain), hooked = run(simulated::stencil_hooked);
  if (plain != hooked) throw_error(ErrorCode::internal, "the plain stencil gives {}, the hooked one {}", plain, hooked);
  const std::vector<double> ns = bench::medians_ns(
      {{[&] { run(simulated::stencil_plain); }}, {[&] { run(simulated::stencil_hooked); }}}, report.measure_options());
  report.add({.name = name, .unit = "times the plain program", .ours = ns[1] / ns[0], .target = 20});
}

}  // namespace

TRANSHIP_BENCH(simulator, "what simulated programs cost") {
  measure_hooks(report);
}
