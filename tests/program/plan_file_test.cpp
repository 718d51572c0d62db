// Plan files: what MSCCL++ wrote is read, and written as it was; what makes no sense is refused.
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/json.hpp>
#include <tranship/base/random.hpp>
#include <tranship/program/algorithms.hpp>
#include <tranship/program/plan_file.hpp>
#include <tranship/program/verify.hpp>

#include "support/error_of.hpp"
#include "support/mscclpp_plans.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

TEST(PlanFile, present_plans_are_written_as_they_were_read) {
  const auto cases = mscclpp_plans();
  ASSERT_GE(cases.size(), 16u);
  for (const PlanCase& one : cases) {
    const std::string text = read_text(one.path);
    const std::string written = write_program(read_program(text));
    EXPECT_EQ(write_program(read_program(written)), written) << one.name;
    if (one.name.starts_with("intermediate")) continue;
    const Json before = parse_json(text), after = parse_json(written);
    EXPECT_TRUE(before == after) << one.name << "\n"
                                 << before.dump().substr(0, 2000) << "\n"
                                 << written.substr(0, 2000);
  }
}

TEST(ProgramNumbers, differ_where_plan_files_differ) {
  std::map<std::vector<std::uint64_t>, std::string> texts;
  SplitMix64 random(3);
  for (const PlanCase& one : mscclpp_plans()) {
    Program program = read_program(read_text(one.path));
    for (int change = 0; change < (is_brief() ? 2 : 12); ++change) {
      const std::string text = write_program(program);
      const auto [at, is_new] = texts.emplace(numbers_of(program), text);
      ASSERT_EQ(at->second, text) << one.name;
      EXPECT_EQ(numbers_of(read_program(text)), at->first);
      RankProgram& rank = program.ranks[std::size_t(random.below(program.ranks.size()))];
      if (rank.blocks.empty()) continue;
      ThreadBlock& block = rank.blocks[std::size_t(random.below(rank.blocks.size()))];
      if (block.steps.empty()) continue;
      Step& step = block.steps[std::size_t(random.below(block.steps.size()))];
      switch (random.below(4)) {
        case 0:
          std::swap(step, block.steps.front());
          break;
        case 1:
          block.steps.push_back(step);
          break;
        case 2:
          for (Operand& operand : step.operands) operand.count = 0;
          break;
        default:
          ++rank.chunks[random.below(3)];
      }
    }
  }
  EXPECT_GT(texts.size(), is_brief() ? 20u : 100u);
}

TEST(PlanFile, old_plans_are_written_in_the_present_format) {
  const auto cases = old_mscclpp_plans();
  ASSERT_GE(cases.size(), 4u);
  for (const PlanCase& one : cases) {
    const Program program = read_program(read_text(one.path));
    EXPECT_GT(count_steps(program), 0) << one.name;
    const std::string written = write_program(program);
    EXPECT_EQ(write_program(read_program(written)), written) << one.name;
  }
}

