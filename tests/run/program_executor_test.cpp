// Programs on ranks: the plans that MSCCL++ wrote give what their collectives promise, for messages of every size,
// launch after launch, on every back-end.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>
#include <tranship/run/program_executor.hpp>

#include "support/mscclpp_plans.hpp"
#include "support/program_builder.hpp"
#include "support/program_mutants.hpp"
#include "support/random_channel_programs.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

using Element = std::int32_t;

Element brought(Rank rank, Index i, int launch) {
  return static_cast<Element>(
      splitmix64(std::uint64_t(rank) * 1'000'003 + std::uint64_t(i) * 31 + std::uint64_t(launch)));
}

Element combined(Reduction reduction, Element a, Element b) {
  switch (reduction) {
    case Reduction::sum:
      return static_cast<Element>(std::uint32_t(a) + std::uint32_t(b));
    case Reduction::minimum:
      return std::min(a, b);
    case Reduction::maximum:
      return std::max(a, b);
    default:
      return static_cast<Element>(std::uint32_t(a) * std::uint32_t(b));
  }
}

/// Element `i` of the output of `rank`, from the words of the collective.
Element promised(const std::string& collective, Rank ranks, Rank rank, Index i, Index elements, int launch,
                 Reduction reduction) {
  const auto sum_of = [&](Index at) {
    Element sum = brought(0, at, launch);
    for (Rank peer = 1; peer < ranks; ++peer) sum = combined(reduction, sum, brought(peer, at, launch));
    return sum;
  };
  if (collective == "allreduce") return sum_of(i);
  if (collective == "reducescatter") return sum_of(rank * (elements / ranks) + i);
  if (collective == "allgather") return brought(static_cast<Rank>(i / elements), i % elements, launch);
  const Index block = elements / ranks;
  return brought(static_cast<Rank>(i / block), rank * block + i % block, launch);
}

void launch_and_compare(World& world, const Program& program, Index elements, Reduction reduction) {
  ProgramExecutor executor(world, program, elements, {.type = ElementType::i32, .reduction = reduction});
  std::vector<Element> input(static_cast<std::size_t>(elements)),
      output(std::size_t(executor.output_elements()) + 2, 77);
  Rank source = -1;  // of a sendrecv
  for (int launch = 0; launch < 4; ++launch) {
    for (Index i = 0; i < elements; ++i) input[std::size_t(i)] = brought(world.rank(), i, launch);
    executor.run(input.data(), output.data() + 1);
    require(output.front() == 77 && output.back() == 77, "beside the output of {}", program.name);
    if (program.collective == "sendrecv" && source < 0 && elements > 0)
      for (Rank rank = 0; rank < world.size(); ++rank)
        if (brought(rank, 0, launch) == output[1]) source = rank;
    for (Index i = 0; i < executor.output_elements(); ++i) {
      const Element wanted = program.collective == "sendrecv" ? brought(source, i, launch)
                                                              : promised(program.collective, world.size(), world.rank(),
                                                                         i, elements, launch, reduction);
      require(output[std::size_t(i) + 1] == wanted, "{}: element {} of {} in launch {} is {}, not {}", program.name, i,
              elements, launch, output[std::size_t(i) + 1], wanted);
    }
  }
}

class Plans : public ::testing::TestWithParam<On> {};
INSTANTIATE_TEST_SUITE_P(On, Plans, ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts),
                         [](const auto& info) { return name_of(info.param); });

/// More ranks take minutes where each access is looked at.
int ranks_max(On on) {
#if defined(TRANSHIP_TSAN)
  return on == On::threads ? 4 : 2;
#else
  return is_simulated(on) ? 4 : 16;
#endif
}

TEST_P(Plans, give_what_they_promise) {
  auto cases = mscclpp_plans();
  for (const PlanCase& one : old_mscclpp_plans()) cases.push_back(one);
  int ran = 0;
  for (const PlanCase& one : cases) {
    const Program program = read_program(text_of_file(one.path));
    const auto ranks = static_cast<int>(program.ranks.size());
    const Verification verified = verify(program);
    if (!verified.is_right() || !verified.knows_result) continue;
    if (ranks > ranks_max(GetParam())) continue;
    const Reduction reductions[] = {Reduction::sum, Reduction::minimum, Reduction::maximum, Reduction::product};
    const Index few[] = {0, 1, 5}, more[] = {130, 1, 4099};
    for (int i = 0; i < 2; ++i) {
      const Index each = (is_simulated(GetParam()) ? few : more)[(ran + i) % 3];
      const Reduction reduction = reductions[ran++ % 4];
      const auto body = [&](World& world) { launch_and_compare(world, program, each * ranks, reduction); };
      if (is_simulated(GetParam()))
        run_once(GetParam(), {.ranks = ranks}, std::uint64_t(ran), body);
      else
        run_on(GetParam(), ranks, body);
    }
  }
  EXPECT_GT(ran, 20);
}

