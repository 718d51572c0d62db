// The command as a whole: help, exit codes, errors of one line, and every command but those with files.
#include "cli/command.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <set>
#include <sstream>
#include <stdexcept>

#include <gtest/gtest.h>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/layout/text.hpp>
#include <tranship/plan/plan_json.hpp>
#include <tranship/plan/redistribution.hpp>

#include "support/golden.hpp"
#include "support/paths.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using testing::Outcome;
using testing::Workplace;

const std::vector<std::string> commands = {"reshard", "layout", "plan",    "halo",    "launch", "simulate", "check",
                                           "run",     "show",   "predict", "measure", "info",   "demo"};

// One line that begins as all errors do; `lines` more when there is a picture.
void expect_error(const Outcome& outcome, int code, int lines = 1) {
  EXPECT_EQ(outcome.code, code) << outcome.errors;
  EXPECT_EQ(outcome.output, "");
  EXPECT_TRUE(outcome.errors.starts_with("tranship: error: ")) << outcome.errors;
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), lines) << outcome.errors;
  EXPECT_TRUE(outcome.errors.ends_with("\n"));
}

TEST(Command, HelpNamesEveryCommand) {
  const Outcome help = Workplace().run({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.errors, "");
  for (const std::string& command : commands) EXPECT_NE(help.output.find("\n  " + command + " "), std::string::npos);
}

TEST(Command, EveryCommandHasHelpWithAnExample) {
  for (const std::string& command : commands) {
    const Outcome help = Workplace().run({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_EQ(help.errors, "");
    EXPECT_NE(help.output.find("Usage: tranship " + command), std::string::npos) << help.output;
    EXPECT_NE(help.output.find("\nExample"), std::string::npos) << help.output;
    EXPECT_NE(help.output.find("\n  tranship " + command + " "), std::string::npos) << help.output;
  }
}

TEST(Command, SaysWhatAWordMayHaveMeant) {
  const Workplace place;
  const auto meant = [&](const std::vector<std::string>& words) {
    const Outcome outcome = place.run(words);
    expect_error(outcome, 2);
    const std::string begin = "did you mean '";
    const std::size_t at = outcome.errors.find(begin);
    if (at == std::string::npos) return std::string();
    return outcome.errors.substr(at + begin.size(), outcome.errors.find('\'', at + begin.size()) - at - begin.size());
  };
  EXPECT_EQ(meant({"reshrad", "a.npy", "b"}), "reshard");
  EXPECT_EQ(meant({"chekc"}), "check");
  EXPECT_EQ(meant({"--verison"}), "--version");
  EXPECT_EQ(meant({"frobnicate"}), "");
  EXPECT_EQ(meant({"reshard", "a.npy", "b", "--to", "@ 2 : block", "--memroy=64MiB"}), "--memory");
  EXPECT_EQ(meant({"layout", "f64[8] @ 2 : block", "--jsno"}), "--json");
  EXPECT_EQ(meant({"layout", "f64[8] @ 2 : block", "--frobnicate"}), "");
  EXPECT_EQ(meant({"check", "allreduce/rign", "--ranks", "4"}), "allreduce/ring");
  EXPECT_EQ(meant({"run", "allreduce/rign"}), "allreduce/ring");
  EXPECT_EQ(meant({"check", "nowhere.json"}), "");
}

TEST(Command, ChecksAndRunsPrograms) {
  const Workplace place;
  const std::string folder = test::test_path("fixtures/mscclpp/plans/");
  const Outcome right = place.run({"check", folder + "sn_alltoall_2r.json"});
  EXPECT_EQ(right.code, 0) << right.errors;
  EXPECT_NE(right.output.find("proved: it ends"), std::string::npos) << right.output;
  const Outcome hangs = place.run({"check", folder + "ut_reduce_send_packet_test.json", "--json"});
  EXPECT_EQ(hangs.code, 1);
  EXPECT_FALSE(hangs.json().at("right").as_boolean());
  EXPECT_EQ(hangs.json().at("findings")[0].at("kind").as_string(), "deadlock");
  for (const char* kind : {"threads", "processes", "sim"}) {
    const Outcome ran = place.run({"run", folder + "sn_allreduce_naivy_2r.json", "--ranks-as", kind, "--bytes", "1000",
                                   "--dtype", "bf16", "--op", "max", "--iterations", "3", "--json"});
    EXPECT_EQ(ran.code, 0) << ran.errors;
    EXPECT_EQ(ran.json().at("compared_elements").as_integer(), 1500) << kind;
  }
  const std::string meets = test::test_path("fixtures/mscclpp/plans_old_format/repo_sendrecv.json");
  const Outcome here = place.run({"check", meets});
  EXPECT_EQ(here.code, 0) << here.errors;
  EXPECT_NE(here.output.find("proved for launches between which all ranks meet, as they do here: it ends"),
            std::string::npos)
      << here.output;
  EXPECT_NE(here.output.find("the executor of MSCCL++: ranks do not meet between launches there"), std::string::npos)
      << here.output;
  EXPECT_EQ(place.run({"check", meets, "--for", "mscclpp"}).code, 1);
  EXPECT_EQ(place.run({"check", meets, "--for", "mscclpp", "--json"}).code, 1);
  EXPECT_EQ(place.run({"check", folder + "sn_alltoall_2r.json", "--for", "mscclpp"}).code, 0);
  EXPECT_EQ(place.run({"check", meets, "--for", "nccl"}).code, 2);
  std::string newer = test::read_text(folder + "sn_alltoall_2r.json");
  place.write("newer.json", newer.insert(newer.find('{') + 1, "\"colour\": 1, "));
  for (const char* command : {"check", "run"}) {
    const Outcome unknown = place.run({command, "newer.json"});
    EXPECT_EQ(unknown.code, 0) << unknown.errors;
    EXPECT_NE(unknown.output.find("the key colour is not known here, and what it asks for is left out\n"),
              std::string::npos)
        << unknown.output;
  }
  EXPECT_EQ(place.run({"check", "newer.json", "--json"}).json().at("unknown_keys")[0].as_string(), "colour");
  EXPECT_EQ(place.run({"check", "newer.json", "--for", "mscclpp"}).code, 1);
  const Outcome ready = place.run({"check", "allreduce/ring", "--ranks", "5"});
  EXPECT_NE(ready.output.find("allreduce_ring (allreduce): 5 ranks"), std::string::npos) << ready.output;
  const Outcome copies = place.run({"run", "allgather/copies", "--ranks", "3", "--bytes", "100", "--iterations", "2"});
  EXPECT_NE(copies.output.find("right: "), std::string::npos) << copies.output << copies.errors;
  expect_error(place.run({"check", "allreduce/ring"}), 2);
  const Outcome refused = place.run({"run", folder + "ut_reduce_send_packet_test.json"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.errors.find("is not right: deadlock"), std::string::npos) << refused.errors;
  EXPECT_TRUE(refused.errors.ends_with("nothing will produce it\n")) << refused.errors;
  // Any number of elements where nothing is cut, and one rank's word where one rank has the result.
  for (const char* bytes : {"1", "2", "4097"}) {
    const Outcome odd = place.run({"run", folder + "sn_allreduce_naivy_2r.json", "--bytes", bytes, "--dtype", "u8",
                                   "--json", "--iterations", "2"});
    EXPECT_EQ(std::to_string(odd.json().at("input_bytes").as_integer()), bytes);
    EXPECT_EQ(odd.json().at("compared_elements").as_integer(), 2 * odd.json().at("input_bytes").as_integer());
  }
  const Outcome reduced = place.run({"run", "reduce/tree", "--ranks", "3", "--bytes", "100", "--iterations", "2"});
  EXPECT_NE(reduced.output.find("right: 50 elements"), std::string::npos) << reduced.output << reduced.errors;
  const std::string for_some =
      folder + "sn_allgather_nvls_zero_copy_pkt_2r.json";  // for 1024 to 1048576 bytes of output
  for (const char* bytes : {"511", "1000000"}) {
    const Outcome outside = place.run({"run", for_some, "--bytes", bytes});
    expect_error(outside, 2);
    EXPECT_NE(outside.errors.find("is for messages of 1024 to 1048576 bytes, not"), std::string::npos)
        << outside.errors;
  }
  for (const char* bytes : {"512", "524288"})
    EXPECT_EQ(place.run({"run", for_some, "--bytes", bytes, "--iterations", "1"}).code, 0) << bytes;
  const Outcome nothing = place.run({"run", "allreduce/ring", "--ranks", "2", "--bytes", "0"});
  expect_error(nothing, 2);
  const auto refuses_number = [&](std::vector<std::string> arguments, const std::string& range) {
    const std::string option = arguments.back(), value = option.substr(option.find('=') + 1);
    const Outcome outside = place.run(arguments);
    expect_error(outside, 2);
    const std::string text =
        option.substr(0, option.find('=')) + ": expected a whole number from " + range + ", not " + value + ";";
    EXPECT_NE(outside.errors.find(text), std::string::npos) << outside.errors;
  };
  for (const char* bytes :
       {"0", "-1", "70368744177665", "9223372036854775807", "99999999999999999999", "1.5", "many"}) {
    refuses_number({"run", "allreduce/ring", "--ranks=2", std::string("--bytes=") + bytes}, "1 to 70368744177664");
    refuses_number({"measure", std::string("--bytes-max=") + bytes}, "1 to 70368744177664");
  }
  for (const char* number : {"0", "99999999999", "99999999999999999999"})
    refuses_number({"run", "allreduce/ring", "--ranks=2", std::string("--iterations=") + number}, "1 to 2147483647");
  refuses_number({"check", "allreduce/ring", "--ranks=99999999999"}, "1 to 1048576");
  refuses_number({"show", "allreduce/ring", "--ranks=2", "--rank=99999999999"}, "0 to 2147483647");
  refuses_number({"simulate", "--ranks=2", "--seed=-1"}, "0 to 18446744073709551615");
  refuses_number({"simulate", "--ranks=2", "--seed=99999999999999999999"}, "0 to 18446744073709551615");
  const Outcome other_nodes = place.run({"check", "allreduce/hierarchical", "--ranks", "4", "--ranks-per-node", "3"});
  expect_error(other_nodes, 2);
  EXPECT_EQ(other_nodes.errors, "tranship: error: allreduce/hierarchical: 4 ranks cannot be divided into nodes of 3\n");
  const Outcome no_nodes = place.run({"check", "allreduce/ring", "--ranks", "4", "--ranks-per-node", "2"});
  expect_error(no_nodes, 2);
  EXPECT_NE(no_nodes.errors.find("--ranks-per-node: allreduce/ring has no nodes"), std::string::npos)
      << no_nodes.errors;
  EXPECT_EQ(place.run({"check", "allreduce/hierarchical", "--ranks", "4", "--ranks-per-node", "2"}).code, 0);
  const Outcome unknown = place.run({"run", "allreduce/none", "--ranks", "2"});
  expect_error(unknown, 2);
  EXPECT_NE(unknown.errors.find("no such algorithm; there are allreduce/"), std::string::npos) << unknown.errors;
  for (const char* type : {"f32", "float32", "int8", "uint64", "bfloat16"}) {
    const Outcome typed = place.run({"run", "allreduce/ring", "--ranks", "2", "--dtype", type, "--iterations", "1"});
    EXPECT_EQ(typed.code, 0) << type << ": " << typed.errors;
  }
  for (const char* type : {"complex64", "c64", "bool", "f8", "<f8"}) {
    const Outcome untyped = place.run({"run", "allreduce/ring", "--ranks", "2", "--dtype", type});
    expect_error(untyped, 2);
    EXPECT_NE(
        untyped.errors.find("needs one of i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, or int8, int16, "
                            "int32, int64, uint8, uint16, uint32, uint64, float16, bfloat16, float32, float64; "
                            "numbers count bits\n"),
        std::string::npos)
        << untyped.errors;
  }
  expect_error(place.run({"check", "nowhere.json"}), 2);
}

TEST(Command, ShowsPrograms) {
  const Workplace place;
  const std::string plan = test::test_path("fixtures/mscclpp/plans/mn_allgather_2x2.json");
  const Outcome text = place.run({"show", plan});
  EXPECT_EQ(text.code, 0) << text.errors;
  EXPECT_TRUE(test::matches_golden("program/mn_allgather_2x2.txt", text.output));
  EXPECT_NE(place.run({"show", "allreduce/ring", "--ranks", "3"}).output.find("\nrank 2: 3 chunks of input"),
            std::string::npos);
  EXPECT_NE(place.run({"show", plan, "--rank", "3"}).output.find("rank 3: 1 chunk of input"), std::string::npos);
  const Json json = place.run({"show", plan, "--json"}).json();
  EXPECT_EQ(json.at("steps").size(), 80u);
  EXPECT_EQ(json.at("arrows").size(), 20u);
  EXPECT_EQ(json.at("arrows")[0].at("kind").as_string(), "signal");
  const Outcome hangs =
      place.run({"show", test::test_path("fixtures/mscclpp/plans/ut_reduce_send_packet_test.json"), "--json"});
  EXPECT_FALSE(hangs.json().at("stuck").empty());

  EXPECT_EQ(place.run({"show", plan, "-o", "page.html"}).output, "page.html: 4 ranks, 4 thread blocks, 80 steps\n");
  EXPECT_TRUE(place.read("page.html").starts_with("<!doctype html>"));
  EXPECT_EQ(place.run({"show", plan, "-o", "page.html"}).code, 0) << "its own page may be replaced";
  place.write("other.html", "<!doctype html><p>mine</p>");
  expect_error(place.run({"show", plan, "-o", "other.html"}), 1);
  EXPECT_EQ(place.read("other.html"), "<!doctype html><p>mine</p>");
  EXPECT_EQ(place.run({"show", plan, "-o", "other.html", "--force"}).code, 0);
  expect_error(place.run({"show", plan, "--rank", "4"}), 2);
  std::string named = test::read_text(plan);
  named.replace(named.find("mn_allgather_2x2"), 3, "\u202emn\u200b");
  place.write("named.json", named);
  for (const std::string& said : {place.run({"show", "named.json"}).output, place.run({"check", "named.json"}).output})
    EXPECT_TRUE(said.starts_with("?mn?allgather_2x2 (allgather)")) << said;
  EXPECT_EQ(place.run({"show", "named.json", "-o", "named.html"}).code, 0);
  EXPECT_NE(place.read("named.html").find("<title>?mn?allgather_2x2 (allgather)</title>"), std::string::npos);
  const Outcome one_of_all = place.run({"show", plan, "--rank", "3", "--all"});
  expect_error(one_of_all, 2);
  EXPECT_NE(one_of_all.errors.find("--rank shows one rank, --all shows all of them"), std::string::npos)
      << one_of_all.errors;
  expect_error(place.run({"show", "nowhere.json"}), 2);
  expect_error(place.run({"show", plan, "-o", plan}), 2);
}

TEST(Command, PredictsPrograms) {
  const Workplace place;
  const std::string plan = test::test_path("fixtures/mscclpp/plans/mn_allgather_2x2.json");
  for (const char* name : {"node-with-switch", "cluster", "two-cores"}) {
    const std::string machine = test::test_path(std::string("../machines/") + name + ".json");
    const Outcome text = place.run({"predict", plan, "--machine", machine, "--ranks", "4"});
    EXPECT_EQ(text.code, 0) << text.errors;
    EXPECT_NE(text.output.find("64.0 MiB"), std::string::npos) << text.output;
    EXPECT_NE(text.output.find("critical path"), std::string::npos) << text.output;
    const Json json = place.run({"predict", plan, "--machine", machine, "--bytes", "4096", "--json"}).json();
    ASSERT_EQ(json.at("sizes").size(), 1u);
    const Json& one = json.at("sizes")[0];
    EXPECT_GT(one.at("duration_ns").as_number(), 0);
    EXPECT_FALSE(one.at("path").empty());
  }
  const std::string machine = test::test_path("../machines/cluster.json");
  const Outcome other = place.run({"predict", plan, "--machine", machine, "--ranks", "8"});
  expect_error(other, 2);
  EXPECT_NE(other.errors.find("the plan is for 4 ranks, not for 8"), std::string::npos) << other.errors;
  expect_error(place.run({"predict", plan, "--machine", machine, "--ranks-per-node", "2"}), 2);
  expect_error(place.run({"predict", plan}), 2);
  const Outcome many = place.run({"predict", "allreduce/hierarchical", "--ranks", "64", "--ranks-per-node", "8",
                                  "--machine", machine, "--bytes", "1048576", "--json"});
  EXPECT_EQ(many.code, 0) << many.errors;
  EXPECT_EQ(many.json().at("ranks").as_integer(), 64);
  expect_error(place.run({"predict", "allreduce/hierarchical", "--machine", machine}), 2);
  expect_error(place.run({"predict", plan, "--machine", machine, "--bytes", "9223372036854775807"}), 2);
  const Outcome far = place.run({"predict", "allreduce/ring", "--ranks", "64", "--machine", machine});
  expect_error(far, 1);
  EXPECT_NE(far.errors.find("has no memory channels between hosts"), std::string::npos) << far.errors;
  expect_error(place.run({"predict", plan, "--machine", plan}), 2);
  const std::string hangs = test::test_path("fixtures/mscclpp/plans/ut_reduce_send_packet_test.json");
  expect_error(place.run({"predict", hangs, "--machine", machine}), 1);
}

TEST(Command, PlansThatDescribeNoProgramAreMisuse) {
  const Workplace place;
  const std::string machine = test::test_path("../machines/cluster.json");
  place.write("text.json", "rank 0 puts to rank 1");
  place.write("list.json", "[1, 2]");
  place.write("other.json", R"({"name": "a"})");
  place.write("binary.json", std::string("\x80\x00\xff", 3));
  std::string plan = test::read_text(test::test_path("fixtures/mscclpp/plans/mn_allgather_2x2.json"));
  const std::string word = "\"rlxsignal\"";
  ASSERT_NE(plan.find(word), plan.npos);
  place.write("word.json", plan.replace(plan.find(word), word.size(), "\"rlxsignals\""));
  for (const char* name : {"text.json", "list.json", "other.json", "binary.json", "word.json"})
    for (std::vector<std::string> words : std::vector<std::vector<std::string>>{{"check"},
                                                                                {"check", "--json"},
                                                                                {"check", "--for", "mscclpp"},
                                                                                {"run"},
                                                                                {"show"},
                                                                                {"show", "-o", "a.html"},
                                                                                {"predict", "--machine", machine}}) {
      words.insert(words.begin() + 1, name);
      const Outcome refused = place.run(words);
      expect_error(refused, 2);
      EXPECT_NE(refused.errors.find(std::string("PLAN: '") + name + "': "), std::string::npos) << refused.errors;
    }
  const std::string right = test::test_path("fixtures/mscclpp/plans/mn_allgather_2x2.json");
  const Outcome refused = place.run({"predict", right, "--machine", "text.json"});
  expect_error(refused, 2);
  EXPECT_NE(refused.errors.find("--machine: 'text.json': "), std::string::npos) << refused.errors;
}

TEST(Command, SaysOfWhatAMessageIs) {
  const Workplace place;
  std::string plan = test::read_text(test::test_path("fixtures/mscclpp/plans/mn_allgather_2x2.json"));
  const std::string sizes = R"("min_message_size":0,"max_message_size":18446744073709551615)";
  ASSERT_NE(plan.find(sizes), plan.npos);
  place.write("limited.json",
              plan.replace(plan.find(sizes), sizes.size(), R"("min_message_size":4096,"max_message_size":8192)"));
  const Outcome refused = place.run({"run", "limited.json", "--bytes", "4096"});
  expect_error(refused, 2);
  EXPECT_NE(
      refused.errors.find("is for messages of 4096 to 8192 bytes, not 16384: of an allgather, a message is the output "
                          "of a rank, here 4 inputs of 4096 bytes"),
      std::string::npos)
      << refused.errors;
  EXPECT_NE(place.run({"show", "limited.json"}).output.find(", for 4096 to 8192 bytes of output"), std::string::npos);
  EXPECT_EQ(place.run({"run", "limited.json", "--bytes", "1024"}).code, 0);
  EXPECT_NE(place.run({"run", "--help"}).output.find("its output, which has --bytes times the number of ranks"),
            std::string::npos);
}

TEST(Command, MeasuresTheMachine) {
  const Workplace place;
  for (const char* kind : {"processes", "threads"}) {
    // Beside other busy processes, thousands of launches of slow code take a minute; test_run measures a machine, too.
    if (test::is_brief()) break;
    const Outcome said = place.run({"measure", "-o", "here.json", "--ranks-as", kind, "--bytes-max", "4096"});
    EXPECT_EQ(said.code, 0) << said.errors;
    EXPECT_NE(said.output.find(std::string(" ranks as ") + kind), std::string::npos) << said.output;
    const std::string plan = test::test_path("fixtures/mscclpp/plans/sn_alltoall_2r.json");
    EXPECT_EQ(place.run({"predict", plan, "--machine", "here.json"}).code, 0);
  }
  // Checks are printed, so the machine goes elsewhere; they begin with 64 KiB.
  expect_error(place.run({"measure", "--check"}), 2);
  expect_error(place.run({"measure", "-o", "here.json", "--check", "--bytes-max", "65535"}), 2);
  place.write("mine.json", "{}");
  expect_error(place.run({"measure", "-o", "mine.json", "--bytes-max", "4096"}), 1);
  EXPECT_EQ(place.read("mine.json"), "{}");
  // 64 TiB each
  const Outcome large = place.run({"measure", "--ranks", "999", "--bytes-max", "70368744177664"});
  expect_error(large, 1);
  for (const char* said : {"999 ranks with inputs of up to 64.0 TiB", " are available"})
    EXPECT_NE(large.errors.find(said), std::string::npos) << large.errors;
}

TEST(Command, SaysItsVersion) {
  const Outcome version = Workplace().run({"--version"});
  EXPECT_EQ(version.code, 0);
  const Outcome told = Workplace().run({"info", "--json"});
  EXPECT_EQ(version.output, "tranship " + told.json().at("version").as_string() + "\n");
}

TEST(Command, RefusesArgumentsThatMakeNoSense) {
  const Workplace place;
  const std::string layout = "f64[8] @ 2 : block";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"fly"},
           {"--bogus"},
           {"info", "more"},
           {"layout"},
           {"layout", layout, "--rank", "x"},
           {"layout", layout, "--rank", "2"},
           {"layout", layout, "--rank", "-1"},
           {"layout", layout, "--rank", "99999999999999999999"},
           {"layout", "@missing.json"},
           {"plan", "--from", layout},
           {"plan", "--from", layout, "--to", layout, "--rank", "2"},
           {"halo", layout, "--stencil", "ball"},
           {"halo", layout, "--depth", "1,1"},
           {"halo", layout, "--depth", "-1"},
           {"halo", layout, "--depth", ""},
           {"halo", layout, "--depth", "1,"},
           {"halo", layout, "--depth", "99999999999999999999"},
           {"reshard", "a"},
           {"reshard", "a", "b"},
           {"demo", "--title"},
           {"layout", layout, "-o", ""},
           {"plan", "--from", layout, "--to", layout, "--output="},
           {"halo", "f64[8] @ 2 : block+overlap(1,1)", "-o", ""},
           {"show", "allreduce/ring", "--ranks", "2", "-o", ""},
           {"measure", "-o", ""},
           {"demo", "--data", ""},
           {"demo", "--dir", ""},
           {"launch", "-n", "1", "--heap", "", "true"},
           {"launch", "-n", "1", "--timeout", "", "true"},
           {"reshard", "", "b", "--to", layout},
       }) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    expect_error(place.run(arguments), 2);
  }
  EXPECT_EQ(place.names(), std::set<std::string>{});
}

