// Tests the limits and the missing promises of MSCCL++'s executor. That a program without objections is right there is
// compared with all schedules of a machine that promises no more than it does.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/base/random.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/mscclpp_limits.hpp>
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

using enum BufferKind;
using Outcome = ProgramExploration::Outcome;
using Lines = std::vector<std::string>;

// --- Limits ----------------------------------------------------------------------------------------------------------

TEST(MscclppObjections, name_reductions_other_than_sums) {
  const Program program = make_program("allreduce/all_pairs", {.ranks = 2});
  EXPECT_EQ(mscclpp_objections(program), Lines());
  const Lines said = mscclpp_objections(with_reduction(program, Reduction::maximum));
  ASSERT_EQ(said.size(), 1u);
  EXPECT_NE(said[0].find("combines by maximum; every reduction is a sum there"), std::string::npos) << said[0];
}

TEST(MscclppObjections, name_reductions_by_switches) {
  for (const StepKind kind : {StepKind::switch_reduce, StepKind::switch_reduce_broadcast}) {
    ProgramBuilder builder("test", 2, {1, 1, 0});
    builder.at(0);
    RankProgram& rank = builder.program().ranks[0];
    rank.switches = {{.buffer = input, .ranks = {0, 1}}, {.buffer = output, .ranks = {0, 1}}};
    rank.blocks[0].channels[2] = {0, 1};
    const bool sends = kind == StepKind::switch_reduce_broadcast;
    builder.add(
        {.kind = kind,
         .channel = ChannelKind::switched,
         .reduction = Reduction::maximum,
         .sources = 1,
         .operands = {{.buffer = input, .via = 0, .count = 1}, {.buffer = output, .via = sends ? 1 : -1, .count = 1}}});
    const Lines said = mscclpp_objections(builder.program());
    const auto has = [&](const char* text) {
      return std::any_of(said.begin(), said.end(), [&](const std::string& one) { return one.find(text) != one.npos; });
    };
    EXPECT_TRUE(has("combines by maximum; every reduction is a sum there"));
    EXPECT_EQ(has("without a broadcast is refused there"), !sends);
  }
}

TEST(MscclppObjections, name_lists_that_are_too_long) {
  Program program = make_program("allreduce/all_pairs", {.ranks = 2});
  std::vector<Step>& steps = program.ranks[1].blocks[0].steps;
  steps.resize(64, Step{.kind = StepKind::nop});
  EXPECT_EQ(mscclpp_objections(program), Lines());
  steps.resize(65, Step{.kind = StepKind::nop});
  EXPECT_EQ(mscclpp_objections(program), Lines{"rank 1, block 0 has 65 steps; at most 64 are executed"});
  const Lines wide = mscclpp_objections(make_program("allreduce/packets", {.ranks = 12}));
  ASSERT_FALSE(wide.empty());
  EXPECT_NE(wide[0].find("of one step; at most 10 are executed"), std::string::npos) << wide[0];
}

// --- Promises --------------------------------------------------------------------------------------------------------

constexpr const char* no_meeting = "ranks do not meet between launches there";
constexpr const char* no_end = "a launch ends there before what others write has come";
constexpr const char* no_completion = "the end of a launch completes no request";
constexpr const char* no_publication = "relaxed signals and packets publish nothing there";

/// Both the proof and the explorer say what comes of a program there; tranship itself launches all of them.
void expect_there(const Program& program, const char* objection) {
  EXPECT_TRUE(verify(program).is_right()) << verify(program).text();
  const Lines said = mscclpp_objections(program);
  const ProgramExploration explored = explore(program, {.between = BetweenLaunches::as_mscclpp});
  if (!objection) {
    EXPECT_EQ(said, Lines());
    EXPECT_EQ(explored.outcome, Outcome::right) << explored.text;
    return;
  }
  EXPECT_EQ(explored.outcome, Outcome::wrong);
  ASSERT_FALSE(said.empty()) << objection;
  EXPECT_TRUE(std::any_of(said.begin(), said.end(), [&](const std::string& one) {
    return one.find(objection) != one.npos;
  })) << said[0];
}

/// Rank 0 sends a chunk to the scratch of rank 1.
TEST(MscclppObjections, scratch_that_is_used_again) {
  for (const bool answers : {false, true}) {
    ProgramBuilder builder("test", 2, {1, 1, 1});
    builder.at(0)
        .move(StepKind::put, {{0, input, 0, 1}}, {{1, scratch, 0, 1}})
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}})
        .nop()
        .signal(StepKind::signal, {1});
    builder.at(1).signal(StepKind::wait, {0}).nop().move(StepKind::copy, {{1, scratch, 0, 1}}, {{1, output, 0, 1}});
    if (answers) {
      builder.nop().signal(StepKind::relaxed_signal, {0});
      builder.at(0).signal(StepKind::relaxed_wait, {1}).nop();
    }
    EXPECT_EQ(verify(builder.program()).needs_meeting, !answers);
    expect_there(builder.program(), answers ? nullptr : no_meeting);
  }
}

