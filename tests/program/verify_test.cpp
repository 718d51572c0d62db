// What the verifier says of plans that are known to be right, and of those that hang.
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/error_of.hpp"
#include "support/large_programs.hpp"
#include "support/mscclpp_plans.hpp"
#include "support/program_builder.hpp"

namespace tranship::test {
namespace {

// Two plans go wrong when one block is late: the shares of one step are not those of another one on other chunks, and
// nothing orders their blocks; and two ranks overwrite each other's inputs while they are sent.
bool races(const std::string& name) {
  return name == "ex_reduce_tbg.json" || name == "ut_put_fuse_test.json";
}

TEST(Verify, plans_of_mscclpp) {
  for (const PlanCase& one : mscclpp_plans()) {
    const Verification said = verify(read_program(read_text(one.path)));
    if (one.result.starts_with("DEADLOCK")) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.back().kind, Finding::Kind::deadlock) << one.name << "\n" << said.text();
    } else if (races(one.name)) {
      ASSERT_FALSE(said.findings.empty()) << one.name;
      EXPECT_EQ(said.findings.front().kind, Finding::Kind::race) << one.name << "\n" << said.text();
    } else {
      EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    }
    EXPECT_EQ(said.knows_result, one.collective != "test") << one.name;
    EXPECT_EQ(said.needs_meeting,
              one.name == "ut_switch_broadcast_test.json" || one.name == "ut_tbg_reduce_send_test.json")
        << one.name << "\n"
        << said.text();
  }
}

TEST(Verify, plans_of_older_releases) {
  for (const PlanCase& one : old_mscclpp_plans()) {
    const Verification said = verify(read_program(read_text(one.path)));
    EXPECT_TRUE(said.is_right()) << one.name << "\n" << said.text();
    EXPECT_TRUE(said.knows_result) << one.name;
  }
}

// --- What is said ----------------------------------------------------------------------------------------------------

/// Two ranks that put their input, of one chunk, into the output of both.
ProgramBuilder small_allgather() {
  ProgramBuilder out("allgather", 2, {1, 2, 0});
  for (const Rank rank : {0, 1}) {
    const Rank peer = 1 - rank;
    out.at(rank)
        .move(StepKind::copy, {{rank, BufferKind::input}}, {{rank, BufferKind::output, rank}})
        .move(StepKind::put, {{rank, BufferKind::input}}, {{peer, BufferKind::output, rank}})
        .nop()
        .signal(StepKind::signal, {peer})
        .signal(StepKind::wait, {peer});
  }
  return out;
}

TEST(VerifyText, wrong_results_name_the_step_that_wrote_them) {
  ProgramBuilder builder = small_allgather();
  ASSERT_TRUE(verify(builder.program()).is_right()) << verify(builder.program()).text();
  Step& put = builder.program().ranks[1].blocks[0].steps[1];
  builder.program().ranks[1].chunks[0] = builder.program().ranks[0].chunks[0] = 1;
  put.operands[0].buffer = BufferKind::output;
  put.operands[0].first = 0;
  const Verification said = verify(builder.program());
  ASSERT_FALSE(said.findings.empty());
  const Finding* wrong = nullptr;
  for (const Finding& one : said.findings)
    if (one.kind == Finding::Kind::wrong_result) wrong = &one;
  ASSERT_NE(wrong, nullptr) << said.text();
  EXPECT_EQ(wrong->rank, 1);
  EXPECT_EQ(wrong->block, 0);
  EXPECT_EQ(wrong->step, 1);
  EXPECT_EQ(wrong->text.find("rank 1, block 0, step 1 (put) writes output[1] of rank 0, which is "), 0U) << wrong->text;
  EXPECT_NE(wrong->text.find("; allgather makes it input[0] of rank 1 in launch 0"), std::string::npos) << wrong->text;
}

TEST(VerifyText, results_that_nothing_writes_name_no_step) {
  ProgramBuilder builder("allgather", 1, {1, 1, 0});
  builder.at(0).nop();
  const Verification said = verify(builder.program());
  ASSERT_EQ(said.findings.size(), 1U);
  EXPECT_EQ(
      said.findings[0].text,
      "output[0] of rank 0 is made of what nothing has written; allgather makes it input[0] of rank 0 in launch 0");
}

TEST(VerifyText, signals_without_waits_name_a_step) {
  ProgramBuilder builder = small_allgather();
  builder.program().ranks[1].blocks[0].steps.pop_back();
  builder.at(1).nop();
  const Verification said = verify(builder.program());
  const Finding* unpaired = nullptr;
  for (const Finding& one : said.findings)
    if (one.kind == Finding::Kind::unpaired) unpaired = &one;
  ASSERT_NE(unpaired, nullptr) << said.text();
  EXPECT_EQ(unpaired->text,
            "rank 0, block 0, step 3 (signal): memory channel 0 from rank 0 to rank 1 has 3 signals and 0 waits in 3 "
            "launches");
  EXPECT_EQ(unpaired->block, 0);
  EXPECT_EQ(unpaired->step, 3);
}