TEST(Command, PointsAtTheColumnOfALayout) {
  const Outcome wrong = Workplace().run({"layout", "f64[8,8] @ 4x : block"});
  expect_error(wrong, 2, 3);
  EXPECT_EQ(wrong.errors,
            "tranship: error: LAYOUT: column 15: found ':'; expected a number of 0 or more\n"
            "f64[8,8] @ 4x : block\n"
            "              ^\n");
  const Outcome to = Workplace().run({"plan", "--from", "f64[8] @ 2 : block", "--to", "f64[8] @ 2 : cyclic(0)"});
  expect_error(to, 2, 3);
  EXPECT_TRUE(to.errors.starts_with("tranship: error: --to: column 21: ")) << to.errors;
}

TEST(Command, ErrorsAreOneLineWhateverTheyName) {
  const Workplace place;
  const Outcome outcome = place.run({"layout", "no\nsuch\x1b\r.npy"});
  expect_error(outcome, 1);
  EXPECT_EQ(outcome.errors.find('\x1b'), std::string::npos);
  EXPECT_NE(outcome.errors.find("no?such??.npy"), std::string::npos) << outcome.errors;
  expect_error(place.run({"layout", "f64[\n]"}), 2, 3);
  expect_error(place.run({"fly\nhigh"}), 2);
}