/// So many programs, a part of them where they are simulated or each access is looked at.
std::uint64_t random_programs(On on) {
  const char* const cases = std::getenv("TRANSHIP_TEST_CASES");
#if defined(TRANSHIP_SANITIZED)
  const std::uint64_t standard = 4;
#else
  const std::uint64_t standard = on == On::processes ? 8 : 20;
#endif
  return cases ? std::strtoull(cases, nullptr, 10) / (is_simulated(on) ? 1 : 4) + 1 : standard;
}

TEST_P(Plans, random_programs_give_what_they_promise) {
  const std::uint64_t programs = random_programs(GetParam());
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = random_channel_program(seed, std::min(4, ranks_max(GetParam())));
    const auto ranks = static_cast<int>(program.ranks.size());
    const Index sizes[] = {1, 5, 33, 260};
    const Index each = sizes[seed % (is_simulated(GetParam()) ? 3 : 4)];
    Reduction reduction = Reduction::sum;
    for (const ThreadBlock& block : program.ranks[0].blocks)
      for (const Step& step : block.steps)
        if (step.reduction != Reduction::sum) reduction = step.reduction;
    const auto body = [&](World& world) { launch_and_compare(world, program, each * ranks, reduction); };
    run_once(GetParam(), {.ranks = ranks}, seed, body);
  }
}

/// Each seed is another order of everything; 100 of them in the long tests.
TEST(PlansInSim, give_what_they_promise_under_every_seed) {
  const bool is_long = std::getenv("TRANSHIP_TEST_LONG") != nullptr;
  auto cases = mscclpp_plans();
  for (const PlanCase& one : old_mscclpp_plans()) cases.push_back(one);
  for (const PlanCase& one : cases) {
    const Program program = read_program(text_of_file(one.path));
    const auto ranks = static_cast<int>(program.ranks.size());
    const Verification verified = verify(program);
    if (!verified.is_right() || !verified.knows_result || ranks > (is_long ? 8 : 2)) continue;
    for (std::uint64_t seed = 0; seed < (is_long ? 100u : 3u); ++seed) {
      const auto body = [&](World& world) { launch_and_compare(world, program, 3 * ranks, Reduction::sum); };
      run_once(seed % 2 == 0 ? On::sim : On::hosts, {.ranks = ranks}, seed, body);
    }
  }
}

/// Plans with a mistake that the verifier accepts give what they promise all the same.
TEST(PlansInSim, accepted_mutants_give_what_they_promise) {
  int ran = 0;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program right = read_program(text_of_file(one.path));
    if (!one.result.starts_with("ok") || right.ranks.size() > 2 || count_steps(right) > 44) continue;
    int accepted = 0;
    for_each_mutant(right, [&](const Program& mutant, const std::string& what) {
      constexpr int each_max = 12;
      if (accepted == each_max) return;
      try {
        const Verification said = verify(mutant);
        if (!said.is_right() || !said.knows_result) return;
      } catch (const Error&) {
        return;
      }
      ++accepted;
      const auto body = [&](World& world) {
        launch_and_compare(world, mutant, 3 * Index(mutant.ranks.size()), Reduction::sum);
      };
      SCOPED_TRACE(one.name + ": " + what);
      for (std::uint64_t seed = 0; seed < 3; ++seed, ++ran)
        EXPECT_NO_THROW(run_once(On::sim, {.ranks = static_cast<int>(mutant.ranks.size())}, seed, body));
    });
  }
  EXPECT_GT(ran, 20);
}

/// Each rank reads the inputs of all without having asked whether they are there: right where all ranks meet between
/// launches, and nowhere else.
Program hasty_allreduce(Rank ranks) {
  ProgramBuilder builder("allreduce", ranks, {1, 1, 0});
  for (Rank rank = 0; rank < ranks; ++rank) {
    std::vector<Chunks> sources;
    for (Rank i = 0; i < ranks; ++i) sources.push_back({(rank + i) % ranks, BufferKind::input, 0, 1});
    builder.at(rank).move(StepKind::read_reduce, sources, {{rank, BufferKind::output, 0, 1}});
  }
  return std::move(builder.program());
}

TEST_P(Plans, of_ranks_that_must_meet_between_launches) {
  const Program program = hasty_allreduce(2);
  ASSERT_TRUE(verify(program).needs_meeting);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto body = [&](World& world) { launch_and_compare(world, program, 5, Reduction::sum); };
    run_once(GetParam(), {.ranks = 2}, seed, body);
  }
}

}  // namespace
}  // namespace tranship::test
