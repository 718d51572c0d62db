#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <harness/measure.hpp>
#include <harness/registry.hpp>
#include <harness/row.hpp>
#include <nlohmann/json.hpp>

#include <tranship/base/error.hpp>

namespace tranship::bench::harness_test {
namespace {

/// Time that passes only when a contestant says so.
std::int64_t fake_now_ns = 0;
std::int64_t fake_clock_ns() {
  return fake_now_ns;
}

MeasureOptions fake_options() {
  return {.rounds = 9, .round_ns_min = 100, .clock_ns = fake_clock_ns};
}

ErrorCode code_thrown_by(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::internal;
}

Row latency(double ours) {
  return {.name = "8 bytes", .unit = "ns", .better = Better::lower, .ours = ours};
}

TEST(Median, OfOddAndEvenCounts) {
  EXPECT_EQ(median({5}), 5);
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
}

TEST(Median, IgnoresFarOutliers) {
  EXPECT_EQ(median({1, 1, 1, 1, 1e9}), 1);
}

TEST(Measure, GivesTimePerRunOfEachContestant) {
  const auto ns = medians_ns({{[] { fake_now_ns += 3; }}, {[] { fake_now_ns += 250; }}}, fake_options());
  ASSERT_EQ(ns.size(), 2u);
  EXPECT_DOUBLE_EQ(ns[0], 3);
  EXPECT_DOUBLE_EQ(ns[1], 250);
}

TEST(Measure, ContestantsTakeTurnsAndTakeTurnsAtBeingFirst) {
  std::string order;
  medians_ns({{[&] { order += 'a', fake_now_ns += 100; }}, {[&] { order += 'b', fake_now_ns += 100; }}, {[&] {
                order += 'c', fake_now_ns += 100;
              }}},
             fake_options());
  EXPECT_EQ(order, "abc" + std::string("abcbcacab") + "abcbcacab" + "abcbcacab");
}

TEST(Measure, DisturbedRoundsDoNotCount) {
  int runs = 0;
  const auto ns = medians_ns({{[&] { fake_now_ns += ++runs % 3 == 0 ? 100'000 : 100; }}}, fake_options());
  EXPECT_DOUBLE_EQ(ns[0], 100);
}

TEST(Measure, PreparationComesBeforeEveryRunAndIsNotTimed) {
  std::string order;
  const auto ns = medians_ns({{[&] { order += 'r', fake_now_ns += 60; }, [&] { order += 'p', fake_now_ns += 999; }}},
                             fake_options());
  EXPECT_DOUBLE_EQ(ns[0], 60);
  ASSERT_EQ(order.size() % 2, 0u);
  for (std::size_t i = 0; i < order.size(); i += 2) EXPECT_EQ(order.substr(i, 2), "pr");
}

TEST(Measure, RefusesTooFewRoundsAndNobody) {
  auto options = fake_options();
  options.rounds = 8;
  EXPECT_EQ(code_thrown_by([&] { medians_ns({{[] { fake_now_ns += 100; }}}, options); }), ErrorCode::invalid_use);
  EXPECT_EQ(code_thrown_by([&] { medians_ns({}, fake_options()); }), ErrorCode::invalid_use);
}

TEST(Row, MeetsATargetFromTheBetterSide) {
  Row row = latency(100);
  EXPECT_EQ(row.met(), std::nullopt);
  row.target = 100;
  EXPECT_EQ(row.met(), true);
  row.target = 99;
  EXPECT_EQ(row.met(), false);
  row.better = Better::higher;
  EXPECT_EQ(row.met(), true);
  row.target = 101;
  EXPECT_EQ(row.met(), false);
}

TEST(Row, RatioAboveOneMeansOursWins) {
  Row row = latency(50);
  EXPECT_DOUBLE_EQ(row.times_better_than(100), 2);
  row.better = Better::higher;
  EXPECT_DOUBLE_EQ(row.times_better_than(100), 0.5);
}

TEST(Row, JsonHasTheStableNames) {
  Row row = latency(120);
  row.bench = "put";
  row.limit = 105;
  row.peers = {{"z", 240}, {"a", 60}};
  row.target = 130;
  const auto expected = nlohmann::json::parse(R"([{"bench": "put", "case": "8 bytes", "unit": "ns", "better": "lower",
    "ours": 120.0, "limit": 105.0, "peers": {"z": 240.0, "a": 60.0}, "target": 130.0, "met": true,
    "data": null, "goals": [], "absent": {}, "our_ranks": null, "line_bound": null}])");
  EXPECT_EQ(nlohmann::json::parse(to_json({row})), expected);
}

TEST(Row, JsonSaysNullWhereNothingApplies) {
  Row row = latency(120);
  row.better = Better::higher;
  const auto json = nlohmann::json::parse(to_json({row})).at(0);
  EXPECT_TRUE(json.at("limit").is_null());
  EXPECT_TRUE(json.at("target").is_null());
  EXPECT_TRUE(json.at("met").is_null());
  EXPECT_EQ(json.at("peers"), nlohmann::json::object());
  EXPECT_EQ(json.at("better"), "higher");
}

TEST(Row, IsReadBackFromJson) {
  Row full = latency(120);
  full.bench = "put";
  full.data = "fresh";
  full.limit = 105;
  full.line_bound = 110;
  full.our_ranks = RanksAre::processes;
  full.peers = {{"z", 240}, {"a", 60}};
  full.goals = {{"z", 1.5, 240}, {"a", 1, 60}};
  full.target = 130;
  full.absent = {{"mpi", "wrong in 3 cells"}};
  Row bare = latency(7);
  bare.better = Better::higher;
  const std::string text = to_json({full, bare});
  const std::vector<Row> rows = rows_of_json(text);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(to_json(rows), text);
  EXPECT_EQ(rows[0].name, "8 bytes");
  EXPECT_EQ(rows[0].met(), false);
  EXPECT_EQ(rows[1].met(), std::nullopt);
}

TEST(Row, OlderRunsAreReadToo) {
  const auto rows = rows_of_json(R"([{"bench": "put", "case": "8 bytes, warm", "unit": "ns", "better": "lower",
    "ours": 120, "limit": null, "peers": {}, "target": null, "met": null, "data": "warm", "goals": [], "absent": {}}])");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "8 bytes");
  EXPECT_EQ(rows[0].our_ranks, std::nullopt);
}

TEST(Row, OtherJsonIsRefused) {
  for (const char* text : {"", "[{}]", "[1]", R"([{"bench": 3}])"})
    EXPECT_EQ(code_thrown_by([&] { (void)rows_of_json(text); }), ErrorCode::bad_text) << text;
}

TEST(Report, MeasuresAgainWhatWasLost) {
  Row lost = latency(120);
  lost.bench = "put";
  lost.data = "warm";
  lost.target = 100;
  Row met = lost;
  met.data = "fresh";
  met.target = 130;
  Row without = lost;
  without.name = "9 bytes";
  without.target = std::nullopt;
  Report report({.only = lost_rows({lost, met, without})});
  report.begin("get");
  EXPECT_FALSE(report.wants("8 bytes"));
  report.begin("put");
  EXPECT_TRUE(report.wants("8 bytes"));
  EXPECT_TRUE(report.wants("8 bytes, warm"));
  EXPECT_FALSE(report.wants("8 bytes, fresh"));
  EXPECT_FALSE(report.wants("9 bytes"));
  for (const Row& row : {lost, met, without}) report.add(row);
  ASSERT_EQ(report.rows().size(), 1u);
  EXPECT_EQ(report.rows()[0].full_name(), "8 bytes, warm");
}

TEST(Row, TableHasOneLineACaseWithRatios) {
  Row row = latency(120);
  row.bench = "put";
  row.limit = 60;
  row.peers = {{"mpi", 240}, {"window", 180}};
  row.target = 100;
  row.our_ranks = RanksAre::processes;
  row.line_bound = 80;
  const std::string table = to_markdown({row, latency(7)});
  EXPECT_NE(
      table.find("| put   | 8 bytes | –    | processes | ns ↓ | 120  | 60 (0.50×) | 80 (0.67×) | mpi 240 (2.00×), "
                 "window 180 (1.50×) | 100    | NO  |\n"),
      std::string::npos)
      << table;
  EXPECT_NE(table.find("|       | 8 bytes | –    | –         | ns ↓ | 7    | –          | –          | –"),
            std::string::npos)
      << table;
}

TEST(Report, RowsBelongToTheBenchmarkThatRuns) {
  Report report({.effort = Effort::quick});
  report.begin("first");
  report.add(latency(1));
  report.begin("second");
  report.add(latency(2));
  ASSERT_EQ(report.rows().size(), 2u);
  EXPECT_EQ(report.rows()[0].bench, "first");
  EXPECT_EQ(report.rows()[1].bench, "second");
}

TEST(Row, GoalsAreRatiosToOtherNumbersAndAllMustBeMet) {
  Row row = latency(50);
  row.goals = {{"limit", 0.5, 30}, {"mpi", 2, 110}};
  EXPECT_EQ(row.met(), true);
  EXPECT_DOUBLE_EQ(row.strictest().value(), 55);
  row.goals[0].ratio = 0.7;
  EXPECT_EQ(row.met(), false);
  EXPECT_DOUBLE_EQ(row.strictest().value(), 30 / 0.7);
  row.better = Better::higher;
  row.goals = {{"limit", 0.9, 60}};
  EXPECT_EQ(row.met(), false);
  EXPECT_DOUBLE_EQ(row.strictest().value(), 54);
  row.target = 70;
  EXPECT_DOUBLE_EQ(row.strictest().value(), 70);
  EXPECT_NE(to_markdown({row}).find("70, 0.9× limit (missed: 0.83×)"), std::string::npos) << to_markdown({row});
}

TEST(Row, StateOfTheDataIsAColumnAndPartOfTheCase) {
  Row row = latency(50);
  row.data = "fresh";
  row.absent = {{"mpi", "wrong in 3 cells"}};
  const auto json = nlohmann::json::parse(to_json({row})).at(0);
  EXPECT_EQ(json.at("case"), "8 bytes, fresh");
  EXPECT_EQ(json.at("data"), "fresh");
  EXPECT_EQ(json.at("absent").at("mpi"), "wrong in 3 cells");
  const std::string table = to_markdown({row});
  EXPECT_NE(table.find("| 8 bytes | fresh |"), std::string::npos) << table;
  EXPECT_NE(table.find("absent: mpi from  8 bytes, fresh: wrong in 3 cells\n"), std::string::npos) << table;
}

TEST(Report, KeepsOnlyRowsThatAreAskedFor) {
  Report report({.filter = "bytes, warm"});
  report.begin("first");
  Row row = latency(1);
  for (const char* data : {"fresh", "warm"}) {
    row.data = data;
    report.add(row);
  }
  ASSERT_EQ(report.rows().size(), 1u);
  EXPECT_EQ(report.rows()[0].data, "warm");
  EXPECT_FALSE(report.wants("8 bytes, fresh"));
}

TEST(Report, RefusesACaseTwiceAndARowWithoutAUnit) {
  Report report({});
  report.begin("first");
  report.add(latency(1));
  EXPECT_EQ(code_thrown_by([&] { report.add(latency(2)); }), ErrorCode::invalid_use);
  EXPECT_EQ(code_thrown_by([&] { report.add({.name = "no unit", .unit = ""}); }), ErrorCode::invalid_use);
  EXPECT_EQ(report.rows().size(), 1u);
}

TRANSHIP_BENCH(zebra, "registered by a test") {
  report.add(latency(1));
}
TRANSHIP_BENCH(ant, "registered by a test") {
  report.add(latency(2));
}

TEST(Registry, FindsBenchmarksByNameInOrder) {
  const auto all = benchmarks();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "ant");
  EXPECT_EQ(all[1].name, "zebra");
  Report report({});
  benchmark_named("ant").run(report);
  EXPECT_EQ(report.rows().at(0).ours, 2);
}

TEST(Registry, UnknownNamesAreRefusedWithThoseThatExist) {
  try {
    benchmark_named("bee");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    EXPECT_EQ(error.message(), "no benchmark is called 'bee'; there are 2: ant, zebra");
  }
}

}  // namespace
}  // namespace tranship::bench::harness_test