TEST(Command, ErrorsAreTextAlsoWhereJsonIsAskedFor) {
  expect_error(Workplace().run({"layout", "missing.npy", "--json"}), 1);
  expect_error(Workplace().run({"plan", "--from", "f64[4] @ 2 : block", "--to", "f64[5] @ 2 : block", "--json"}), 1);
}

TEST(Command, AReaderThatGoesAwayIsNoFailure) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  // Also for a parent that leaves SIGPIPE as it is.
  const Outcome outcome = Workplace().run({"layout", "f64[8] @ 2 : block", "--json"}, ends[1]);
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.errors, "");
  // What is not done when the reader goes is done all the same.
  const Workplace place;
  EXPECT_EQ(place.run({"demo", "--dir", "demo"}, ends[1]).code, 0);
  ::close(ends[1]);
  for (const char* name : {"demo/rows/manifest.json", "demo/tiles/manifest.json", "demo/back.npy", "demo/tiles.svg"})
    EXPECT_TRUE(place.names().contains(name)) << name;
}

TEST(Command, OutputThatCannotBeWrittenIsAFailure) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  const Outcome outcome = Workplace().run({"info"}, full);
  ::close(full);
  expect_error(outcome, 1);
}

TEST(Command, AFileThatIsInPlaceIsASuccess) {
  const int full = ::open("/dev/full", O_WRONLY);
  if (full < 0) GTEST_SKIP() << "there is no /dev/full here";
  const std::string layout = "f64[8] @ 2 : block+overlap(1,1)";
  const Workplace place;
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"layout", layout},
                                             {"plan", "--from", layout, "--to", layout},
                                             {"halo", layout},
                                             {"show", "allreduce/ring", "--ranks", "2"}})
    for (const bool json : {false, true}) {
      SCOPED_TRACE(command.front());
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", "picture"});
      if (json) words.emplace_back("--json");
      const Outcome outcome = place.run(words, full);
      EXPECT_EQ(outcome.code, 0);
      EXPECT_TRUE(outcome.errors.starts_with("tranship: the work is done, but its report cannot be written: "))
          << outcome.errors;
      EXPECT_TRUE(std::filesystem::remove(place.path("picture")));
      words = command;
      if (json) words.emplace_back("--json");
      expect_error(place.run(words, full), 1);
    }
  ::close(full);
}