TEST(MscclppObjections, no_wait_at_the_end) {
  for (const bool waits : {false, true}) {
    ProgramBuilder builder("test", 2, {1, 1, 0});
    builder.at(1).signal(StepKind::relaxed_signal, {0});
    builder.at(0)
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}})
        .signal(StepKind::relaxed_wait, {1})
        .nop()
        .move(StepKind::put, {{0, input, 0, 1}}, {{1, output, 0, 1}});
    if (waits) {
      builder.nop().signal(StepKind::signal, {1});
      builder.at(1).signal(StepKind::wait, {0});
    }
    expect_there(builder.program(), waits ? nullptr : no_end);
  }
}

TEST(MscclppObjections, port_put_that_nothing_completes) {
  enum class End { nothing, flush, put_and_flush, answer };
  for (const End end : {End::nothing, End::flush, End::put_and_flush, End::answer}) {
    ProgramBuilder builder("test", 2, {1, 1, 0});
    builder.at(0).move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}}).nop();
    builder.signal(StepKind::wait, {1}, ChannelKind::port)
        .nop()
        .move(end == End::put_and_flush ? StepKind::put_signal_flush : StepKind::put_signal, {{0, input, 0, 1}},
              {{1, output, 0, 1}}, ChannelKind::port);
    if (end == End::flush) builder.signal(StepKind::flush, {1}, ChannelKind::port);
    builder.at(1).signal(StepKind::signal, {0}, ChannelKind::port).nop().signal(StepKind::wait, {0}, ChannelKind::port);
    if (end == End::answer) {
      builder.nop().signal(StepKind::relaxed_signal, {0});
      builder.at(0).signal(StepKind::relaxed_wait, {1});
    }
    EXPECT_FALSE(verify(builder.program()).needs_meeting);
    expect_there(builder.program(), end == End::nothing || end == End::flush ? no_completion : nullptr);
    const bool names_flush = !mscclpp_objections(builder.program()).empty() &&
                             mscclpp_objections(builder.program())[0].starts_with("a flush does nothing");
    EXPECT_EQ(names_flush, end == End::flush);
  }
}

TEST(MscclppObjections, packets_one_way_in_two_halves) {
  for (const bool answers : {false, true}) {
    ProgramBuilder builder("test", 2, {1, 1, 1});
    builder.program().double_scratch = true;
    builder.at(0)
        .move(StepKind::put_packets, {{0, input, 0, 1}}, {{1, scratch, 0, 1}})
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}});
    builder.at(1).move(StepKind::unpack_packets, {{1, scratch, 0, 1}}, {{1, output, 0, 1}});
    if (answers) {
      builder.move(StepKind::put_packets, {{1, input, 0, 1}}, {{0, scratch, 0, 1}});
      builder.at(0).take_last(1);
      builder.move(StepKind::unpack_packets, {{0, scratch, 0, 1}}, {{0, output, 0, 1}});
    }
    expect_there(builder.program(), answers ? nullptr : no_meeting);
  }
}

/// Blocks of rank 1 that wait for each other keep the proof from looking at its packets until they are lost.
TEST(MscclppObjections, packets_that_are_overwritten_before_they_are_looked_at) {
  ProgramBuilder builder("test", 2, {1, 1, 1});
  builder.program().double_scratch = true;
  builder.at(0)
      .move(StepKind::put_packets, {{0, input, 0, 1}}, {{1, scratch, 0, 1}})
      .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}});
  builder.at(1, 0).semaphore(StepKind::acquire, 0);
  builder.move(StepKind::unpack_packets, {{1, scratch, 0, 1}}, {{1, output, 0, 1}});
  builder.at(1, 1).semaphore(StepKind::acquire, 1).nop().semaphore(StepKind::release, 0);
  builder.at(1, 2).semaphore(StepKind::acquire, 2).nop().semaphore(StepKind::release, 1);
  builder.at(1, 3).semaphore(StepKind::release, 2);
  EXPECT_TRUE(verify(builder.program()).needs_meeting);
  EXPECT_EQ(mscclpp_objections(builder.program()),
            Lines{"ranks do not meet between launches there: rank 1, block 0, step 1 (upkt) waits for packets in "
                  "scratch[0] of rank 1 in launch 0, which rank 0, block 0, step 0 (ppkt) has overwritten in "
                  "launch 2"});
}

