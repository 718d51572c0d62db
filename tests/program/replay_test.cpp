// Programs replayed on machine models: times that can be worked out by hand, what ranks share, and files of machines.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <tranship/program/plan_file.hpp>
#include <tranship/program/predict.hpp>
#include <tranship/program/verify.hpp>

#include "support/error_of.hpp"
#include "support/mscclpp_plans.hpp"

namespace tranship::test {
namespace {

Step step(StepKind kind, std::vector<std::int32_t> ids = {}) {
  Step out{.kind = kind};
  out.ids = std::move(ids);
  return out;
}

/// Rank 0 puts its input into the output of rank 1, in so many equal blocks, and signals; rank 1 waits.
Program put_and_signal(int blocks, ChannelKind kind = ChannelKind::memory) {
  Program program{.name = "put", .collective = "test"};
  const auto k = static_cast<std::size_t>(kind);
  for (const Rank rank : {0, 1}) {
    RankProgram& one = program.ranks.emplace_back();
    one.chunks[0] = one.chunks[1] = blocks;
    one.remote_buffers.push_back({.rank = 1 - rank, .buffer = BufferKind::output, .access = {kind}});
    for (int i = 0; i < blocks; ++i) {
      one.peers[k].push_back(1 - rank);
      ThreadBlock& block = one.blocks.emplace_back();
      block.channels[k] = {i};
      block.remote_buffers[k] = {0};
      Step put{.kind = StepKind::put, .channel = kind, .sources = 1};
      put.operands = {{.buffer = BufferKind::input, .first = i, .count = 1},
                      {.buffer = BufferKind::output, .via = 0, .first = i, .count = 1}};
      Step signal = step(StepKind::signal, {i}), wait = step(StepKind::wait, {i});
      signal.channel = wait.channel = kind;
      if (rank == 0)
        block.steps = {put, signal};
      else
        block.steps = {wait};
    }
  }
  return program;
}

MachineModel simple_machine() {
  MachineModel machine{.name = "simple", .ranks_per_host = 8, .launch_ns = 1000, .step_ns = 10};
  machine.copy = Rate(10);
  machine.memory = {.latency_ns = 500, .message_ns = 20, .put = Rate(4), .reduce_put = Rate(4), .take_back = Rate(4)};
  machine.port = machine.far_port = machine.memory;
  return machine;
}

TEST(Predict, a_put_and_a_signal_take_what_the_formula_says) {
  const Prediction said = predict(put_and_signal(1), simple_machine(), 4000);
  // launch, step, message, bytes by rate; step, message; latency; step
  EXPECT_DOUBLE_EQ(said.duration_ns, 1000 + (10 + 20 + 4000 / 4.0) + (10 + 20) + 500 + 10);
  EXPECT_DOUBLE_EQ(said.bandwidth_ns, 1000);
  EXPECT_DOUBLE_EQ(said.queued_ns, 0);
  EXPECT_DOUBLE_EQ(said.latency_ns + said.bandwidth_ns + said.queued_ns, said.duration_ns);
  EXPECT_EQ(said.executions, 3);
  ASSERT_EQ(said.path.size(), 3u);
  EXPECT_EQ(said.path[1].words, "put signal");
  EXPECT_EQ(said.path[2].words, "wait");
  EXPECT_EQ(said.path[2].rank, 1);
}

TEST(Predict, short_puts_have_a_rate_of_their_own) {
  MachineModel machine = simple_machine();
  machine.memory.short_put = Rate(2);
  machine.memory.long_put_bytes = 4096;
  EXPECT_DOUBLE_EQ(predict(put_and_signal(1), machine, 4096).bandwidth_ns, 4096 / 4.0);
  EXPECT_DOUBLE_EQ(predict(put_and_signal(1), machine, 4080).bandwidth_ns, 4080 / 2.0);
  // Of each block's part, not of all.
  EXPECT_DOUBLE_EQ(predict(put_and_signal(2), machine, 4096).bandwidth_ns, 2048 / 2.0);
}

TEST(Predict, rates_that_a_machine_file_leaves_out_follow_from_others) {
  const MachineModel machine = read_machine(R"({"format": "tranship machine 1", "name": "m", "thread_blocks": "in turn",
    "step_ns": 1, "copy_gb_per_s": 10, "links": {"memory": {"latency_ns": 1, "put_gb_per_s": 4, "get_gb_per_s": 5}}})");
  const LinkModel& link = machine.memory;
  EXPECT_EQ(link.short_put, link.put);
  EXPECT_EQ(link.long_put_bytes, 0);
  EXPECT_EQ(link.reduce_put, link.put);
  EXPECT_EQ(link.take_back, link.put);
  EXPECT_EQ(link.read_reduce, link.get);
  EXPECT_NE(error_of([] {
              read_machine(R"({"format": "tranship machine 1", "name": "m", "thread_blocks": "in turn", "step_ns": 1,
                "copy_gb_per_s": 10, "links": {"memory": {"latency_ns": 1, "put_gb_per_s": 4, "long_put_bytes": -1}}})");
            }).find("links.memory.long_put_bytes: "),
            std::string::npos);
  EXPECT_NE(error_of([] {
              read_machine(R"({"format": "tranship machine 1", "name": "m", "thread_blocks": "in turn", "step_ns": 1,
                "copy_gb_per_s": 10, "links": {"memory": {"latency_ns": 1, "put_gb_per_s": 4,
                "short_put_gb_per_s": 2}}})");
            }).find("links.memory.short_put_gb_per_s: applies only with long_put_bytes above 0"),
            std::string::npos);
}