TEST(Launch, RefusesTimesAndSizesThatAreNone) {
  const Workplace place;
  for (const char* time : {"abc", "0", "-1", "nan", "inf", "5s", " "}) {
    const Outcome outcome = place.run({"launch", "-n", "2", "--timeout", time, "touch", "started"});
    expect_error(outcome, 2);
    EXPECT_EQ(outcome.errors, std::string("tranship: error: --timeout is '") + time +
                                  "': give a positive number of seconds, or \"off\"\n");
  }
  for (const char* size : {"abc", "0", "-1", "nan", "1X"}) {
    const Outcome outcome = place.run({"launch", "-n", "2", "--heap", size, "touch", "started"});
    expect_error(outcome, 2);
    EXPECT_TRUE(outcome.errors.starts_with(std::string("tranship: error: --heap is '") + size +
                                           "': give a positive number of bytes"))
        << outcome.errors;
  }
  ::setenv("TRANSHIP_TIMEOUT", "abc", 1);
  for (const char* command : {"launch", "simulate"}) {
    const Outcome outcome = place.run({command, "-n", "2", "touch", "started"});
    expect_error(outcome, 1);
    EXPECT_NE(outcome.errors.find("TRANSHIP_TIMEOUT is 'abc': give a positive number of seconds"), std::string::npos)
        << outcome.errors;
  }
  EXPECT_EQ(place.run({"launch", "-n", "2", "--timeout", "5", "sh", "-c", "test $TRANSHIP_TIMEOUT = 5"}).code, 0);
  ::unsetenv("TRANSHIP_TIMEOUT");
  EXPECT_EQ(place.names(), std::set<std::string>{});
}

// A rank that the launcher has not asked: the setting is only that of the program.
TEST(Launched, DISABLED_waits) {
  launch([](World& world) { world.barrier(); });
}

TEST(Launch, NamesASettingThatOnlyTheRankHas) {
  std::vector<std::string> words = {"launch", "-n", "1", "env", "TRANSHIP_TIMEOUT=abc"};
  for (const std::string& word : test::this_program("Launched.DISABLED_waits")) words.push_back(word);
  const Outcome outcome = Workplace().run(words);
  EXPECT_EQ(outcome.code, 1) << outcome.errors;
  EXPECT_NE(outcome.errors.find("rank 0 failed: TRANSHIP_TIMEOUT is 'abc': give a positive number of seconds"),
            std::string::npos)
      << outcome.errors;
}

TEST(Launch, RunsAProgramAsRanks) {
  const Outcome ranks = Workplace().run({"launch", "-n", "3", "sh", "-c", "echo $TRANSHIP_WORLD $TRANSHIP_HEAP -n"});
  EXPECT_EQ(ranks.code, 0) << ranks.errors;
  // Three lines, each with a descriptor, a rank, the ranks of this program, and what is the program's own.
  std::set<std::string> seen;
  std::istringstream lines(ranks.output);
  for (std::string descriptor, rank, first, count, option; lines >> descriptor >> rank >> first >> count >> option;) {
    EXPECT_EQ(first + count + option, "03-n");
    seen.insert(rank);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"0", "1", "2"}));
  EXPECT_EQ(Workplace().run({"launch", "-n", "2", "--heap", "64M", "sh", "-c", "test $TRANSHIP_HEAP = 64M"}).code, 0);
}

TEST(Launch, PassesSignalsOnAndKillsAtTheSecond) {
  // Each rank says that it will be told; one of them then signals the launcher.
  const std::string told = "trap 'echo $$ saved; exit 0' TERM; touch ready.$$; ";
  const std::string wait = "while :; do sleep 0.01; done";
  const std::string asks = "until [ $(ls | grep -c ready) -eq 3 ]; do sleep 0.01; done; kill -TERM $PPID; ";
  const Outcome saved =
      Workplace().run({"launch", "-n", "1", "sh", "-c", told + asks + wait, ":", "-n", "2", "sh", "-c", told + wait});
  EXPECT_EQ(saved.code, 0) << saved.errors;
  EXPECT_EQ(std::count(saved.output.begin(), saved.output.end(), 's'), 3) << saved.output;
  EXPECT_EQ(saved.errors, "");

  const Outcome unprepared = Workplace().run({"launch", "-n", "1", "sh", "-c", "kill -INT $PPID; exec sleep 60"});
  EXPECT_EQ(unprepared.code, 128 + 2) << unprepared.errors;

  const Outcome stubborn =
      Workplace().run({"launch", "-n", "1", "sh", "-c", "trap '' TERM; while :; do kill -TERM $PPID; done"});
  EXPECT_EQ(stubborn.code, 128 + 9) << stubborn.errors;
}

TEST(Launch, EndsWithTheCodeOfTheRankThatFailed) {
  const Outcome failed = Workplace().run({"launch", "-n", "2", "sh", "-c", "exit 5"});
  EXPECT_EQ(failed.code, 5);
  EXPECT_NE(failed.errors.find("ended with exit code 5"), std::string::npos) << failed.errors;
  const Outcome killed = Workplace().run({"launch", "-n", "1", "sh", "-c", "kill -9 $$"});
  EXPECT_EQ(killed.code, 128 + 9);
  EXPECT_NE(killed.errors.find("rank 0 failed: process "), std::string::npos) << killed.errors;
  const Outcome missing = Workplace().run({"launch", "-n", "1", "/no/such/program"});
  EXPECT_EQ(missing.code, 127);
  EXPECT_NE(missing.errors.find("cannot run '/no/such/program'"), std::string::npos) << missing.errors;
  EXPECT_EQ(Workplace().run({"launch", "-n", "2"}).code, 2);
  EXPECT_EQ(Workplace().run({"launch", "-n", "0", "true"}).code, 2);
  EXPECT_EQ(Workplace().run({"launch", "true"}).code, 2);
}

