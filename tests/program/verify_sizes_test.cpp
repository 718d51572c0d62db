// Programs whose faults show at some sizes of messages only, or in some of the turns of a loop, and faults of what a
// program means that no access shows.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/program/verify.hpp>

#include "support/error_of.hpp"
#include "support/program_builder.hpp"

namespace tranship::test {
namespace {

using enum BufferKind;

/// Makes the last steps of the builder's block a loop.
void loop_over_last(ProgramBuilder& builder, std::size_t count, Index unit_bytes, Index chunks = 1) {
  Pipeline loop{.unit_bytes = unit_bytes, .chunks = chunks};
  std::vector<Step> steps = builder.take_last(count);
  loop.steps = std::move(steps);
  builder.add({.kind = StepKind::pipeline, .pipeline = std::make_shared<const Pipeline>(std::move(loop))});
}
void share_last(ProgramBuilder& builder, std::int32_t share, std::int32_t shares) {
  builder.last().share = share;
  builder.last().shares = shares;
}
void expect_refused(const Program& program, Finding::Kind kind) {
  const Verification said = verify(program);
  ASSERT_FALSE(said.is_right());
  EXPECT_EQ(said.findings.front().kind, kind) << said.text();
}
void expect_right(const Program& program) {
  const Verification said = verify(program);
  EXPECT_TRUE(said.is_right()) << said.text();
}

/// Two ranks send in turns of `put` bytes and wait in turns of `wait` bytes.
Program sent_in_turns(Index put, Index wait, Index wait_chunks = 1) {
  ProgramBuilder builder("sendrecv", 2, {1, 1, 0});
  for (Rank rank = 0; rank < 2; ++rank) {
    const Rank peer = 1 - rank;
    builder.at(rank)
        .signal(StepKind::relaxed_signal, {peer})
        .signal(StepKind::relaxed_wait, {peer})
        .nop()
        .move(StepKind::put, {{rank, input}}, {{peer, output}})
        .nop()
        .signal(StepKind::signal, {peer});
    loop_over_last(builder, 3, put);
    builder.signal(StepKind::wait, {peer}).nop();
    loop_over_last(builder, 2, wait, wait_chunks);
  }
  return builder.program();
}

TEST(VerifySizes, loops_take_as_many_turns) {
  expect_right(sent_in_turns(1024, 1024));
  expect_refused(sent_in_turns(1024, 2048), Finding::Kind::mismatch);
  expect_refused(sent_in_turns(2048, 1024), Finding::Kind::mismatch);
  expect_refused(sent_in_turns(1024, 1024, 2), Finding::Kind::mismatch);
  expect_right(sent_in_turns(1024, 2048, 2));
  // Turns are whole units of 16 bytes.
  expect_right(sent_in_turns(1024, 1009));
  constexpr Index gib = Index(1) << 30;
  expect_right(sent_in_turns(gib, gib));
  expect_refused(sent_in_turns(gib / 2, gib), Finding::Kind::mismatch);
  EXPECT_EQ(error_of([] { (void)verify(sent_in_turns(gib, gib + 1)); }),
            "unsupported: cannot verify loops in turns of 1073741825 bytes: the limit is 1073741824");
}

TEST(VerifySizes, loops_made_to_take_forever_are_given_up) {
  for (const Index chunks : {Index(1) << 22, Index(1) << 23, Index(1) << 62}) {
    ProgramBuilder builder("test", 1, {1, 1, 0});
    builder.at(0);
    for (int i = 0; i < 50; ++i) builder.move(StepKind::copy, {{0, input}}, {{0, output}}).nop();
    loop_over_last(builder, 100, 16, chunks);
    const std::string error = error_of([&] { (void)verify(builder.program()); });
    EXPECT_TRUE(error.starts_with("unsupported: ")) << error;
    EXPECT_NE(error.find("the limit is"), std::string::npos) << error;
  }
}

/// A producer and a consumer of one rank; the consumer gives its credits back in the loop, or only after it.
Program with_credits(Index credits, bool late) {
  ProgramBuilder builder("allgather", 1, {1, 1, 1});
  builder.at(0, 0).semaphore(StepKind::acquire, 0, credits).nop();
  builder.move(StepKind::copy, {{0, input}}, {{0, scratch}}).nop().semaphore(StepKind::release, 1);
  loop_over_last(builder, 5, 1024);
  builder.at(0, 1).semaphore(StepKind::acquire, 1).nop();
  builder.move(StepKind::copy, {{0, scratch}}, {{0, output}}).nop();
  if (!late) builder.semaphore(StepKind::release, 0);
  loop_over_last(builder, late ? 4 : 5, 1024);
  if (late) {
    builder.semaphore(StepKind::release, 0);
    loop_over_last(builder, 1, 1024);
  }
  return builder.program();
}

TEST(VerifySizes, credits_run_out_whatever_their_number) {
  for (const Index credits : {1, 2, 3, 4, 17}) {
    expect_right(with_credits(credits, false));
    expect_refused(with_credits(credits, true), Finding::Kind::deadlock);
  }
  EXPECT_EQ(error_of([] { (void)verify(with_credits(1'000'000, false)); }),
            "unsupported: cannot verify loops with a semaphore that begins at 1000000: the limit is 4096");
}

TEST(VerifySizes, turns_count_in_loops_that_move_nothing) {
  ProgramBuilder builder("test", 1, {1, 1, 0});
  builder.at(0, 0).semaphore(StepKind::acquire, 0, 3);
  loop_over_last(builder, 1, 1024);
  builder.semaphore(StepKind::release, 0, 3);
  loop_over_last(builder, 1, 1024);
  expect_refused(builder.program(), Finding::Kind::deadlock);
}

/// Four blocks copy a chunk to scratch, and two of them from there to the output, after meetings of pairs of blocks.
TEST(VerifySizes, shares_of_groups_of_other_sizes) {
  ProgramBuilder builder("allgather", 1, {1, 1, 1});
  const std::int32_t order[4] = {2, 3, 0, 1};  // block b has the share of its place here
  for (std::int32_t block = 0; block < 4; ++block) {
    std::int32_t share = 0;
    while (order[share] != block) ++share;
    builder.at(0, std::size_t(block)).move(StepKind::copy, {{0, input}}, {{0, scratch}});
    share_last(builder, share, 4);
    builder.barrier(block < 2 ? 0 : 1, 2);
    if (block % 2 != 0) continue;
    builder.move(StepKind::copy, {{0, scratch}}, {{0, output}});
    share_last(builder, block == 2 ? 0 : 1, 2);
  }
  // Six units are 2, 2, 1, 1 for four and 3, 3 for two: half a share comes from a block that has not been waited for.
  expect_refused(builder.program(), Finding::Kind::race);
}

/// Block 1 of rank 1 takes a share of packets from which it concludes that rank 0 has read; of few units it has none.
TEST(VerifySizes, empty_shares_wait_for_nothing) {
  for (const bool is_shared : {true, false}) {
    ProgramBuilder builder("test", 2, {2, 2, 1});
    builder.program().protocol = "LL";
    builder.program().double_scratch = true;
    for (std::int32_t block = 0; block < 2; ++block) {
      builder.at(0, std::size_t(block));
      if (block == 1) builder.move(StepKind::copy, {{0, input, 1, 1}}, {{0, output, 0, 1}}).nop();
      builder.move(StepKind::put_packets, {{0, input, 0, 1}}, {{1, scratch, is_shared ? 0 : block, 1}});
      if (is_shared) share_last(builder, block, 2);
      builder.at(1, std::size_t(block))
          .move(StepKind::unpack_packets, {{1, scratch, is_shared ? 0 : block, 1}},
                {{1, output, is_shared ? 0 : block, 1}});
      if (is_shared) share_last(builder, block, 2);
    }
    if (!is_shared)
      for (RankProgram& rank : builder.program().ranks) rank.chunks[2] = 2;
    builder.at(1, 1).nop();
    builder.move(StepKind::put, {{1, input, 1, 1}}, {{0, input, 1, 1}}).nop().signal(StepKind::signal, {0});
    builder.at(0, 1).signal(StepKind::wait, {1}).nop();
    if (is_shared)
      expect_refused(builder.program(), Finding::Kind::race);
    else
      expect_right(builder.program());
  }
}

// --- What it means ---------------------------------------------------------------------------------------------------

/// Two ranks gather their inputs in scratch and combine them, each by its own operation.
Program reduced_by(Reduction first, Reduction second) {
  ProgramBuilder builder("allreduce", 2, {1, 1, 2});
  builder.program().protocol = "LL";
  builder.program().double_scratch = true;
  for (Rank rank = 0; rank < 2; ++rank) {
    builder.at(rank)
        .move(StepKind::put_packets, {{rank, input}}, {{1 - rank, scratch, rank, 1}})
        .move(StepKind::reduce_packets, {{rank, input}, {rank, scratch, 1 - rank, 1}}, {{rank, output}});
    builder.last().reduction = rank == 0 ? first : second;
  }
  return builder.program();
}

TEST(VerifyMeaning, one_operation_combines) {
  expect_right(reduced_by(Reduction::sum, Reduction::sum));
  expect_right(reduced_by(Reduction::maximum, Reduction::maximum));
  expect_refused(reduced_by(Reduction::sum, Reduction::maximum), Finding::Kind::wrong_result);
  expect_refused(reduced_by(Reduction::maximum, Reduction::sum), Finding::Kind::wrong_result);
  expect_right(with_reduction(reduced_by(Reduction::maximum, Reduction::sum), Reduction::product));
}

/// Adding an input twice is right for maxima alone.
TEST(VerifyMeaning, a_program_with_another_reduction_is_another_program) {
  ProgramBuilder builder("allreduce", 1, {1, 1, 0});
  builder.at(0).move(StepKind::reduce, {{0, input}, {0, input}}, {{0, output}});
  expect_right(with_reduction(builder.program(), Reduction::maximum));
  expect_refused(with_reduction(builder.program(), Reduction::sum), Finding::Kind::wrong_result);
}

/// Every rank reads the input of `source_of(rank)`.
Program read_from(const char* collective, const std::vector<Rank>& source_of) {
  ProgramBuilder builder(collective, Rank(source_of.size()), {1, 1, 0});
  for (Rank rank = 0; rank < builder.ranks(); ++rank) {
    builder.at(rank);
    const Rank source = source_of[std::size_t(rank)];
    builder.move(source == rank ? StepKind::copy : StepKind::get, {{source, input}}, {{rank, output}}).nop();
  }
  return builder.program();
}

TEST(VerifyMeaning, a_broadcast_has_one_root) {
  expect_right(read_from("broadcast", {1, 1, 1}));
  expect_refused(read_from("broadcast", {1, 2, 0}), Finding::Kind::wrong_result);
  expect_refused(read_from("broadcast", {0, 1, 2}), Finding::Kind::wrong_result);
}
TEST(VerifyMeaning, a_sendrecv_sends_to_another_rank) {
  expect_right(read_from("sendrecv", {1, 2, 0}));
  expect_right(read_from("sendrecv", {0}));
  expect_refused(read_from("sendrecv", {0, 1, 2}), Finding::Kind::wrong_result);
}

TEST(Verify, of_no_launch_is_refused) {
  for (const int launches : {0, -1}) {
    const std::string error = error_of([&] { (void)verify(read_from("sendrecv", {1, 0}), {.launches = launches}); });
    EXPECT_TRUE(error.starts_with("invalid_use")) << error;
  }
}

}  // namespace
}  // namespace tranship::test