TEST(Predict, blocks_of_a_rank_share_its_link) {
  MachineModel machine = simple_machine();
  const Index bytes = 160'000;
  const double alone_ns = predict(put_and_signal(1), machine, bytes).bandwidth_ns;
  EXPECT_NEAR(predict(put_and_signal(4), machine, bytes).bandwidth_ns, alone_ns / 4, 1) << "four at once";
  machine.rank_gb_per_s = 4;
  const Prediction shared = predict(put_and_signal(4), machine, bytes);
  EXPECT_NEAR(shared.bandwidth_ns + shared.queued_ns, alone_ns, 100) << "the link is as fast as one block";
  EXPECT_GT(shared.queued_ns, 0.7 * alone_ns);
}

TEST(Predict, hosts_share_their_network_and_memory_channels_end_at_it) {
  MachineModel machine = simple_machine();
  machine.ranks_per_host = 1;
  EXPECT_NE(error_of([&] { predict(put_and_signal(1), machine, 4096); }).find("has no memory channels between hosts"),
            std::string::npos);
  const Program far = put_and_signal(2, ChannelKind::port);
  const double free_ns = predict(far, machine, 64'000).duration_ns;
  machine.host_gb_per_s = 4;
  EXPECT_NEAR(predict(far, machine, 64'000).duration_ns - free_ns, 8000, 100) << "half of 64,000 bytes by 4 GB/s";
}

TEST(Predict, a_proxy_lets_its_block_go_on) {
  MachineModel machine = simple_machine();
  Program program = put_and_signal(1, ChannelKind::port);
  const double together_ns = predict(program, machine, 64'000).duration_ns;
  machine.port.has_proxy = true;
  EXPECT_NEAR(predict(program, machine, 64'000).duration_ns, together_ns, 100) << "the signal follows the bytes";
  for (RankProgram& rank : program.ranks) rank.blocks[0].steps.resize(rank.blocks[0].steps.size() - 1);
  EXPECT_LT(predict(program, machine, 64'000).duration_ns, 2000) << "nothing waits for the put";
  Step flush = step(StepKind::flush, {0});
  flush.channel = ChannelKind::port;
  program.ranks[0].blocks[0].steps.push_back(flush);
  EXPECT_GT(predict(program, machine, 64'000).duration_ns, 16'000) << "a flush does";
}

TEST(Predict, ranks_share_cores) {
  Program program{.name = "copies", .collective = "test"};
  for (int rank = 0; rank < 4; ++rank) {
    RankProgram& one = program.ranks.emplace_back();
    one.chunks[0] = one.chunks[1] = 1;
    Step copy{.kind = StepKind::copy, .sources = 1};
    copy.operands = {{.buffer = BufferKind::input, .count = 1}, {.buffer = BufferKind::output, .count = 1}};
    one.blocks.emplace_back().steps = {copy};
  }
  MachineModel machine = simple_machine();
  machine.blocks = MachineModel::Blocks::in_turn;
  const Index bytes = 1'000'000;
  const auto last_ns = [&] {
    const Replay played = replay(program, machine, {.input_bytes = bytes});
    double end_ns = 0;
    for (const StepEvent& event : played.events) end_ns = std::max(end_ns, event.end_ns);
    return end_ns;
  };
  const double alone_ns = last_ns();
  machine.cores_per_host = 4;
  EXPECT_DOUBLE_EQ(last_ns(), alone_ns);
  machine.cores_per_host = 2;
  EXPECT_DOUBLE_EQ(last_ns(), 2 * alone_ns);
  machine.core_switch_ns = 5000;
  EXPECT_DOUBLE_EQ(last_ns(), 2 * alone_ns + 5000);
}

TEST(Predict, plans_of_mscclpp_end_on_every_machine_where_they_end_at_all) {
  MachineModel slow_links = simple_machine();
  slow_links.has_far_memory = true;
  slow_links.far_memory = slow_links.memory;
  MachineModel one_thread = slow_links;
  one_thread.blocks = MachineModel::Blocks::in_turn;
  one_thread.cores_per_host = 3;
  one_thread.core_switch_ns = 700;
  for (const PlanCase& one : mscclpp_plans()) {
    const Program program = read_program(read_text(one.path));
    const bool ends = !one.result.starts_with("DEADLOCK");
    for (const MachineModel& machine : {step_by_step(), slow_links, one_thread})
      for (const Index bytes : {Index(1), Index(100'000)}) {
        const Replay played = replay(program, machine, {.input_bytes = bytes});
        EXPECT_EQ(played.stuck.empty(), ends) << one.name << " on " << machine.name;
        if (!ends) continue;
        const Prediction said = predict(program, machine, bytes);
        const double path_ns = said.latency_ns + said.bandwidth_ns + said.queued_ns;
        EXPECT_NEAR(path_ns, said.path.back().end_ns, 1e-6 * path_ns) << one.name << ": the path has no holes";
        EXPECT_GE(path_ns, said.duration_ns * (1 - 1e-6)) << one.name;
        if (machine.cores_per_host == 0) EXPECT_NEAR(path_ns, said.duration_ns, 1e-6 * path_ns) << one.name;
      }
  }
}

TEST(Predict, a_cpu_writes_fast_where_it_has_just_read) {
  Program program = put_and_signal(1);
  Step reduce{.kind = StepKind::read_reduce_put, .sources = 2};
  const Operand own{.buffer = BufferKind::input, .count = 1}, peer{.buffer = BufferKind::output, .via = 0, .count = 1};
  reduce.operands = {own, peer, own, peer};
  program.ranks[0].blocks[0].steps[0] = reduce;
  MachineModel machine = simple_machine();
  machine.memory.read_reduce = Rate(5);
  machine.memory.reduce_put = Rate(2);
  const double bytes = 40'000, read_ns = bytes / 5, copy_ns = bytes / 10, put_ns = bytes / 2;
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, read_ns + copy_ns + put_ns);
  machine.blocks = MachineModel::Blocks::in_turn;
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, read_ns + copy_ns + copy_ns);
}

TEST(Predict, a_cpu_takes_back_what_a_peer_has_read) {
  // Rank 0 copies its input to its output, which rank 1 then reads: in the launch before, too.
  Program program = put_and_signal(1);
  Step copy{.kind = StepKind::copy, .sources = 1};
  copy.operands = {{.buffer = BufferKind::input, .count = 1}, {.buffer = BufferKind::output, .count = 1}};
  program.ranks[0].blocks[0].steps[0] = copy;
  Step get{.kind = StepKind::get, .sources = 1};
  get.operands = {{.buffer = BufferKind::output, .via = 0, .count = 1}, {.buffer = BufferKind::input, .count = 1}};
  MachineModel machine = simple_machine();
  machine.blocks = MachineModel::Blocks::in_turn;
  machine.memory.get = Rate(5);
  machine.memory.take_back = Rate(2);
  const double bytes = 40'000, read_ns = bytes / 5, copy_ns = bytes / 10, back_ns = bytes / 2;
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, copy_ns);
  program.ranks[1].blocks[0].steps.push_back(get);
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, back_ns + read_ns);
  // What was taken back stays here.
  auto& steps = program.ranks[0].blocks[0].steps;
  steps.insert(steps.begin(), copy);
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, back_ns + copy_ns + read_ns);
  // Where blocks run together, memories are not caches of each other.
  machine.blocks = MachineModel::Blocks::together;
  EXPECT_DOUBLE_EQ(predict(program, machine, 40'000).bandwidth_ns, 2 * copy_ns + read_ns);
}

TEST(Predict, says_where_a_program_does_not_end) {
  Program program = put_and_signal(1);
  program.ranks[0].blocks[0].steps.pop_back();
  EXPECT_NE(error_of([&] {
              predict(program, simple_machine(), 64);
            }).find("1 of its blocks wait for ever, the first of them on rank 1, block 0, at step 0 (wait)"),
            std::string::npos);
}

TEST(Predict, refuses_what_is_too_large) {
  EXPECT_NE(
      error_of([&] { predict(put_and_signal(1), simple_machine(), INT64_MAX); }).find("the limit is 274877906944"),
      std::string::npos);
  Program program = put_and_signal(1);
  Step loop = step(StepKind::pipeline);
  loop.pipeline = std::make_shared<Pipeline>(
      Pipeline{.unit_bytes = 1, .chunks = INT64_MAX, .steps = {step(StepKind::nop), step(StepKind::nop)}});
  program.ranks[0].blocks[0].steps = {loop};
  program.ranks[1].blocks[0].steps.clear();
  EXPECT_NE(error_of([&] { replay(program, simple_machine(), {.events_max = 10'000}); }).find("more than 10000 steps"),
            std::string::npos);
  Pipeline wide = *loop.pipeline;
  wide.unit_bytes = INT64_MAX;
  program.ranks[0].blocks[0].steps[0].pipeline = std::make_shared<Pipeline>(wide);
  EXPECT_EQ(error_of([&] { replay(program, simple_machine()); }), "");
}

/// A ring in which each of many ranks signals the next and waits for the one before.
Program ring(Rank ranks, int rounds) {
  Program program{.name = "ring", .collective = "test"};
  for (Rank rank = 0; rank < ranks; ++rank) {
    RankProgram& one = program.ranks.emplace_back();
    one.peers[0] = {Rank((rank + 1) % ranks), Rank((rank + ranks - 1) % ranks)};
    ThreadBlock& block = one.blocks.emplace_back();
    block.channels[0] = {0, 1};
    for (int i = 0; i < rounds; ++i) {
      block.steps.push_back(step(StepKind::signal, {0}));
      block.steps.push_back(step(StepKind::wait, {1}));
    }
  }
  return program;
}

TEST(Predict, thousands_of_ranks) {
  const Program program = ring(4000, 50);
  MachineModel machine = simple_machine();
  machine.ranks_per_host = 4000;
  const Prediction said = predict(program, machine, 1024);
  EXPECT_EQ(said.executions, 400'000);
  EXPECT_DOUBLE_EQ(said.duration_ns, 1000 + 50 * (10 + 20 + 500 + 10));
  EXPECT_NE(error_of([&] { replay(program, machine, {.events_max = 1000}); }).find("more than 1000 steps"),
            std::string::npos);
}

TEST(Machine, files_say_what_was_read) {
  for (const char* name : {"node-with-switch", "cluster", "two-cores"}) {
    const MachineModel machine = read_machine(read_text(test_path(std::string("../machines/") + name + ".json")));
    EXPECT_TRUE(read_machine(write_machine(machine)) == machine) << name << "\n" << write_machine(machine);
  }
}

TEST(Machine, rates_follow_the_bytes_touched) {
  const Rate rate({{.bytes = 1024, .gb_per_s = 10}, {.bytes = 1 << 20, .gb_per_s = 2}});
  EXPECT_DOUBLE_EQ(rate.ns_per_byte(0), 0.1);
  EXPECT_DOUBLE_EQ(rate.ns_per_byte(1024), 0.1);
  EXPECT_NEAR(rate.ns_per_byte(32 * 1024), 0.3, 1e-12) << "half-way, by the logarithm";
  EXPECT_DOUBLE_EQ(rate.ns_per_byte(1e12), 0.5);
  EXPECT_DOUBLE_EQ(Rate().ns_per_byte(5), 0);
}

TEST(Machine, refuses_files_that_make_no_sense) {
  const std::string right = write_machine(simple_machine());
  const auto wrong = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of([&] { read_machine(text.replace(at, from.size(), to)); });
  };
  EXPECT_NE(wrong("machine 1", "machine 2").find("format"), std::string::npos);
  EXPECT_NE(wrong("\"together\"", "\"apart\"").find("thread_blocks"), std::string::npos);
  EXPECT_NE(wrong("\"step_ns\": 10.0", "\"step_ns\": -1").find("step_ns"), std::string::npos);
  EXPECT_NE(wrong("\"step_ns\": 10.0", "\"step_ns\": 1e300").find("step_ns"), std::string::npos);
  EXPECT_NE(wrong("\"step_ns\"", "\"steps_ns\"").find("step_ns"), std::string::npos);
  EXPECT_NE(wrong("\"copy_gb_per_s\": 10.0", "\"copy_gb_per_s\": 0").find("copy_gb_per_s"), std::string::npos);
  EXPECT_NE(wrong("\"copy_gb_per_s\": 10.0", "\"copy_gb_per_s\": []").find("copy_gb_per_s"), std::string::npos);
  EXPECT_NE(wrong("\"copy_gb_per_s\": 10.0", "\"copy_gb_per_s\": [[2, 1], [1, 1]]").find("copy_gb_per_s[1]"),
            std::string::npos);
  EXPECT_NE(wrong("\"ranks_per_host\": 8", "\"ranks_per_host\": 0").find("ranks_per_host"), std::string::npos);
  EXPECT_NE(wrong("\"ranks_per_host\": 8", "\"ranks_per_host\": 8, \"cores_per_host\": 2").find("cores_per_host"),
            std::string::npos);
  EXPECT_NE(wrong("\"latency_ns\"", "\"late_ns\""), "");
}

TEST(Machine, a_note_is_anything) {
  const std::string plain = read_text(test_path("../machines/two-cores.json"));
  for (const char* note : {"\"text\"", "{\"by\": [1, null]}", "3", "null"}) {
    std::string text = plain;
    text.insert(text.find('{') + 1, fmt::format("\"note\": {},", note));
    EXPECT_TRUE(read_machine(text) == read_machine(plain)) << note;
  }
}

TEST(Machine, refuses_rates_with_the_range_that_there_is) {
  const std::string plain = read_text(test_path("../machines/cluster.json"));
  for (const char* right : {"\"copy_gb_per_s\": 60", "\"rank_gb_per_s\": 400", "\"host_gb_per_s\": 400"})
    for (const char* rate : {"0", "-1.0", "1e-09", "1e+300", "\"fast\""}) {
      std::string text = plain;
      const std::string name(right, std::string_view(right).find(':'));
      text.replace(text.find(right), std::string_view(right).size(), fmt::format("{}: {}", name, rate));
      EXPECT_EQ(error_of([&] { read_machine(text); }),
                fmt::format("bad_text: {}: expected a rate from 1e-6 to 1e15, not {}", name.substr(1, name.size() - 2),
                            rate));
    }
}

TEST(Arrows, pair_the_kth_signal_with_the_kth_wait) {
  const Replay played =
      replay(ring(3, 2), step_by_step(), {.iterations_max = 1, .arrows = ReplayOptions::Arrows::find});
  ASSERT_EQ(played.steps.size(), 12u);
  ASSERT_EQ(played.arrows.size(), 6u);
  for (const StepArrow& arrow : played.arrows) {
    const StepPlace &from = played.steps[std::size_t(arrow.from)], &to = played.steps[std::size_t(arrow.to)];
    EXPECT_EQ(to.rank, (from.rank + 1) % 3);
    EXPECT_EQ(to.step, from.step + 1);
    EXPECT_EQ(arrow.kind, StepArrow::Kind::signal);
  }
}

}  // namespace
}  // namespace tranship::test