TEST(Launch, RunsSeveralProgramsAsOneWorld) {
  const Outcome ranks =
      Workplace().run({"launch", "-n", "2", "sh", "-c", "echo a $TRANSHIP_WORLD", ":", "-n3", "sh", "-c",
                       "echo b $TRANSHIP_WORLD", ":", "--ranks=1", "sh", "-c", "echo c $TRANSHIP_WORLD"});
  EXPECT_EQ(ranks.code, 0) << ranks.errors;
  std::set<std::string> seen;
  std::istringstream lines(ranks.output);
  for (std::string program, descriptor, rank, first, count; lines >> program >> descriptor >> rank >> first >> count;)
    seen.insert(program + rank + " of " + first + "+" + count);
  EXPECT_EQ(seen,
            (std::set<std::string>{"a0 of 0+2", "a1 of 0+2", "b2 of 2+3", "b3 of 2+3", "b4 of 2+3", "c5 of 5+1"}));
  const Outcome failed = Workplace().run({"launch", "-n", "1", "true", ":", "-n", "1", "sh", "-c", "exit 5"});
  EXPECT_EQ(failed.code, 5);
  EXPECT_NE(failed.errors.find("rank 1 failed"), std::string::npos) << failed.errors;
}

TEST(Launch, RefusesProgramsWithoutANumberOfRanks) {
  const std::vector<std::vector<std::string>> wrong = {{"true", ":"},
                                                       {"true", ":", "true"},
                                                       {"true", ":", "-n", "true"},
                                                       {"true", ":", "-n", "0", "true"},
                                                       {"true", ":", "-n", "2"},
                                                       {"true", ":", "-n", "2x", "true"},
                                                       {"true", ":", "-n", "4096", "true"},
                                                       {":", "-n", "1", "true"}};
  for (const auto& words : wrong) {
    std::vector<std::string> all = {"launch", "-n", "1"};
    all.insert(all.end(), words.begin(), words.end());
    EXPECT_EQ(Workplace().run(all).code, 2) << words.back();
  }
}

// Programs to simulate. This one, with a filter that names one of these tests, is the program.

std::vector<std::string> simulating(std::vector<std::string> options, const std::string& test) {
  options.insert(options.begin(), {"simulate", "-n", "3"});
  for (const std::string& word : test::this_program("Simulated.DISABLED_" + test)) options.push_back(word);
  return options;
}
void ring(World& world, bool completes) {
  const auto data = world.allocate<int>(4);
  const auto there = world.allocate<std::uint64_t>(1);
  Context& rma = world.context();
  rma.put(data, std::vector<int>(4, world.rank()), (world.rank() + 1) % world.size());
  if (completes) rma.quiet();
  rma.set(there, 1, (world.rank() + 1) % world.size());
  rma.signal_wait(there, Comparison::equal, 1);
  rma.reads(data);
  world.barrier();
}
TEST(Simulated, DISABLED_ring) {
  launch([](World& world) { ring(world, true); });
}
TEST(Simulated, DISABLED_ring_without_quiet) {
  launch([](World& world) { ring(world, false); });
}
TEST(Simulated, DISABLED_ends_in_its_third_seed) {
  static int begun = 0;
  launch([](World& world) {
    world.barrier();
    if (++begun > 2 * world.size()) std::_Exit(0);
  });
}
TEST(Simulated, DISABLED_fails_where_peers_are_messaged) {
  launch([](World& world) {
    if (world.peer_kind((world.rank() + 1) % world.size()) == PeerKind::messaged) throw std::runtime_error("far away");
  });
}
TEST(Simulated, DISABLED_fails_after_its_ranks) {
  launch([](World&) {});
  std::_Exit(9);
}

TEST(Simulate, SaysHowManySeedsItHasSeen) {
  const Outcome seen = Workplace().run(simulating({"--seeds", "40"}, "ring"));
  EXPECT_EQ(seen.code, 0) << seen.errors;
  EXPECT_NE(seen.output.find("40 seeds of 3 ranks: none failed\n"), std::string::npos) << seen.output;
  EXPECT_EQ(Workplace().run(simulating({"--seeds", "40", "--messaged"}, "ring")).code, 0);
}

TEST(Simulate, NamesTheSeedTheErrorAndTheCommandThatReplaysIt) {
  const Outcome failed = Workplace().run(simulating({"--seed", "5"}, "ring_without_quiet"));
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.errors.find("tranship: error: seed 5: "), std::string::npos) << failed.errors;
  EXPECT_NE(failed.errors.find("a quiet, a fence or a signal that is put with it is missing"), std::string::npos);
  EXPECT_NE(failed.errors.find("\nagain: tranship simulate -n 3 --seed 5 --seeds 1 " + test::this_program("").front()),
            std::string::npos);
  EXPECT_EQ(failed.errors.find(" --messaged"), std::string::npos);
  // Again with that seed alone.
  const Outcome again = Workplace().run(simulating({"--seed", "5", "--seeds", "1"}, "ring_without_quiet"));
  const auto error_of = [](const Outcome& outcome) {
    const std::size_t from = outcome.errors.find("tranship: error: ");
    return outcome.errors.substr(from, outcome.errors.find('\n', from) - from);
  };
  EXPECT_EQ(error_of(again), error_of(failed));
}

TEST(Simulate, OneProgramOnly) {
  std::vector<std::string> words = simulating({"--seeds", "2"}, "ring");
  std::string once;
  for (std::size_t i = 5; i < words.size(); ++i) once += "'" + words[i] + "' ";
  words.resize(5);
  words.insert(words.end(), {"sh", "-c", once + "&& " + once});
  const Outcome failed = Workplace().run(words);
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE((failed.output + failed.errors).find("has started another one that launches"), std::string::npos)
      << failed.output << failed.errors;
}

TEST(Simulate, NamesTheSeedUnderWhichTheProgramEnded) {
  const Outcome ended = Workplace().run(simulating({"--seed", "11"}, "ends_in_its_third_seed"));
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.errors.find("seed 13: process "), std::string::npos) << ended.errors;
}

TEST(Simulate, PeersAreMessagedOnRequest) {
  EXPECT_EQ(Workplace().run(simulating({"--seeds", "3"}, "fails_where_peers_are_messaged")).code, 0);
  const Outcome failed = Workplace().run(simulating({"--messaged"}, "fails_where_peers_are_messaged"));
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.errors.find("seed 1: std::runtime_error: far away"), std::string::npos) << failed.errors;
  EXPECT_NE(failed.errors.find("--seeds 1 --messaged " + test::this_program("").front()), std::string::npos)
      << failed.errors;
}

TEST(Simulate, RanksLieOnSeveralMachinesOnRequest) {
  EXPECT_EQ(Workplace().run(simulating({"--seeds", "5", "--ranks-per-host", "2"}, "ring")).code, 0);
  EXPECT_EQ(
      Workplace().run(simulating({"--seeds", "3", "--ranks-per-host", "3"}, "fails_where_peers_are_messaged")).code, 0);
  const Outcome failed = Workplace().run(simulating({"--ranks-per-host", "2"}, "fails_where_peers_are_messaged"));
  EXPECT_EQ(failed.code, 1);
  EXPECT_NE(failed.errors.find("seed 1: std::runtime_error: far away"), std::string::npos) << failed.errors;
  EXPECT_NE(failed.errors.find("--seeds 1 --ranks-per-host 2 "), std::string::npos) << failed.errors;
}

// Each rank has a call of main() of its own, on two machines as on one.
TEST(Simulate, RunsProgramsThatJoinByThemselves) {
  const auto run = [](std::vector<std::string> options, const char* how) {
    options.insert(options.begin(), {"simulate", "-n", "3", "--seeds", "40"});
    options.insert(options.end(), {TRANSHIP_JOINING_PROGRAM, how});
    return Workplace().run(options);
  };
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{}, {"--messaged"}, {"--ranks-per-host", "2"}}) {
    const Outcome seen = run(options, "");
    EXPECT_EQ(seen.code, 0) << seen.errors;
    EXPECT_NE(seen.output.find("40 seeds of 3 ranks: none failed\n"), std::string::npos) << seen.output;
  }
  const auto expect_failure = [&](const char* how, const std::string& text) {
    const Outcome failed = run({}, how);
    EXPECT_EQ(failed.code, 1);
    EXPECT_NE(failed.errors.find("seed "), std::string::npos) << failed.errors;
    EXPECT_NE(failed.errors.find(text), std::string::npos) << failed.errors;
  };
  expect_failure("races", "a quiet, a fence or a signal that is put with it is missing");
  expect_failure("returns", "main() of rank 1 has returned 3");
  expect_failure("fails", "the disk is gone");
}

