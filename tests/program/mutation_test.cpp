// The verifier against the explorer, which runs programs under every schedule: of plans and random programs with one
// mistake, what it accepts is right, and what is wrong it refuses. It may refuse more, for reasons that are named here.
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/mscclpp_plans.hpp"
#include "support/program_builder.hpp"
#include "support/program_explorer.hpp"
#include "support/program_mutants.hpp"
#include "support/random_channel_programs.hpp"
#include "support/random_layouts.hpp"

namespace tranship::test {
namespace {

using Outcome = ProgramExploration::Outcome;

/// Units of a chunk, and turns of the first loop.
struct Size {
  Index units, turns;
};
/// Where chunks are cut, faults may show at some sizes only.
std::vector<Size> other_sizes(const Program& program) {
  bool has_shares = false, has_loops = false;
  for (const RankProgram& rank : program.ranks)
    for (const ThreadBlock& block : rank.blocks)
      for (const Step& step : block.steps) {
        has_shares = has_shares || step.shares > 1;
        has_loops = has_loops || step.pipeline;
      }
  if (has_loops) return {{1, 1}, {4, 4}};
  if (has_shares) return {{1, 1}, {2, 1}};
  return {};
}

/// What came out of a number of mutants.
struct Score {
  Index mutants = 0, right = 0, wrong = 0, undecided = 0;
  Index refused = 0;  ///< of those that are wrong
  /// Refused, though every schedule of them is right, by what was found.
  std::map<Finding::Kind, Index> cautious;
  std::string unsound;

  void add(const Program& mutant, const std::string& what) {
    ++mutants;
    Verification said;
    bool is_refused = false;
    Finding::Kind why = Finding::Kind::mismatch;
    try {
      said = verify(mutant);
      is_refused = !said.is_right();
      if (is_refused) why = said.findings.front().kind;
      expect_places(mutant, said.findings);
      expect_places(mutant, said.why_meeting);
    } catch (const Error&) {  // the numbers of its chunks are those of no such collective
      is_refused = true;
    }
    const auto between = said.needs_meeting ? BetweenLaunches::all_ranks_meet : BetweenLaunches::nothing;
    ProgramExploration explored = explore(mutant, {.states_max = 1000, .between = between});
    for (const Size size : other_sizes(mutant))
      if (explored.outcome == Outcome::right)
        explored =
            explore(mutant, {.units = size.units, .iterations = size.turns, .states_max = 1000, .between = between});
    switch (explored.outcome) {
      case Outcome::right:
        ++right;
        if (is_refused) ++cautious[why];
        return;
      case Outcome::wrong:
        ++wrong;
        refused += is_refused;
        if (!is_refused) unsound += fmt::format("{}: {}: {}\n", mutant.name, what, explored.text);
        return;
      case Outcome::undecided:
      case Outcome::unsupported:
        ++undecided;
        return;
    }
  }

  /// Every fault is one of a step, and says of which; but for outputs that no step has written.
  static void expect_places(const Program& program, const std::vector<Finding>& findings) {
    for (const Finding& one : findings) {
      if (one.kind == Finding::Kind::wrong_result && one.block < 0) {
        EXPECT_TRUE(one.text.starts_with("output[") || one.text.starts_with("data[")) << one.text;
        continue;
      }
      EXPECT_NE(one.text.find(fmt::format("rank {}, block {}, step {} (", one.rank, one.block, one.step)),
                std::string::npos)
          << program.name << ": " << name_of(one.kind) << ": " << one.text;
      EXPECT_EQ(one.text.find(") (launch"), std::string::npos) << one.text;
    }
  }

