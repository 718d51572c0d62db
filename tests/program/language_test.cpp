#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/error.hpp>
#include <tranship/program/language.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/step_shape.hpp>
#include <tranship/program/verify.hpp>

namespace tranship::language {
namespace {

/// The words of the steps of a block, loops in brackets.
std::string words(const std::vector<Step>& steps) {
  std::string out;
  for (const Step& step : steps) {
    if (!out.empty()) out += " ";
    out += shape_of(step.kind).word;
    if (step.pipeline) out += "[" + words(step.pipeline->steps) + "]";
  }
  return out;
}
std::string words(const Program& program, tranship::Rank rank = 0, std::size_t block = 0) {
  return words(program.ranks[std::size_t(rank)].blocks.at(block).steps);
}

/// A program of one rank (or more) with `chunks` chunks in both buffers.
CollectiveProgram local_program(Index chunks = 4, tranship::Rank ranks = 1, Options options = {}) {
  const std::vector<Index> each(static_cast<std::size_t>(ranks), chunks);
  return {"local", custom(each, each), std::move(options)};
}
Chunk at(const Buffer& buffer, Index chunk) {
  return buffer[{chunk, chunk + 1}];
}

void expect_refused(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

TEST(Language, reduces_are_joined_only_where_the_sum_goes_on) {
  auto program = local_program();
  const Buffer in = program.input(0), out = program.output(0);
  const Chunk sum = at(out, 0);
  // o = a + b; o = a + c is not o = a + b + c.
  program.reduce(at(in, 0), {at(in, 1)}, 0, {.target = &sum});
  program.reduce(at(in, 0), {at(in, 2)}, 0, {.target = &sum});
  EXPECT_EQ(words(program.lower()), "re nop re");

  auto other = local_program();
  other.reduce(at(other.input(0), 0), {at(other.input(0), 1)}, 0, {.target = &sum});
  other.reduce(sum, {at(other.input(0), 2)}, 0);
  const Program lowered = other.lower();
  EXPECT_EQ(words(lowered), "re");
  EXPECT_EQ(lowered.ranks[0].blocks[0].steps[0].sources, 3);

  auto twice = local_program();  // x = a + b; x = x + x
  twice.reduce(at(twice.input(0), 0), {at(twice.input(0), 1)}, 0, {.target = &sum});
  twice.reduce(sum, {sum}, 0);
  EXPECT_EQ(words(twice.lower()), "re nop re");

  auto mixed = local_program();  // other operations
  mixed.reduce(sum, {at(mixed.input(0), 1)}, 0, {.reduction = Reduction::maximum});
  mixed.reduce(sum, {at(mixed.input(0), 2)}, 0);
  EXPECT_EQ(words(mixed.lower()), "re nop re");
}

TEST(Language, puts_of_different_buffers_are_not_joined) {
  for (const bool is_one_buffer : {true, false}) {
    auto program = local_program(4, 2);
    MemoryChannel channel(program, {.target = 1, .source = 0});
    const Buffer second = is_one_buffer ? program.input(0) : program.output(0);
    channel.put(at(program.output(1), 0), at(program.input(0), 0), 0);
    channel.put(at(program.output(1), 1), at(second, 1), 0);
    EXPECT_EQ(words(program.lower()), is_one_buffer ? "put" : "put put");
  }
}

TEST(Language, gets_into_one_place_are_not_joined) {
  auto program = local_program(4, 2);
  MemoryChannel channel(program, {.target = 1, .source = 0});
  channel.get(at(program.output(0), 0), at(program.input(1), 0), 0);
  channel.get(at(program.output(0), 0), at(program.input(1), 1), 0);
  channel.get(at(program.output(0), 2), at(program.input(1), 1), 0);
  EXPECT_EQ(words(program.lower()), "get nop get");
}

TEST(Language, packets_of_instances_have_places_of_their_own) {
  auto program = local_program(1, 1, {.instances = 3, .protocol = "LL"});
  const Buffer scratch = program.scratch(0, 2);
  const Chunk sum = program.output(0).all();
  program.reduce_packets(program.input(0).all(), {at(scratch, 0)}, 0, {.target = &sum});
  program.copy_packets(at(scratch, 1), sum, 0);
  const Program lowered = program.lower();
  ASSERT_EQ(lowered.ranks[0].blocks.size(), 3);
  for (std::size_t instance = 0; instance < 3; ++instance) {
    EXPECT_EQ(words(lowered, 0, instance), "recpkt");
    const Step& step = lowered.ranks[0].blocks[instance].steps[0];
    EXPECT_EQ(step.operands.back().first, 3 + Index(instance));  // chunk 1 of 2, thirds of it
    EXPECT_EQ(step.operands[1].first, Index(instance));
  }
}

TEST(Language, the_sum_of_a_switch_goes_where_it_is_broadcast) {
  for (const Index target : {0, 1}) {
    auto program = local_program(2, 2);
    SwitchChannel channel(program, {0, 1}, BufferKind::output);
    channel.reduce(0, 0, at(program.output(0), target), 0);
    channel.broadcast(0, at(program.output(0), target), target, 0);
    const Program lowered = program.lower();
    EXPECT_EQ(words(lowered), "glres");
    EXPECT_EQ(lowered.ranks[0].blocks[0].steps[0].operands[1].first, target);
  }
  // What a rank keeps for itself beside the places of the channel is not lost.
  auto program = local_program(2, 2);
  SwitchChannel channel(program, {0, 1}, BufferKind::output);
  channel.reduce(0, 0, at(program.input(0), 0), 0);
  channel.broadcast(0, at(program.input(0), 0), 1, 0);
  EXPECT_EQ(words(program.lower()), "glre nop gstore");
}

TEST(Language, blocks_meet_around_switch_operations) {
  auto program = local_program(2, 2);
  SwitchChannel channel(program, {0, 1}, BufferKind::output);
  program.copy(at(program.output(0), 0), at(program.input(0), 0), 0);
  channel.broadcast(0, at(program.output(0), 0), 1, 0);
  program.copy(at(program.input(0), 1), at(program.output(0), 1), 0);
  EXPECT_EQ(words(program.lower()), "copy nop gstore nop copy");
}

TEST(Language, blocks_meet_for_plain_data_and_not_for_packets) {
  auto program = local_program(2, 1, {.protocol = "LL"});
  const Buffer scratch = program.scratch(0, 2);
  const Chunk first = at(program.output(0), 0), second = at(program.output(0), 1);
  program.copy(first, at(program.input(0), 0), 0);
  program.reduce_packets(first, {at(scratch, 0)}, 0, {.target = &second});  // reads what was copied
  EXPECT_EQ(words(program.lower()), "copy nop repkt");

  auto packets = local_program(2, 1, {.protocol = "LL"});
  const Buffer inbox = packets.scratch(0, 2);
  packets.copy_packets(at(inbox, 0), at(packets.input(0), 0), 0);
  packets.unpack_packets(at(packets.output(0), 0), at(inbox, 0), 0);
  EXPECT_EQ(words(packets.lower()), "cpkt upkt");
}

TEST(Language, a_meeting_does_not_hide_the_accesses_of_the_step_behind_it) {
  auto program = local_program(4);
  const Buffer in = program.input(0), out = program.output(0);
  program.copy(at(out, 0), at(in, 0), 0);
  program.copy(at(in, 1), at(out, 0), 0);  // reads what was written: they meet before
  program.copy(at(out, 0), at(in, 2), 0);  // writes what the second one reads
  EXPECT_EQ(words(program.lower()), "copy nop copy nop copy");
}

TEST(Language, in_place_the_output_is_the_input) {
  for (const bool in_place : {false, true}) {
    CollectiveProgram program("alias", all_reduce(2, {.in_place = in_place}));
    const Buffer scratch = program.scratch(0, 2);
    program.copy(at(program.output(0), 0), at(scratch, 0), 0);
    program.copy(at(scratch, 1), at(program.input(0), 0), 0);
    EXPECT_EQ(words(program.lower()), in_place ? "copy nop copy" : "copy copy");
  }
  // Of an allgather, slice r.
  CollectiveProgram program("alias", all_gather(2, {.in_place = true}));
  const Buffer scratch = program.scratch(1, 2);
  program.copy(at(program.output(1), 0), at(scratch, 0), 0);
  program.copy(at(scratch, 1), program.input(1).all(), 0);
  program.copy(at(program.output(1), 1), at(scratch, 0), 0);
  EXPECT_EQ(words(program.lower(), 1), "copy copy nop copy");
}

TEST(Language, blocks_of_a_group_wait_for_each_other) {
  auto program = local_program(4);
  const Buffer scratch = program.scratch(0, 4);
  program.copy(scratch[{0, 2}], program.input(0)[{0, 2}], {0, 1});
  program.copy(program.output(0)[{0, 2}], scratch[{0, 2}], {0, 1});  // the same shares: nothing to wait for
  program.copy(at(program.output(0), 2), at(scratch, 0), 1);         // what block 0 has written
  const Program lowered = program.lower();
  EXPECT_EQ(words(lowered, 0, 0), "copy nop copy barrier");
  EXPECT_EQ(words(lowered, 0, 1), "copy nop copy barrier copy");
  EXPECT_TRUE(verify(lowered).is_right()) << verify(lowered).text();
  EXPECT_FALSE(verify(program.lower({.group_barriers = false})).is_right());
}

TEST(Language, a_block_of_a_group_does_its_part_alone) {
  auto program = local_program(4);
  const Buffer scratch = program.scratch(0, 4);
  const std::vector<int> group = {2, 0};
  for (const int block : group)
    program.copy(scratch[{0, 2}], program.input(0)[{0, 2}], ThreadBlocks::one_of(block, group));
  program.copy(program.output(0)[{0, 2}], scratch[{0, 2}], group);   // the same shares: nothing to wait for
  program.copy(program.output(0)[{2, 4}], scratch[{0, 2}], {0, 2});  // those of the other block
  const Program lowered = program.lower();
  for (const int block : {0, 2}) {
    EXPECT_EQ(words(lowered, 0, block), "copy nop copy barrier copy");
    const Step& first = lowered.ranks[0].blocks[std::size_t(block)].steps[0];
    EXPECT_EQ(first.share, block == 2 ? 0 : 1);
    EXPECT_EQ(first.shares, 2);
  }
  EXPECT_TRUE(verify(lowered).is_right()) << verify(lowered).text();
  expect_refused([&] { ThreadBlocks::one_of(1, group); }, "thread block 1 is not in the group of 2");
}

TEST(Language, semaphores_order_the_blocks_of_a_group) {
  auto program = local_program(4);
  const Buffer scratch = program.scratch(0, 4);
  Semaphore done(program, 0, 0);
  program.copy(scratch[{0, 2}], program.input(0)[{0, 2}], {0, 1});
  done.release(0);
  done.release(1);
  done.acquire(2);
  done.acquire(2);
  program.copy(at(program.output(0), 2), at(scratch, 1), 2);
  const Program lowered = program.lower();
  EXPECT_EQ(words(lowered, 0, 2), "nop sem_acquire nop copy");
}

TEST(Language, instances_without_replication_share_the_bytes) {
  auto program = local_program(2, 1, {.instances = 2, .replication = ReplicationPolicy::none});
  program.copy(program.output(0).all(), program.input(0).all(), 0);
  const Program lowered = program.lower();
  EXPECT_EQ(lowered.ranks[0].chunks[0], 2);
  ASSERT_EQ(lowered.ranks[0].blocks.size(), 2);
  for (std::int32_t i = 0; i < 2; ++i) {
    const Step& step = lowered.ranks[0].blocks[std::size_t(i)].steps[0];
    EXPECT_EQ(step.share, i);
    EXPECT_EQ(step.shares, 2);
  }
  EXPECT_TRUE(verify(lowered).is_right());

  auto port = local_program(2, 2, {.instances = 2, .replication = ReplicationPolicy::none});
  PortChannel channel(port, {.target = 1, .source = 0});
  channel.put(at(port.output(1), 0), at(port.input(0), 0), 0);
  expect_refused([&] { port.lower(); }, "cannot be shared");
}

TEST(Language, instances_of_ranges_of_different_sizes_agree) {
  CollectiveProgram program("mixed", all_to_all(2, {.chunk_factor = 2}), {.instances = 2});
  std::vector<MemoryChannel> channels;
  for (const tranship::Rank rank : {0, 1})
    channels.emplace_back(program, ChannelEnds{.target = 1 - rank, .source = rank});
  for (const tranship::Rank rank : {0, 1}) {
    MemoryChannel& channel = channels[std::size_t(rank)];
    const Buffer in = program.input(rank), there = program.output(1 - rank);
    channel.signal(0, {.relaxed = true});
    channel.wait(0, {.relaxed = true});
    // Two chunks at once one way, one by one the other.
    if (rank == 0) channel.put(there[{0, 2}], in[{2, 4}], 0);
    if (rank == 1)
      for (const Index chunk : {0, 1}) channel.put(at(there, 2 + chunk), at(in, chunk), 0);
    program.copy(program.output(rank)[{2 * rank, 2 * rank + 2}], in[{2 * rank, 2 * rank + 2}], 0);
    channel.signal(0);
    channel.wait(0);
  }
  const Verification found = verify(program.lower());
  EXPECT_TRUE(found.is_right() && found.knows_result) << found.text();
}

TEST(Language, instances_of_loops_keep_their_chunks) {
  auto program = local_program(4, 1, {.instances = 2});
  {
    LoopIterationContext loop(program, {.unit_bytes = 64, .chunks = 2});
    program.copy(program.output(0)[{0, 2}], program.input(0)[{0, 2}], 0);
  }
  program.copy(at(program.output(0), 2), at(program.input(0), 1), 1);
  EXPECT_EQ(words(program.lower()), "pipeline[copy]");
  EXPECT_TRUE(verify(program.lower()).is_right()) << verify(program.lower()).text();
}

// Found by comparison with the original on random scripts: the parts of a put with a signal signalled each.
TEST(Language, instances_of_a_put_with_a_signal_signal_once) {
  for (const bool flushes : {false, true}) {
    auto program = local_program(4, 2, {.instances = 2});
    PortChannel there(program, {.target = 1, .source = 0}), back(program, {.target = 0, .source = 1});
    const Chunk source = program.input(0)[{0, 2}], target = program.output(1)[{0, 2}];
    if (flushes)
      there.put_with_signal_and_flush(target, source, 0);
    else
      there.put_with_signal(target, source, 0);
    back.wait(0);
    program.copy(at(program.input(1), 0), at(program.output(1), 1), 0);
    const Program lowered = program.lower();
    EXPECT_EQ(words(lowered), flushes ? "put pwsf" : "put pws");
    EXPECT_TRUE(verify(lowered).is_right()) << verify(lowered).text();
  }
}

TEST(Language, barriers_that_make_nothing_right_are_left_out) {
  auto program = local_program(4, 2);
  MemoryChannel there(program, {.target = 1, .source = 0}), back(program, {.target = 0, .source = 1});
  program.copy(program.output(0)[{0, 2}], program.input(0)[{0, 2}], {0, 1});
  back.wait(0);
  back.signal(0);
  there.wait(0);  // each waits for the other
  there.signal(0);
  program.copy(at(program.output(0), 2), at(program.output(0), 0), 1);
  EXPECT_EQ(words(program.lower(), 0, 1).find("barrier"), std::string::npos);
}

TEST(Language, barriers_are_numbered_in_each_program) {
  for (int i = 0; i < 2; ++i) {
    auto program = local_program(2);
    program.barrier(0, {0, 1});
    program.barrier(0, {0});
    program.barrier(0, {0, 1});
    program.barrier(0, {1, 2});
    const Program lowered = program.lower();
    EXPECT_EQ(words(lowered), "barrier barrier");  // a meeting behind a barrier is no other one
    EXPECT_EQ(lowered.ranks[0].blocks[0].steps[0].ids, std::vector<std::int32_t>{0});
    EXPECT_EQ(lowered.ranks[0].blocks[2].steps[0].ids, std::vector<std::int32_t>{1});
    EXPECT_EQ(lowered.ranks[0].blocks[0].steps[0].participants, 2);
  }
}

TEST(Language, passes_can_be_left_out) {
  auto program = local_program(4, 2);
  MemoryChannel there(program, {.target = 1, .source = 0}), back(program, {.target = 0, .source = 1});
  there.signal(0);
  there.signal(0);
  back.wait(0);
  back.wait(0);
  there.put(at(program.output(1), 0), at(program.input(0), 0), 0);
  there.put(at(program.output(1), 1), at(program.input(0), 1), 0);
  program.copy(at(program.input(0), 0), at(program.input(0), 2), 0);
  EXPECT_EQ(words(program.lower()), "nop signal nop signal nop put nop copy");
  EXPECT_EQ(words(program.lower({.fusion = false})), "nop signal nop nop signal nop put put nop copy");
  EXPECT_EQ(words(program.lower({.data_sync = false})), "signal signal put nop copy");
  EXPECT_EQ(words(program.lower({.dependencies = false})), "nop signal nop signal nop put copy");
  back.wait(0);
  expect_refused([&] { program.lower(); },
                 "signals rank 1 2 times on memory channels, and rank 1 waits for it 3 times");
  EXPECT_EQ(words(program.lower({.pairing = false}), 1), "nop wait nop wait nop wait nop");
  EXPECT_EQ(words(program.lower({.pairing = false})), words(program.lower({.pairing = false})));
}

TEST(Language, loops_gather_by_block) {
  auto program = local_program(2);
  program.copy(at(program.output(0), 0), at(program.input(0), 0), 0);
  {
    LoopIterationContext loop(program, {.unit_bytes = 64, .chunks = 1});
    program.copy(at(program.output(0), 1), at(program.input(0), 1), 0);
    program.copy(at(program.input(0), 1), at(program.output(0), 1), 0);
    program.copy(at(program.output(0), 0), at(program.input(0), 0), 1);
    expect_refused([&] { LoopIterationContext(program, {.unit_bytes = 1, .chunks = 1}); }, "do not nest");
    expect_refused([&] { program.lower(); }, "still open");
  }
  const Program lowered = program.lower();
  EXPECT_EQ(words(lowered), "copy pipeline[copy nop copy]");
  EXPECT_EQ(words(lowered, 0, 1), "pipeline[copy]");
  EXPECT_EQ(lowered.ranks[0].blocks[0].steps[1].pipeline->unit_bytes, 64);
}

TEST(Language, refuses_what_no_program_can_have) {
  auto program = local_program(4, 2);
  const Buffer in = program.input(0), out = program.output(1), scratch = program.scratch(0, 2);
  MemoryChannel memory(program, {.target = 1, .source = 0});
  PortChannel port(program, {.target = 1, .source = 0});
  expect_refused([&] { MemoryChannel(program, {.target = -1, .source = 0}); }, "-1 is out of bounds");
  expect_refused([&] { PortChannel(program, {.target = 0, .source = 2}); }, "source rank 2");
  expect_refused([&] { SwitchChannel(program, {0, -1}, BufferKind::input); }, "-1");
  expect_refused([&] { SwitchChannel(program, {0, 0}, BufferKind::input); }, "twice");
  expect_refused([&] { SwitchChannel(program, {0}, BufferKind::input).id_at(1); }, "rank 1");
  expect_refused([&] { Semaphore(program, 0, -1); }, "-1");
  expect_refused([&] { program.input(2); }, "rank 2");
  expect_refused([&] { program.scratch(0, -1); }, "-1");
  expect_refused([&] { (void)in[{3, 5}]; }, "[3..5) is not a range of a buffer of 4 chunks");
  expect_refused([&] { (void)in[{-1, 2}]; }, "-1");
  expect_refused([&] { memory.put(at(out, 0), at(out, 1), 0); }, "chunk of rank 1");
  expect_refused([&] { memory.put(out[{0, 2}], at(in, 1), 0); }, "the target has 2 chunks, the source 1");
  expect_refused([&] { memory.get(at(in, 0), out[{0, 2}], 0); }, "the target has 1 chunk, the source 2");
  expect_refused([&] { memory.put_packets(at(out, 0), at(in, 0), 0); }, "packets must lie in scratch");
  expect_refused([&] { port.put_packets(at(program.scratch(1, 1), 0), at(in, 0), 0); }, "packets must lie in scratch");
  expect_refused([&] { program.unpack_packets(at(in, 0), at(in, 1), 0); }, "packets must lie in scratch");
  expect_refused([&] { program.reduce(at(in, 0), {}, 0); }, "no operand beside the first source");
  expect_refused([&] { program.reduce_packets(at(in, 0), {at(in, 1)}, 0); }, "packets must lie in scratch");
  expect_refused([&] { program.copy(at(in, 0), at(scratch, 0), -1); }, "thread block -1");
  expect_refused([&] { program.copy(at(in, 0), at(scratch, 0), {0, 0}); }, "twice");
  expect_refused([&] { program.barrier(0, {}); }, "at least 1 thread block");
  expect_refused([&] { CollectiveProgram("x", all_reduce(2), {.protocol = "Complex"}); }, "Complex");
  expect_refused([&] { CollectiveProgram("x", all_reduce(2), {.instances = 0}); }, "0 instances");
  expect_refused([&] { all_reduce(0); }, "0 ranks");
  expect_refused([&] { all_reduce(2, {.chunk_factor = 0}); }, "factor of 0");
  expect_refused([&] { CollectiveProgram("x", custom({1, 1}, {1})); }, "2 inputs and 1 output");
  EXPECT_TRUE(program.lower().ranks[0].blocks.empty()) << "something that was refused was added";
}

// Empty chunks are legal and move nothing.
TEST(Language, empty_chunks_are_legal) {
  auto program = local_program(2, 2);
  MemoryChannel channel(program, {.target = 1, .source = 0});
  channel.put(program.output(1)[{1, 1}], program.input(0)[{0, 0}], 0);
  EXPECT_EQ(words(program.lower()), "put");
  EXPECT_TRUE(verify(program.lower()).is_right());
}

TEST(Language, blocks_cost_nothing_before_they_do_anything) {
  auto program = local_program(3);
  const int last = 200'000;
  const Buffer in = program.input(0), out = program.output(0);
  program.copy(at(out, 0), at(in, 0), last);
  program.copy(at(out, 1), at(in, 1), {7, last - 1});
  program.copy(at(out, 2), at(out, 1), last);
  const Program lowered = program.lower();
  EXPECT_EQ(words(lowered, 0, std::size_t(last)), "copy barrier copy");
  EXPECT_EQ(words(lowered, 0, 7), "copy barrier");
}

TEST(Language, steps_know_the_line_that_they_were_written_in) {
  auto program = local_program(2);
  program.copy(program.output(0).all(), program.input(0).all(), 0, {"x.cpp", 42});
  EXPECT_EQ(program.lower().ranks[0].blocks[0].steps[0].line, 42);
}

}  // namespace
}  // namespace tranship::language