TEST(Simulate, EndsAsTheProgramDoes) {
  EXPECT_EQ(Workplace().run(simulating({"--seeds", "3"}, "fails_after_its_ranks")).code, 9);
  const Outcome missing = Workplace().run({"simulate", "-n", "2", "/no/such/program"});
  EXPECT_EQ(missing.code, 127);
  EXPECT_NE(missing.errors.find("cannot run '/no/such/program'"), std::string::npos) << missing.errors;
  const Outcome other = Workplace().run({"simulate", "-n", "2", "true"});
  expect_error(other, 1);
  EXPECT_NE(other.errors.find("'true' has joined no world: tranship::launch(f)"), std::string::npos) << other.errors;
  EXPECT_EQ(Workplace().run({"simulate", "-n", "2", "sh", "-c", "exit 5"}).code, 5);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{{"simulate", "-n", "2"},
                                             {"simulate", "true"},
                                             {"simulate", "-n", "0", "true"},
                                             {"simulate", "-n", "2", "--seeds", "0", "true"},
                                             {"simulate", "-n", "2", "--seed", "-1", "true"}})
    expect_error(Workplace().run(wrong), 2);
}

TEST(Info, ListsBackends) {
  const auto info = Workplace().run({"info", "--json"}).json();
  for (const char* key : {"version", "build", "compiler"}) EXPECT_TRUE(info.at(key).is_string()) << key;
  EXPECT_TRUE((std::set<std::string>{"vectors", "rep movsb"}).contains(info.at("long_rows").as_string()));
  std::set<std::string> present;
  for (const auto& backend : info.at("backends").items()) {
    EXPECT_NE(backend.at("note"), "") << backend.dump();
    if (backend.at("state") == "present")
      present.insert(backend.at("name").as_string());
    else
      EXPECT_EQ(backend.at("state"), "absent");
  }
  EXPECT_TRUE(present.contains("threads"));
  const std::string text = Workplace().run({"info"}).output;
  for (const auto& backend : info.at("backends").items())
    EXPECT_NE(text.find(backend.at("note").as_string()), std::string::npos) << text;
}

TEST(Info, SaysWhichMpiRanksMeetBy) {
  const auto none = Workplace().run({"info", "--json"}).json().at("mpi");
  EXPECT_NE(none.at("why_none").as_string().find("TRANSHIP_MPI names none"), std::string::npos) << none.dump();
  std::set<std::string> abis;
  for (const auto& module : none.at("modules").items()) abis.insert(module.at("abi").as_string());
  EXPECT_TRUE(abis.contains("Open MPI") && abis.contains("MPICH")) << none.dump();
  setenv("TRANSHIP_MPI", "libc.so.6", 1);
  const std::string other = Workplace().run({"info"}).output;
  unsetenv("TRANSHIP_MPI");
  EXPECT_NE(other.find("'libc.so.6' is not a known MPI library"), std::string::npos) << other;
}

TEST(Info, RefusesAMalformedRequestForCards) {
  const auto info = Workplace().run({"info", "--json"}).json();
  bool has_cards = false;
  for (const auto& devices : info.at("devices").items()) has_cards |= devices.at("kind") == "cuda";
  if (!has_cards) GTEST_SKIP() << "this build has no devices of kind cuda";
  for (const auto& [text, expected] :
       {std::pair("software:x", "software[:CARDS]"), std::pair("sofware", "it must be none, software, or")}) {
    ::setenv("TRANSHIP_CUDA", text, 1);
    const Outcome refused = Workplace().run({"info"});
    expect_error(refused, 1);
    EXPECT_NE(refused.errors.find(text), std::string::npos) << refused.errors;
    EXPECT_NE(refused.errors.find(expected), std::string::npos) << refused.errors;
  }
  ::setenv("TRANSHIP_CUDA", "software:2", 1);
  const std::string shown = Workplace().run({"info"}).output;
  ::unsetenv("TRANSHIP_CUDA");
  EXPECT_NE(shown.find("  cuda       absent   2        ranks on cards"), std::string::npos) << shown;
  EXPECT_NE(shown.find("software card, software card"), std::string::npos) << shown;
}

TEST(Layout, ShowsWhoOwnsWhat) {
  const Outcome shown = Workplace().run({"layout", "f64[10,6] @ 2x3 : cyclic(2), block"});
  EXPECT_EQ(shown.code, 0) << shown.errors;
  EXPECT_NE(shown.output.find("60 cells, 480 B on 6 ranks"), std::string::npos) << shown.output;
  EXPECT_NE(shown.output.find("0:2 4:6 8:10"), std::string::npos) << shown.output;
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos) << "colours, and no terminal";
}

TEST(Layout, ListsEveryRankAsJson) {
  const Workplace place;
  const auto all = place.run({"layout", "f64[517,389] @ 2x3 : cyclic(7)+overlap(1,2), cyclic(5)", "--json"}).json();
  EXPECT_EQ(all.at("text"), "f64[517,389] @ 2x3 : cyclic(7)+overlap(1,2), cyclic(5)");
  EXPECT_EQ(all.at("cells"), 517 * 389);
  EXPECT_EQ(all.at("element_bytes"), 8);
  EXPECT_EQ(all.at("rank_count"), 6);
  std::int64_t owned = 0;
  for (const auto& rank : all.at("ranks").items()) {
    owned += rank.at("owned_cells").as_integer();
    EXPECT_EQ(rank.at("local_extents")[0].as_integer() * rank.at("local_extents")[1].as_integer(),
              rank.at("stored_cells").as_integer());
    std::int64_t slices = 1;
    for (const auto& dimension : rank.at("slices").items()) {
      std::int64_t along = 0;
      for (const auto& family : dimension.items()) along += family.at("count").as_integer();
      slices *= along;
    }
    EXPECT_EQ(rank.at("slice_count"), slices);
  }
  EXPECT_EQ(owned, 517 * 389);

  const auto one =
      place.run({"layout", "f64[517,389] @ 2x3 : cyclic(7)+overlap(1,2), cyclic(5)", "--rank", "4", "--json"});
  ASSERT_EQ(one.json().at("ranks").size(), 1U);
  EXPECT_EQ(one.json().at("ranks")[0], all.at("ranks")[4]);

  // What it prints as JSON is a layout that it reads.
  place.write("layout.json", all.at("layout").dump());
  EXPECT_EQ(place.run({"layout", "@layout.json", "--json"}).json(), all);
}

TEST(Layout, ShowsIndexedLayouts) {
  const Workplace place;
  place.write("mesh.json", R"({"type": "f64", "extents": [5, 2], "grid": {"extents": [2]}, "indexed": {"dims": 1,
      "parts": [{"owned": [0, 2, 4], "ghosts": [1]}, {"owned": [3, 1], "ghosts": [4, 0]}]}})");
  const Outcome shown = place.run({"layout", "@mesh.json"});
  EXPECT_EQ(shown.code, 0) << shown.errors;
  const auto json = place.run({"layout", "@mesh.json", "--json"}).json();
  EXPECT_EQ(json.at("ranks")[0].at("owned_cells"), 6);
  EXPECT_EQ(json.at("ranks")[0].at("stored_cells"), 8);
  EXPECT_EQ(json.at("ranks")[1].at("owned_cells"), 4);
  expect_error(place.run({"layout", "@mesh.json", "-o", "mesh.svg"}), 1);
}

TEST(Layout, ShowsLayoutsOfAnySize) {
  const Outcome cells = Workplace().run({"layout", "f32[1000000000000] @ 16 : cyclic(64)"});
  EXPECT_EQ(cells.code, 0) << cells.errors;
  EXPECT_NE(cells.output.find("960:1024 1984:2048 .. 999999999936:1000000000000"), std::string::npos) << cells.output;
  const Outcome ranks = Workplace().run({"layout", "f32[10] @ 2000000 : block"});
  EXPECT_EQ(ranks.code, 0) << ranks.errors;
  EXPECT_NE(ranks.output.find("1,999,976 more ranks"), std::string::npos) << ranks.output;
  expect_error(Workplace().run({"layout", "f32[10] @ 2000000 : block", "--json"}), 1);
}