  void expect_agreement() const {
    EXPECT_EQ(unsound, "");
    EXPECT_EQ(refused, wrong);
    EXPECT_LE(undecided * 50, mutants);
    for (const auto& [kind, count] : cautious) {
      // Packets and plain data in one scratch lie at different bytes, which the explorer does not model. Signals
      // without waits add up over launches. A race of equal values, or of values that nothing reads, changes nothing.
      // Loops of different turns may be of ranks
      // or blocks that have nothing to do with each other.
      const bool is_stated = kind == Finding::Kind::packets || kind == Finding::Kind::unpaired ||
                             kind == Finding::Kind::race || kind == Finding::Kind::missing_meeting ||
                             kind == Finding::Kind::unproved || kind == Finding::Kind::deadlock ||
                             kind == Finding::Kind::mismatch;
      EXPECT_TRUE(is_stated) << name_of(kind) << ": " << count;
    }
    std::string text = fmt::format("{} mutants: {} wrong, {} refused; {} right", mutants, wrong, refused, right);
    for (const auto& [kind, count] : cautious) text += fmt::format(", {} refused ({})", count, name_of(kind));
    ::testing::Test::RecordProperty("score", text);
    if (long_tests()) fmt::print("{}\n", text);
  }
};

#if defined(TRANSHIP_ASAN) || defined(TRANSHIP_TSAN)
constexpr Index slowness = 6;
#else
constexpr Index slowness = 1;
#endif

TEST(Explorer, says_what_is_known_of_plans) {
  const Index steps_max = long_tests() ? 60 : 24;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program program = read_program(read_text(one.path));
    if (count_steps(program) > steps_max || program.ranks.size() > 4) continue;
    const Verification said = verify(program);
    const auto between = said.needs_meeting ? BetweenLaunches::all_ranks_meet : BetweenLaunches::nothing;
    const ProgramExploration explored = explore(program, {.between = between});
    if (one.result.starts_with("DEADLOCK")) {
      EXPECT_EQ(explored.outcome, Outcome::wrong) << one.name;
      EXPECT_TRUE(explored.text.starts_with("it hangs")) << one.name << ": " << explored.text;
    } else if (said.is_right()) {
      EXPECT_EQ(explored.outcome, Outcome::right) << one.name << ": " << explored.text;
    } else {
      EXPECT_NE(explored.outcome, Outcome::right) << one.name;
    }
  }
}

/// What both say of a program that no collective names.
void expect_both(const Program& program, Outcome outcome) {
  const Verification said = verify(program);
  EXPECT_EQ(said.is_right() && !said.needs_meeting, outcome == Outcome::right) << said.text();
  const ProgramExploration explored = explore(program);
  EXPECT_EQ(explored.outcome, outcome) << explored.text;
}

TEST(Explorer, threads_that_have_packets_know_only_of_those) {
  using enum BufferKind;
  for (const bool meets : {false, true}) {
    // Rank 1 overwrites what rank 0 has read before it sent packets.
    ProgramBuilder builder("test", 2, {3, 3, 2});
    builder.program().double_scratch = true;
    for (const Rank rank : {0, 1})
      builder.at(rank).signal(StepKind::relaxed_signal, {1 - rank}).signal(StepKind::relaxed_wait, {1 - rank}).nop();
    builder.at(0)
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}})
        .move(StepKind::put_packets, {{0, input, 1, 1}}, {{1, scratch, 0, 1}});
    builder.at(1).move(StepKind::unpack_packets, {{1, scratch, 0, 1}}, {{1, output, 0, 1}});
    if (meets) builder.nop();
    builder.move(StepKind::put, {{1, input, 0, 1}}, {{0, input, 0, 1}}).nop().signal(StepKind::signal, {0});
    builder.at(0).signal(StepKind::wait, {1}).nop();
    for (const Rank rank : {0, 1})
      for (const Index chunk : {1, 2})
        builder.at(rank).move(StepKind::copy, {{rank, input, 2, 1}}, {{rank, output, chunk, 1}});
    expect_both(builder.program(), meets ? Outcome::right : Outcome::wrong);
  }
}

TEST(Explorer, reads_by_other_threads_are_not_forgotten) {
  using enum BufferKind;
  for (const bool meets : {false, true}) {
    // Each thread has read by packets what it overwrites, but others have read the same before.
    ProgramBuilder builder("test", 1, {2, 2, 2});
    builder.program().double_scratch = true;
    builder.at(0).move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}});
    if (meets) builder.nop();
    builder.move(StepKind::copy_packets, {{0, input, 0, 1}}, {{0, scratch, 0, 1}})
        .move(StepKind::copy_packets, {{0, input, 1, 1}}, {{0, scratch, 1, 1}})
        .move(StepKind::unpack_packets, {{0, scratch, 1, 1}}, {{0, input, 0, 1}})
        .nop()
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 1, 1}});
    expect_both(builder.program(), meets ? Outcome::right : Outcome::wrong);
  }
}

TEST(Mutants, of_plans) {
  Score score;
  const Index steps_max = long_tests() ? 90 : 12;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program right = read_program(read_text(one.path));
    const bool is_known = one.name == "sn_alltoall_2r.json";  // which a relaxed wait once passed
    if (!one.result.starts_with("ok") || right.ranks.size() > 4) continue;
    if (count_steps(right) > steps_max && !(is_known && slowness == 1)) continue;
    if (const Verification said = verify(right); !said.is_right() || said.needs_meeting) continue;
    for_each_mutant(right, [&](const Program& mutant, const std::string& what) { score.add(mutant, what); });
  }
  EXPECT_GT(score.wrong, 100);
  EXPECT_GT(score.right, 10);
  score.expect_agreement();
}

TEST(Mutants, of_random_programs) {
  Score score;
  const auto programs = std::uint64_t(long_tests() ? 1000 : std::max<Index>(1, 60 / slowness));
  constexpr Index steps_max = 60;
  constexpr std::uint64_t mutants_each = 12;
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program right = random_channel_program(seed, 3);
    if (count_steps(right) > steps_max) continue;
    const ProgramExploration explored = explore(right, {.launches = 2});
    EXPECT_EQ(explored.outcome, Outcome::right) << right.name << ": " << explored.text;
    std::uint64_t all = 0;
    for_each_mutant(right, [&](const Program&, const std::string&) { ++all; });
    SplitMix64 random(seed);
    for_each_mutant(right, [&](const Program& mutant, const std::string& what) {
      if (random.below(all) < mutants_each) score.add(mutant, what);
    });
  }
  EXPECT_GT(score.wrong, 10);
  score.expect_agreement();
}

TEST(RandomPrograms, are_accepted) {
  const auto programs = std::uint64_t(long_tests() ? 20'000 : 300 / slowness);
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = random_channel_program(seed);
    const Verification said = verify(program);
    ASSERT_TRUE(said.is_right()) << program.name << "\n" << said.text();
    ASSERT_FALSE(said.needs_meeting) << program.name << "\n" << said.why_meeting.front().text;
    ASSERT_TRUE(said.knows_result);
    if (seed < 20) EXPECT_EQ(write_program(read_program(write_program(program))), write_program(program));
  }
}

}  // namespace
}  // namespace tranship::test
