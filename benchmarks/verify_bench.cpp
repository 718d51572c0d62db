// verify: the cost of proving a program: allreduces of many ranks, and programs with a growing number of steps, whose
// time must grow in proportion.
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <harness/registry.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/program/verify.hpp>

#include "support/large_programs.hpp"

namespace {

using namespace tranship;

struct Case {
  std::string name;
  Program program;
  std::optional<double> target_ms = std::nullopt;
};

}  // namespace

TRANSHIP_BENCH(verify, "proving programs, against ranks and steps") {
  constexpr double second_ms = 1000;
  std::vector<Case> cases;
  std::vector<Rank> worlds = {8, 64};
  if (!report.is_quick()) worlds.push_back(128);
  for (const Rank ranks : worlds) {
    const auto target = ranks <= 64 ? std::optional(second_ms) : std::nullopt;
    cases.push_back({fmt::format("allreduce of all pairs, {} ranks, 4 blocks", ranks),
                     test::all_pairs_allreduce(ranks, 4), target});
    cases.push_back({fmt::format("allreduce of a ring, {} ranks", ranks), test::ring_allreduce(ranks), target});
    cases.push_back({fmt::format("allreduce by packets, {} ranks", ranks), test::packets_allreduce(ranks), target});
  }
  std::vector<Index> lengths = {10'000, 100'000};
  if (!report.is_quick()) lengths.push_back(1'000'000);
  for (const Index steps : lengths)
    for (const Rank ranks : {8, 64})
      cases.push_back({fmt::format("{} steps of {} ranks", steps, ranks), test::long_ring(ranks, steps)});

  std::vector<bench::Contestant> contestants;
  for (const Case& one : cases) {
    if (const Verification said = verify(one.program); !said.is_right())
      throw_error(ErrorCode::invalid_use, "{}: {}", one.name, said.text());
    contestants.push_back({[&one] { (void)verify(one.program); }});
  }
  const std::vector<double> ns = bench::medians_ns(contestants, report.measure_options());
  for (std::size_t i = 0; i < cases.size(); ++i)
    report.add({.name = fmt::format("{} ({} steps)", cases[i].name, count_steps(cases[i].program)),
                .unit = "ms",
                .ours = ns[i] * 1e-6,
                .target = cases[i].target_ms});
}