TEST(Layout, DrawsAPicture) {
  const Workplace place;
  const Outcome drawn = place.run({"layout", "f64[10,6] @ 2x3 : cyclic(2), block", "-o", "picture.svg"});
  EXPECT_EQ(drawn.code, 0) << drawn.errors;
  EXPECT_EQ(place.names(), std::set<std::string>{"picture.svg"});
  const std::string svg = place.read("picture.svg");
  EXPECT_NE(svg.find("<svg"), std::string::npos);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  expect_error(place.run({"layout", "f64[10,6] @ 2x3 : cyclic(2), block", "-o", "missing/picture.svg"}), 1);
}

TEST(Layout, HatchesTheOverlapOfTheRankThatIsAskedFor) {
  const Workplace place;
  const std::string layout = "f64[8,8,8] @ 2x2x2 : block+overlap(1,1), block+overlap(1,1), block+overlap(1,1)";
  for (int rank = 0; rank < 8; ++rank) {
    ASSERT_EQ(place.run({"layout", layout, "--rank", std::to_string(rank), "-o", "one.svg"}).code, 0);
    EXPECT_NE(place.read("one.svg").find(fmt::format(">overlap of rank {}<", rank)), std::string::npos) << rank;
  }
}

TEST(Picture, IsRefusedUnderTheEndingOfAnotherForm) {
  const Workplace place;
  const std::string layout = "f64[8] @ 2 : block+overlap(1,1)";
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"layout", layout},
                                             {"plan", "--from", layout, "--to", layout},
                                             {"halo", layout},
                                             {"show", "allreduce/ring", "--ranks", "2"}}) {
    const bool is_page = command.front() == "show";
    for (const std::string name : {"a.png", "a.pdf", "a.json", is_page ? "a.svg" : "a.html"}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", name, "--force"});
      const Outcome refused = place.run(words);
      expect_error(refused, 2);
      EXPECT_NE(refused.errors.find(is_page ? "the output is HTML: use the ending .html"
                                            : "the output is SVG: use the ending .svg"),
                std::string::npos)
          << refused.errors;
      EXPECT_FALSE(std::filesystem::exists(place.path(name)));
    }
    for (const std::string name : {"plain", is_page ? "B.HTML" : "B.SVG"}) {
      std::vector<std::string> words = command;
      words.insert(words.end(), {"-o", name, "--force"});
      EXPECT_EQ(place.run(words).code, 0) << name;
    }
  }
}

TEST(Show, DrawsTheRankThatIsAskedForOrAllSteps) {
  const Workplace place;
  const auto steps_of = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"show", "allreduce/ring", "--ranks", "32", "-o", "page.html"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(place.run(words).code, 0);
    const std::string page = place.read("page.html");
    std::size_t count = 0;
    for (std::size_t at = page.find("<g class=\"step "); at != std::string::npos;
         at = page.find("<g class=\"step ", at + 1))
      ++count;
    return count;
  };
  const std::size_t all = steps_of({"--all"}), some = steps_of({}), one = steps_of({"--rank", "3"});
  EXPECT_EQ(all, 32 * one);
  EXPECT_LE(some, 5000u);
  EXPECT_LT(one, some);
  EXPECT_LT(some, all) << "a program of so many steps";
}

TEST(Layout, DrawsOverItsOwnPicturesOnly) {
  const Workplace place;
  const std::string layout = "f64[10,6] @ 2x3 : cyclic(2), block";
  place.write("array.npy", testing::numbered_npy(6, 4));
  place.write("other.svg", "<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>\n");
  place.write("empty.svg", "");
  ASSERT_EQ(place.run({"reshard", "array.npy", "parts", "--to", "@ 2x1 : block, whole"}).code, 0);
  ASSERT_EQ(place.run({"reshard", "array.npy", "archive.npz:a", "--to", "@ 1x1 : whole, whole"}).code, 0);
  std::filesystem::create_symlink("parts/part-00000.npy", place.path("link.svg"));
  for (const char* name : {"array.npy", "other.svg", "empty.svg"}) {
    const std::string before = place.read(name);
    const Outcome refused = place.run({"layout", layout, "-o", name});
    expect_error(refused, 1);
    EXPECT_NE(refused.errors.find("exists and is not a picture that tranship drew"), std::string::npos);
    EXPECT_EQ(place.read(name), before);
  }
  for (const auto& [source, picture] :
       std::vector<std::pair<std::string, std::string>>{{"array.npy", "array.npy"},
                                                        {"archive.npz", "archive.npz"},
                                                        {"archive.npz:a", "archive.npz"},
                                                        {"parts", "parts/part-00001.npy"},
                                                        {"parts", "parts/manifest.json"},
                                                        {"parts", "link.svg"}}) {
    SCOPED_TRACE(picture);
    const std::string before = place.read(picture);
    expect_error(place.run({"layout", source, "-o", picture, "--force"}), 2);
    expect_error(place.run({"plan", source, "--to", "@ 2x1 : block, whole", "-o", "./parts/../" + picture, "--force"}),
                 2);
    EXPECT_EQ(place.read(picture), before);
  }
  EXPECT_EQ(place.run({"layout", "parts", "-o", "parts/picture.svg"}).code, 0);
  EXPECT_EQ(place.run({"layout", "parts", "-o", "parts/picture.svg"}).code, 0);
  EXPECT_EQ(place.read("array.npy"), testing::numbered_npy(6, 4));
  EXPECT_EQ(place.run({"layout", layout, "-o", "other.svg", "--force"}).code, 0);
  EXPECT_EQ(place.run({"layout", "f64[10] @ 5 : block", "-o", "other.svg"}).code, 0);
  EXPECT_NE(place.read("other.svg").find("f64[10]"), std::string::npos);
}

TEST(Plan, IsPrintedInFullAndCompared) {
  const Workplace place;
  const std::string rows = "f64[90] @ 3 : block", tiles = "f64[90] @ 3 : cyclic(7)";
  const auto plan = [&](const std::string& to, std::vector<std::string> more) {
    std::vector<std::string> words = {"plan", "--from", rows, "--to", to};
    words.insert(words.end(), more.begin(), more.end());
    return place.run(words);
  };
  const Outcome full = plan(tiles, {"--rank", "1", "--full"});
  EXPECT_EQ(full.code, 0) << full.errors;
  EXPECT_EQ(full.output, save_plan(plan_redistribution(parse_layout(rows), parse_layout(tiles), 1)));
  place.write("plan.json", full.output);
  const Outcome equal = plan(tiles, {"--rank", "1", "--compare", "plan.json"});
  EXPECT_EQ(equal.code, 0) << equal.errors;
  EXPECT_EQ(equal.output, "the plans are equal\n");
  const Outcome other = plan("f64[90] @ 3 : cyclic(8)", {"--rank", "1", "--compare", "plan.json"});
  EXPECT_EQ(other.code, 1);
  EXPECT_EQ(other.errors, "");
  EXPECT_NE(other.output.find("receives[0].axes[0]"), std::string::npos) << other.output;

  place.write("half.json", full.output.substr(0, full.output.size() / 2));
  for (const std::vector<std::string>& wrong : std::vector<std::vector<std::string>>{
           {"--full"},
           {"--compare", "plan.json"},
           {"--rank", "1", "--full", "--json"},
           {"--rank", "1", "--full", "--compare", "plan.json"},
           {"--rank", "1", "--compare", "plan.json", "-o", "plan.svg"},
           {"--rank", "1", "--compare", "half.json"},
           {"--rank", "1", "--compare", "none.json"},
       })
    expect_error(plan(tiles, wrong), 2);
  EXPECT_EQ(place.names(), (std::set<std::string>{"half.json", "plan.json"}));
}