TEST(VerifyText, semaphores_that_are_not_as_they_were_name_a_step) {
  ProgramBuilder more("test", 1, {1, 1, 0}), fewer("test", 1, {1, 1, 0});
  more.at(0).nop().semaphore(StepKind::release, 0, 1);
  fewer.at(0).nop().semaphore(StepKind::acquire, 0, 9);
  const Verification of_more = verify(more.program()), of_fewer = verify(fewer.program());
  ASSERT_EQ(of_more.findings.size(), 1U);
  EXPECT_EQ(of_more.findings[0].text,
            "rank 0, block 0, step 1 (sem_release): semaphore 0 of rank 0 has 3 releases and 0 waits in 3 launches");
  ASSERT_EQ(of_fewer.findings.size(), 1U);
  EXPECT_EQ(of_fewer.findings[0].text,
            "rank 0, block 0, step 1 (sem_acquire): semaphore 0 of rank 0 has 0 releases and 3 waits in 3 launches");
}

TEST(VerifyText, barriers_of_other_numbers_of_blocks_name_a_step) {
  ProgramBuilder builder("test", 1, {1, 1, 0});
  builder.at(0, 0).nop().barrier(0, 2).at(0, 1).barrier(0, 2).at(0, 2).barrier(0, 2);
  const Verification said = verify(builder.program());
  ASSERT_FALSE(said.findings.empty());
  EXPECT_EQ(said.findings[0].text, "rank 0, block 0, step 1 (barrier): barrier 0 is one of 2 blocks, and 3 come to it");
  EXPECT_EQ(said.findings[0].block, 0);
  EXPECT_EQ(said.findings[0].step, 1);
}

TEST(VerifyText, steps_and_collectives_are_named_in_words) {
  ProgramBuilder of_nothing("test", 1, {1, 1, 0});
  of_nothing.at(0).move(StepKind::reduce, {}, {});
  EXPECT_EQ(error_of([&] { verify(of_nothing.program()); }),
            "bad_file: rank 0, block 0, step 0 (reduce): the step has no sources and no targets; it takes 1 or more of "
            "this rank as "
            "sources, and "
            "1 of this rank as target");
  ProgramBuilder reduce_scatter("reducescatter", 2, {2, 2, 0});
  const std::string text = error_of([&] { verify(reduce_scatter.program()); });
  EXPECT_EQ(text, "bad_file: a reducescatter of 2 ranks with 2 chunks of input has 1 chunk of output, not 2 (rank 0)");
  ProgramBuilder over("test", 1, {3, 3, 0});
  over.at(0).move(StepKind::copy, {{0, BufferKind::input, 2, 2}}, {{0, BufferKind::output, 0, 2}});
  EXPECT_EQ(error_of([&] { verify(over.program()); }),
            "bad_file: rank 0, block 0, step 0 (copy): the operand is input[2..4) of rank 0, which has 3 chunks");
}

// --- Cost ------------------------------------------------------------------------------------------------------------

TEST(Verify, allreduces_of_many_ranks) {
  for (const Program& program : {all_pairs_allreduce(16, 4), ring_allreduce(16), packets_allreduce(16)}) {
    const Verification said = verify(program);
    EXPECT_TRUE(said.is_right()) << said.text();
    EXPECT_FALSE(said.needs_meeting);
    EXPECT_TRUE(said.knows_result);
  }
}

TEST(Verify, work_is_proportional_to_the_number_of_steps) {
  const Program small = long_ring(4, 2'000), large = long_ring(4, 20'000);
  const Verification of_small = verify(small), of_large = verify(large);
  EXPECT_TRUE(of_small.is_right()) << of_small.text();
  EXPECT_TRUE(of_large.is_right()) << of_large.text();
  EXPECT_EQ(of_large.steps, 3 * count_steps(large));
  EXPECT_LT(of_large.work, 12 * of_small.work);
}

TEST(Verify, gives_up_at_its_limit) {
  const Program program = ring_allreduce(4);
  const Index work = verify(program).work;
  EXPECT_TRUE(verify(program, {.work_max = work}).is_right());
  const std::string error = error_of([&] { (void)verify(program, {.work_max = work - 1}); });
  EXPECT_TRUE(error.starts_with("unsupported")) << error;
  EXPECT_NE(error.find(fmt::format("{} comparisons", work - 1)), std::string::npos) << error;
}

// --- Numbers that a small file can hold ------------------------------------------------------------------------------

TEST(Verify, many_chunks_cost_as_few) {
  const Index chunks = Index(1) << 22;
  ProgramBuilder builder("allreduce", 2, {chunks, chunks, chunks});
  builder.program().in_place = builder.program().double_scratch = true;
  for (Rank rank = 0; rank < 2; ++rank)
    builder.at(rank).move(StepKind::copy, {{rank, BufferKind::input, 0, chunks}},
                          {{rank, BufferKind::scratch, 0, chunks}});
  const Verification said = verify(builder.program());
  EXPECT_FALSE(said.is_right());
  EXPECT_LT(said.work, 1000) << said.text();
}

