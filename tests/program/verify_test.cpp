// What the verifier says of plans that are known to be right, and of those that hang.
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

// Two plans go wrong when one block is late: the shares of one step are not those of another one on other chunks, and
// nothing orders their blocks; and two ranks overwrite each other's inputs while they are sent.
bool races(const std::string& name) {
  return name == "ex_reduce_tbg.json" || name == "ut_put_fuse_test.json";
}

TEST(Verify, plans_of_mscclpp) {
  for (const PlanCase& one : mscclpp_plans()) {
    const Verification said = verify(read_program(text_of_file(one.path)));
    if (one.result.starts_with("DEADLOCK")) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.back().kind, Finding::Kind::deadlock) << one.name << "\n" << said.text();
    } else if (races(one.name)) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.front().kind, Finding::Kind::race) << one.name << "\n" << said.text();
    } else {
      EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    }
    EXPECT_EQ(said.knows_result, one.result.starts_with("ok")) << one.name;
    EXPECT_EQ(said.needs_meeting,
              one.name == "ut_switch_broadcast_test.json" || one.name == "ut_tbg_reduce_send_test.json")
        << one.name << "\n"
        << said.text();
  }
}

TEST(Verify, plans_of_older_releases) {
  for (const PlanCase& one : old_mscclpp_plans()) {
    const Verification said = verify(read_program(text_of_file(one.path)));
    EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    EXPECT_TRUE(said.knows_result) << one.name;
  }
}

/// Calls f(mutant, what was done) for programs with one step less, or one operand beside its place.
template <class F>
void for_each_mutant(const Program& right, F&& f) {
  for (std::size_t rank = 0; rank < right.ranks.size(); ++rank)
    for (std::size_t block = 0; block < right.ranks[rank].blocks.size(); ++block)
      for (std::size_t i = 0; i < right.ranks[rank].blocks[block].steps.size(); ++i) {
        const Step& step = right.ranks[rank].blocks[block].steps[i];
        const std::string where = fmt::format("rank {}, block {}, step {} ({})", rank, block, i, name_of(step.kind));
        if (step.kind == StepKind::nop || step.kind == StepKind::pipeline) continue;
        Program mutant = right;
        auto& steps = mutant.ranks[rank].blocks[block].steps;
        steps.erase(steps.begin() + std::ptrdiff_t(i));
        f(mutant, where + " is left out");
        for (std::size_t k = 0; k < step.operands.size(); ++k)
          for (const Index by : {-1, 1}) {
            mutant = right;
            mutant.ranks[rank].blocks[block].steps[i].operands[k].first += by;
            f(mutant, fmt::format("{}: operand {} by {}", where, k, by));
          }
      }
}

TEST(Verify, mutants_are_refused) {
  int mutants = 0, refused = 0;
  std::string kept;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program right = read_program(text_of_file(one.path));
    if (!one.result.starts_with("ok") || races(one.name) || count_steps(right) > 60) continue;
    for_each_mutant(right, [&](const Program& mutant, const std::string& what) {
      try {
        check_structure(mutant);
      } catch (const Error&) {
        return;
      }
      ++mutants;
      const Verification said = verify(mutant);
      const bool is_refused = !said.is_right() || said.needs_meeting;
      refused += is_refused;
      if (!is_refused) kept += one.name + ": " + what + "\n";
    });
  }
  // The others change nothing that comes out: they copy or combine into chunks that nothing reads later.
  EXPECT_GT(mutants, 200);
  EXPECT_GE(refused * 100, mutants * 97) << kept;
}

}  // namespace
}  // namespace tranship::test