TEST(Plan, DrawsWhoSendsWhatToWhom) {
  const Workplace place;
  const std::string rows = "f64[12,12] @ 3x1 : block, whole", columns = "f64[12,12] @ 1x3 : whole, block";
  const Outcome all = place.run({"plan", "--from", rows, "--to", columns, "-o", "plan.svg", "--json"});
  EXPECT_EQ(all.code, 0) << all.errors;
  EXPECT_EQ(parse_json(all.output).at("picture"), Json("plan.svg"));
  EXPECT_NE(place.read("plan.svg").find("redistribution, 3 ranks"), std::string::npos);
  EXPECT_EQ(place.run({"plan", "--from", rows, "--to", columns, "--rank", "1", "-o", "plan.svg"}).code, 0);
  EXPECT_NE(place.read("plan.svg").find("redistribution, rank 1"), std::string::npos);
  EXPECT_EQ(place.run({"halo", "f64[12] @ 3 : block+overlap(1,1)", "-o", "halo.svg"}).code, 0);
  EXPECT_NE(place.read("halo.svg").find("halo, 3 ranks"), std::string::npos);

  place.write("array.npy", testing::numbered_npy(6, 4));
  for (const std::vector<std::string>& command : {std::vector<std::string>{"halo", "f64[12] @ 3 : block+overlap(1,1)"},
                                                  {"plan", "--from", rows, "--to", columns}}) {
    std::vector<std::string> over = command;
    over.insert(over.end(), {"-o", "array.npy"});
    expect_error(place.run(over), 1);
  }
  expect_error(place.run({"plan", "array.npy", "--to", "@ 2x1 : block, whole", "-o", "array.npy", "--force"}), 2);
  EXPECT_EQ(place.read("array.npy"), testing::numbered_npy(6, 4));
}

TEST(Layout, RefusesStridesThatOverlapWhereverTheyAreGiven) {
  const std::string layout = "f64[4,4] @ 1x1 : whole, whole | strides(1,1)";
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"layout", layout},
                                                    {"layout", layout, "--json"},
                                                    {"plan", "--from", layout, "--to", layout}}) {
    const Outcome outcome = Workplace().run(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_NE(outcome.errors.find("stride 1 of dimension 1 makes cells overlap"), std::string::npos) << outcome.errors;
  }
}

const std::string rows = "i16[344,403] @ 4x1 : block, whole";
const std::string tiles = "i16[344,403] @ 2x2 : cyclic(64)+overlap(1,1), cyclic(64)+overlap(1,1)";

TEST(Plan, ExplainsItself) {
  const Outcome all = Workplace().run({"plan", "--from", rows, "--to", tiles, "--relabel"});
  EXPECT_EQ(all.code, 0) << all.errors;
  EXPECT_TRUE(test::matches_golden("cli/plan.txt", all.output));
  const Outcome one = Workplace().run({"plan", "--from", rows, "--to", tiles, "--rank", "1"});
  EXPECT_EQ(one.code, 0) << one.errors;
  EXPECT_TRUE(test::matches_golden("cli/plan_rank_1.txt", one.output));
}

TEST(Plan, RanksAddUpToTheWorld) {
  const Workplace place;
  const auto world = place.run({"plan", "--from", rows, "--to", tiles, "--json"}).json();
  EXPECT_EQ(world.at("from").at("extents"), Json({344, 403}));
  EXPECT_EQ(world.at("to").at("type"), "i16");
  std::int64_t cells = 0, bytes = 0, messages = 0;
  for (int rank = 0; rank < 4; ++rank) {
    const auto one =
        place.run({"plan", "--from", rows, "--to", tiles, "--rank", std::to_string(rank), "--json"}).json();
    const auto& received = one.at("summary").at("received");
    EXPECT_EQ(one.at("summary").at("rank"), rank);
    cells += received.at("cells").as_integer();
    bytes += received.at("bytes").as_integer();
    messages += received.at("messages").as_integer();
  }
  const auto& moved = world.at("summary").at("moved");
  EXPECT_GT(cells, 0);
  EXPECT_EQ(moved.at("cells"), cells);
  EXPECT_EQ(moved.at("bytes"), bytes);
  EXPECT_EQ(moved.at("messages"), messages);
}

TEST(Plan, RelabelsAGridOfTheOtherOrderForNothing) {
  const std::string from = "f64[4000,4] @ 8x2 : block, block", to = "f64[4000,4] @ 8x2 order(1,0) : block, block";
  const Workplace place;
  const auto plan = place.run({"plan", "--from", from, "--to", to, "--relabel", "--json"}).json();
  EXPECT_EQ(plan.at("relabelled").at("cells_moved"), 0);
  EXPECT_EQ(plan.at("relabelled").at("cells_moved_before"), plan.at("summary").at("moved").at("cells"));
  // Its layout is one to use: nothing moves.
  place.write("better.json", plan.at("relabelled").at("to").dump());
  const auto better = place.run({"plan", "--from", from, "--to", "@better.json", "--json"}).json();
  EXPECT_EQ(better.at("summary").at("moved").at("cells"), 0);
  EXPECT_FALSE(better.contains("relabelled"));
}

TEST(Plan, DoesNotGrowWithTheArray) {
  const Outcome plan = Workplace().run({"plan", "--from", "f32[1000000000000] @ 16 : cyclic(64)", "--to",
                                        "f32[1000000000000] @ 24 : cyclic(100)", "--json"});
  EXPECT_EQ(plan.code, 0) << plan.errors;
  const auto summary = plan.json().at("summary");
  EXPECT_EQ(summary.at("moved").at("cells").as_integer() + summary.at("local").at("cells").as_integer(),
            1'000'000'000'000);
}

TEST(Plan, RefusesArraysThatDiffer) {
  const Outcome outcome = Workplace().run({"plan", "--from", "f64[4] @ 2 : block", "--to", "f64[5] @ 2 : block"});
  expect_error(outcome, 1);
  EXPECT_NE(outcome.errors.find("[4]"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("[5]"), std::string::npos) << outcome.errors;
}

TEST(Halo, CountsWhatMoves) {
  const std::string field = "f32[16,16] @ 2x2 : block+overlap(2,2,toroidal), block+overlap(2,2,toroidal)";
  auto moved = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"halo", field, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Outcome outcome = Workplace().run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    return outcome.json().at("summary").at("moved").at("cells").as_integer();
  };
  // Four tiles of 8 by 8 cells, each with a rim of 2.
  EXPECT_EQ(moved({}), 4 * (12 * 12 - 8 * 8));
  EXPECT_EQ(moved({"--stencil", "star"}), 4 * 4 * 2 * 8);
  EXPECT_EQ(moved({"--depth", "1"}), 4 * (10 * 10 - 8 * 8));
  EXPECT_EQ(moved({"--depth", "0,1"}), 4 * 2 * 8);

  const auto one = Workplace().run({"halo", field, "--rank", "3", "--json"}).json();
  EXPECT_EQ(one.at("stencil"), "box");
  EXPECT_EQ(one.at("layout").at("type"), "f32");
  EXPECT_EQ(one.at("summary").at("received").at("cells"), 12 * 12 - 8 * 8);
  const Outcome text = Workplace().run({"halo", field});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.output.find(field), std::string::npos) << text.output;
}

TEST(Halo, RefusesAnArrayWithoutOverlap) {
  for (const char* more : {"", "0"}) {
    std::vector<std::string> words = {"halo", "f64[8,8] @ 2x2 : block, block", "-o", "halo.svg"};
    if (*more) words.insert(words.end(), {"--rank", more});
    const Workplace place;
    const Outcome outcome = place.run(words);
    expect_error(outcome, 1);
    EXPECT_EQ(outcome.errors,
              "tranship: error: LAYOUT stores 0 cells of overlap, so it has no halo: f64[8,8] @ 2x2 : block, block\n");
    EXPECT_EQ(place.names(), std::set<std::string>{});
  }
}

TEST(Halo, OneDepthLeavesOutDimensionsWithoutOverlap) {
  const Outcome outcome =
      Workplace().run({"halo", "f32[16,3] @ 2x1 : block+overlap(2,2), whole", "--depth", "1", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.json().at("summary").at("moved").at("cells").as_integer(), 2 * 3);
}

TEST(Halo, RefusesADepthBeyondTheOverlap) {
  const Outcome outcome = Workplace().run({"halo", "f32[16] @ 2 : block+overlap(1,1)", "--depth", "3"});
  expect_error(outcome, 1);
  EXPECT_NE(outcome.errors.find('3'), std::string::npos);
  EXPECT_NE(outcome.errors.find('1'), std::string::npos);
}

}  // namespace
}  // namespace tranship