TEST(Verify, sums_that_double_do_not_take_twice_the_time) {
  ProgramBuilder builder("allreduce", 1, {2, 2, 2});
  for (int i = 0; i < 200; ++i)
    builder.at(0)
        .move(StepKind::reduce, {{0, BufferKind::input, 0, 1}, {0, BufferKind::input, 1, 1}},
              {{0, BufferKind::input, 0, 1}})
        .nop()
        .move(StepKind::copy, {{0, BufferKind::input, 0, 1}}, {{0, BufferKind::input, 1, 1}})
        .nop();
  for (const Reduction reduction : {Reduction::sum, Reduction::minimum}) {
    for (Step& step : builder.program().ranks[0].blocks[0].steps) step.reduction = reduction;
    const Verification said = verify(builder.program());
    EXPECT_FALSE(said.is_right());
    EXPECT_LT(said.work, 20'000);
  }
}

/// Ends at once where lists are not searched from their beginnings, and minutes later where they are.
TEST(Verify, long_lists) {
  constexpr Index count = 100'000;
  Program program{.name = "lists", .collective = "test"};
  RankProgram rank;
  rank.chunks[0] = rank.chunks[1] = 1;
  ThreadBlock block;
  Step signals{.kind = StepKind::signal}, waits{.kind = StepKind::wait};
  for (std::int32_t i = 0; i < count; ++i) {
    rank.peers[0].push_back(0);
    rank.remote_buffers.push_back({.rank = 0, .buffer = BufferKind::input, .access = {ChannelKind::memory}});
    block.channels[0].push_back(i);
    block.remote_buffers[0].push_back(i);
    signals.ids.push_back(i);
    waits.ids.push_back(i);
  }
  block.steps = {signals, waits, Step{}};
  for (std::int32_t i = 0; i < 1000; ++i) {
    Step get{.kind = StepKind::get, .sources = 1};
    get.operands = {{.via = std::int32_t(count) - 1 - i, .count = 1}, {.buffer = BufferKind::output, .count = 1}};
    block.steps.push_back(get);
    block.steps.push_back({});
  }
  rank.blocks.push_back(block);
  program.ranks.push_back(rank);
  const Verification said = verify(program);
  EXPECT_TRUE(said.is_right()) << said.text();
}

TEST(Verify, programs_made_to_take_forever_are_given_up) {
  // Each of many blocks reads the same chunk: what is noted of it grows with each.
  ProgramBuilder builder("test", 1, {1, 2000, 0});
  for (Index block = 0; block < 2000; ++block)
    builder.at(0, std::size_t(block))
        .move(StepKind::copy, {{0, BufferKind::input, 0, 1}}, {{0, BufferKind::output, block, 1}});
  EXPECT_TRUE(verify(builder.program()).is_right());
  const std::string error = error_of([&] { (void)verify(builder.program(), {.work_max = 1'000'000}); });
  EXPECT_TRUE(error.starts_with("unsupported")) << error;
}

TEST(Verify, does_not_remember_without_bound) {
  // Many blocks read all chunks, which are then read one by one: each of these is noted with all of those.
  constexpr Index blocks = 50, chunks = 500;
  ProgramBuilder builder("test", 1, {chunks, 2 * chunks * blocks, 0});
  for (Index block = 0; block < blocks; ++block)
    builder.at(0, std::size_t(block))
        .move(StepKind::copy, {{0, BufferKind::input, 0, chunks}},
              {{0, BufferKind::output, 2 * block * chunks, chunks}});
  for (Index chunk = 0; chunk < chunks; ++chunk)
    builder.at(0, 0).move(StepKind::copy, {{0, BufferKind::input, chunk, 1}},
                          {{0, BufferKind::output, chunks + chunk, 1}});
  EXPECT_TRUE(verify(builder.program()).is_right());
  const std::string error = error_of([&] { (void)verify(builder.program(), {.accesses_max = blocks * chunks / 2}); });
  EXPECT_TRUE(error.starts_with("unsupported")) << error;
}

TEST(Verify, work_is_proportional_to_the_number_of_blocks) {
  for (const bool meet : {false, true}) {
    const auto work_of = [&](int blocks) {
      ProgramBuilder builder("test", 1, {1, 1, 0});
      for (int block = 0; block < blocks; ++block) {
        builder.at(0, std::size_t(block)).nop();
        if (meet) builder.barrier(0, blocks);
      }
      const Verification said = verify(builder.program());
      EXPECT_TRUE(said.is_right()) << said.text();
      return said.work;
    };
    EXPECT_LT(work_of(20'000), 5 * work_of(5'000)) << meet;
  }
}

TEST(Verify, many_ranks_that_do_nothing) {
  ProgramBuilder builder("test", 5'000, {1, 1, 0});
  for (Rank rank = 0; rank < builder.ranks(); ++rank)
    builder.at(rank).move(StepKind::copy, {{rank, BufferKind::input, 0, 1}}, {{rank, BufferKind::output, 0, 1}});
  const Verification said = verify(builder.program());
  EXPECT_TRUE(said.is_right()) << said.text();
  EXPECT_LT(said.work, 100 * Index(builder.ranks()));
}

}  // namespace
}  // namespace tranship::test