TEST(MscclppObjections, relaxed_signal_as_the_last_publication) {
  for (const bool is_relaxed : {false, true}) {
    ProgramBuilder builder("test", 2, {1, 1, 0});
    builder.at(0)
        .move(StepKind::copy, {{0, input, 0, 1}}, {{0, output, 0, 1}})
        .signal(StepKind::relaxed_wait, {1})
        .nop()
        .move(StepKind::put, {{0, input, 0, 1}}, {{1, output, 0, 1}})
        .nop()
        .signal(is_relaxed ? StepKind::relaxed_signal : StepKind::signal, {1});
    builder.at(1)
        .signal(StepKind::relaxed_signal, {0})
        .nop()
        .signal(is_relaxed ? StepKind::relaxed_wait : StepKind::wait, {0});
    EXPECT_FALSE(verify(builder.program()).needs_meeting);
    expect_there(builder.program(), is_relaxed ? no_publication : nullptr);
  }
}

TEST(MscclppObjections, say_that_a_wrong_program_is_wrong) {
  ProgramBuilder builder("test", 2, {1, 1, 0});
  builder.at(0).move(StepKind::put, {{0, input, 0, 1}}, {{1, output, 0, 1}});
  builder.at(1).move(StepKind::copy, {{1, input, 0, 1}}, {{1, output, 0, 1}});
  ASSERT_FALSE(verify(builder.program()).is_right());
  EXPECT_EQ(mscclpp_objections(builder.program()), Lines{"the program is wrong, and nothing there would find out"});
}

TEST(MscclppObjections, name_keys_that_are_not_known) {
  Program program = make_program("allreduce/all_pairs", {.ranks = 2});
  program.unknown_keys = {{.where = "gpus[0]", .key = "colour", .value = "1"}, {.where = "", .key = "b", .value = "2"}};
  EXPECT_EQ(mscclpp_objections(program),
            Lines{"the key gpus[0].colour is not known here; what it asks for is not proved, and 1 more place"});
}

TEST(MscclppObjections, of_ready_programs) {
  for (const Algorithm& one : algorithms()) {
    for (const bool in_place : {false, true}) {
      if (in_place && !one.can_be_in_place) continue;
      const Program program = make_program(std::string(one.name), {.ranks = 4, .in_place = in_place});
      const Verification there = verify(program, {.launched_by = LaunchedBy::mscclpp});
      EXPECT_TRUE(there.is_right()) << one.name << ": " << there.text();
    }
  }
}

// --- The oracle ------------------------------------------------------------------------------------------------------

Outcome explored_there(const Program& program) {
  return explore(program, {.states_max = 600, .between = BetweenLaunches::as_mscclpp}).outcome;
}

bool is_right_there(const Program& program) {
  try {
    return verify(program, {.findings_max = 1, .launched_by = LaunchedBy::mscclpp}).is_right();
  } catch (const Error&) {  // the numbers of its chunks are those of no such collective
    return false;
  }
}

TEST(MscclppObjections, of_plans_of_mscclpp_agree_with_all_schedules) {
  Index right = 0, wrong = 0;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program program = read_program(read_text(one.path));
    if (count_steps(program) > 24 || program.ranks.size() > 4) continue;
    const Outcome explored = explored_there(program);
    right += explored == Outcome::right;
    wrong += explored == Outcome::wrong;
    EXPECT_FALSE(explored == Outcome::wrong && is_right_there(program)) << one.name;
  }
  EXPECT_GT(right, 5);
  EXPECT_GT(wrong, 2);
}

TEST(MscclppObjections, of_mutants_agree_with_all_schedules) {
  const std::uint64_t programs = long_tests() ? 600 : 60, mutants_each = 8;
  Index right = 0, wrong = 0, wrong_only_there = 0;
  const auto promises_less = [](const std::string& what) {
    return what.ends_with("relaxed") || what.ends_with("flush") || what.ends_with("(flush): left out");
  };
  for (std::uint64_t seed = 0; seed < programs; ++seed) {
    const Program program = random_channel_program(seed, 3);
    if (count_steps(program) > 50) continue;
    std::uint64_t all = 0;
    for_each_mutant(program, [&](const Program&, const std::string&) { ++all; });
    SplitMix64 random(seed);
    for_each_mutant(program, [&](const Program& mutant, const std::string& what) {
      if (!promises_less(what) && random.below(all) >= mutants_each) return;
      const Outcome explored = explored_there(mutant);
      right += explored == Outcome::right;
      wrong += explored == Outcome::wrong;
      if (explored == Outcome::wrong) {
        EXPECT_FALSE(is_right_there(mutant)) << program.name << ": " << what;
        wrong_only_there += explore(mutant, {.states_max = 600}).outcome == Outcome::right;
      }
    });
  }
  EXPECT_GT(right, 10);
  EXPECT_GT(wrong, 50);
  EXPECT_GT(wrong_only_there, 0);
}

}  // namespace
}  // namespace tranship::test