// Releases 0.8 and 0.9 wrote some steps in other words, and meant the same.
TEST(PlanFile, steps_as_earlier_releases_wrote_them_mean_the_same) {
  const auto plan = [](const std::string& chunks, const std::string& channels, const std::string& block,
                       const std::string& op) {
    const auto rank = [&](int id) {
      return R"({"id": )" + std::to_string(id) + ", " + chunks + ", " + channels +
             R"(, "semaphores": [], "threadblocks": [{"id": 0, "ops": [)" + op + "], " + block + "}]}";
    };
    return R"({"name": "n", "collective": "c", "protocol": "Simple", "inplace": false, "gpus": [)" + rank(0) + ", " +
           rank(1) + "]}";
  };
  const std::string chunks = R"("input_chunks": 2, "output_chunks": 2, "scratch_chunks": 1)";
  const auto as_now = [](const std::string& text) { return write_program(read_program(text)); };

  // The channel of a reduction with puts could be left out: there was only one kind.
  const std::string peers = R"("channels": [{"channel_type": "memory", "connected_to": [0]}],
    "remote_buffers": [{"rank": 0, "type": "i", "access_channel_types": ["memory"]}])";
  const std::string block = R"("channels": [{"channel_type": "memory", "channel_ids": [0]}],
    "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}])";
  const std::string res = R"({"name": "res", "reduce_op": "sum", "src_buff": [{"type": "i", "index": 0, "size": 1},
    {"type": "i", "index": 1, "size": 1}],
    "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"buffer_id": 0, "index": 1, "size": 1}])";
  EXPECT_EQ(as_now(plan(chunks, peers, block, res + "}")),
            as_now(plan(chunks, peers, block, res + R"(, "channel_type": "memory"})")));
  // A signal went by two kinds, and says by which.
  const std::string lost = plan(chunks, peers, block, R"({"name": "signal", "channel_ids": [0]})");
  EXPECT_EQ(error_of([&] { read_program(lost); }),
            "bad_file: gpus[0].threadblocks[0].ops[0].name: \"signal\" without a channel_type");

  // A multicast had the form that reductions in the switch still have.
  const std::string switches = R"("channels": [{"channel_type": "switch", "buffer_type": "i",
    "rank_groups": [{"size": 2, "ranks": [0, 1]}]}])";
  const std::string uses = R"("channels": [{"channel_type": "switch", "channel_ids": [0]}], "remote_buffer_refs": [])";
  EXPECT_EQ(as_now(plan(chunks, switches, uses,
                        R"({"name": "gstore", "channel_type": "switch", "channel_ids": [0], "buffer_type": "i",
    "buffer_offset": 1, "size": 1, "src_chunk": {"type": "s", "index": 0, "size": 1}})")),
            as_now(plan(chunks, switches, uses,
                        R"({"name": "gstore", "channel_type": "switch",
    "src_buff": [{"type": "s", "index": 0, "size": 1}],
    "dst_buff": [{"switch_channel_id": 0, "index": 1, "size": 1}]})")));
}

// What others send is refused or proved, and never harms: bytes and numbers are changed at random.
TEST(PlanFile, mutants_are_refused_or_verified) {
  auto cases = mscclpp_plans();
  for (const PlanCase& one : old_mscclpp_plans()) cases.push_back(one);
  std::vector<std::string> texts;
  for (const PlanCase& one : cases)
    if (std::string text = read_text(one.path); text.size() < 12'000) texts.push_back(std::move(text));
  ASSERT_GE(texts.size(), 5u);
  SplitMix64 random(7);
  int refused = 0, read = 0;
  for (int i = 0; i < (is_brief() ? 1000 : 3000); ++i) {
    std::string text = texts[std::size_t(random.below(texts.size()))];
    for (std::uint64_t changes = 1 + random.below(2); changes > 0; --changes) {
      std::size_t at = random.below(text.size());
      const bool is_number = random.below(5) > 0;
      while (is_number && (text[at] < '0' || text[at] > '9')) at = random.below(text.size());
      static constexpr const char* pieces[] = {"0", "1", "9", "99999999999", "-",    "[",
                                               "]", "{", "}", "\"",          "null", "\"o\""};
      if (!is_number && random.below(3) == 0)
        text.erase(at, 1 + random.below(20));
      else if (text[at] >= '0' && text[at] <= '9')
        text[at] = static_cast<char>('0' + random.below(10));
      else
        text.replace(at, 1, pieces[random.below(std::size(pieces))]);
    }
    const std::string error = error_of([&] {
      const Program program = read_program(text);
      ++read;
      (void)verify(program, {.launches = 2});
      EXPECT_EQ(write_program(read_program(write_program(program))), write_program(program));
    });
    if (error.empty()) continue;
    ++refused;
    EXPECT_TRUE(error.starts_with("bad_text: ") || error.starts_with("bad_file: ") ||
                error.starts_with("unsupported: "))
        << error;
  }
  EXPECT_GT(refused, is_brief() ? 300 : 1000);
  EXPECT_GT(read, is_brief() ? 100 : 300);
}

TEST(PlanFile, says_what_it_refuses) {
  const std::string good = read_text(mscclpp_plan("sn_alltoall_2r"));
  const auto error_with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of([&] { read_program(text.replace(at, from.size(), to)); });
  };
  EXPECT_EQ(error_with("\"inplace\"", "\"in_place\""), "bad_text: inplace is missing");
  EXPECT_NE(error_with("\"copy\"", "\"kopy\"").find("\"kopy\" is not a step that is known here"), std::string::npos);
  EXPECT_NE(error_with("\"input_chunks\":4", "\"input_chunks\":1").find("which has 1"), std::string::npos)
      << error_with("\"input_chunks\":4", "\"input_chunks\":1");
  const std::string range_of_messages = "\"min_message_size\":0,\"max_message_size\":18446744073709551615";
  EXPECT_EQ(error_with(range_of_messages, "\"min_message_size\":65,\"max_message_size\":64"),
            "bad_file: the smallest message, 65, is larger than the largest, 64 bytes");
  EXPECT_EQ(error_with(range_of_messages, "\"min_message_size\":64,\"max_message_size\":64"), "");
  EXPECT_EQ(error_with("{\"name\"", "{\"tb_id\": 3, \"name\""), "bad_text: tb_id has no meaning here");
}

TEST(PlanFile, keeps_keys_that_it_does_not_know) {
  const auto with = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  const std::string good = read_text(mscclpp_plan("sn_alltoall_2r"));
  std::string text = with(good, "{\"name\":\"copy\"", "{\"co lour\":[1,{\"a\":null}],\"name\":\"copy\"");
  text = with(text, "\"gpus\"", "\"version\":2,\"gpus\"");
  const Program program = read_program(text);
  ASSERT_EQ(program.unknown_keys.size(), 2u);
  EXPECT_TRUE(path_of(program.unknown_keys[0]).starts_with("gpus[0].threadblocks[0].ops["))
      << path_of(program.unknown_keys[0]);
  EXPECT_TRUE(path_of(program.unknown_keys[0]).ends_with("].co lour"));
  EXPECT_EQ(path_of(program.unknown_keys[1]), "version");
  const std::string written = write_program(program);
  EXPECT_NE(written.find("\"co lour\":[1,{\"a\":null}]"), std::string::npos);
  EXPECT_EQ(read_program(written).unknown_keys, program.unknown_keys);
  EXPECT_EQ(write_program(read_program(written)), written);
  EXPECT_NE(numbers_of(program), numbers_of(read_program(good)));

  // Those of older releases are kept where the present format has such a place.
  const std::string old = read_text(old_mscclpp_plans().front().path);
  const Program of_old = read_program(with(old, "\"protocol\"", "\"colour\": 3, \"protocol\""));
  EXPECT_EQ(of_old.unknown_keys, (std::vector<UnknownKey>{{.where = "", .key = "colour", .value = "3"}}));
  EXPECT_EQ(read_program(write_program(of_old)).unknown_keys, of_old.unknown_keys);
}

// Releases up to 0.5 spelled the key of the collective otherwise.
TEST(PlanFile, the_first_releases_spelled_a_key_otherwise) {
  for (const PlanCase& one : old_mscclpp_plans()) {
    const std::string text = read_text(one.path);
    std::string first = text;
    const std::size_t at = first.find("\"collective\"");
    ASSERT_NE(at, std::string::npos) << one.name;
    first.replace(at, 12, "\"colletive\"");
    EXPECT_EQ(write_program(read_program(first)), write_program(read_program(text))) << one.name;
    first.insert(at, "\"collective\": \"allreduce\", ");
    EXPECT_EQ(error_of([&] { read_program(first); }), "bad_text: colletive has no meaning here");
  }
}

}  // namespace
}  // namespace tranship::test
