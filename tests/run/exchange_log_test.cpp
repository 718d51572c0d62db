// What is recorded of exchanges, and what traces show of it.
#include <map>

#include <gtest/gtest.h>

#include <tranship/array/array.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/redistribution.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/sub_world.hpp>
#include <tranship/run/exchange_log.hpp>

#include "support/error_of.hpp"
#include "support/ranks.hpp"

namespace tranship::test {
namespace {

Distribution rows(Rank ranks) {
  return distribution({12, 12}, grid(ranks, 1), {block(), whole()});
}
Distribution columns(Rank ranks) {
  return distribution({12, 12}, grid(1, ranks), {whole(), block()});
}

void turn_twice(World& world) {
  Array<double> a(world, rows(world.size()), {.name = "a"}), b(world, columns(world.size()), {.name = "b"});
  Redistribution turn(a, b);
  turn();
  turn.start();
  while (!turn.test()) {
  }
}

TEST(ExchangeLog, EveryRankRecordsEveryRunWithItsMessages) {
  for (const bool simulated : {false, true}) {
    const ExchangeLog log;
    if (simulated)
      simulate({.ranks = 3, .seed = 5}, [](World& world) { turn_twice(world); });
    else
      launch(3, [](World& world) { turn_twice(world); });
    const std::vector<LoggedExchange> runs = log.records();
    ASSERT_EQ(runs.size(), 6u);
    std::map<Rank, std::uint64_t> last_epoch;
    for (const LoggedExchange& run : runs) {
      EXPECT_EQ(run.epoch, ++last_epoch[run.rank]);
      EXPECT_EQ(run.kind, PlanKind::redistribution);
      EXPECT_EQ(run.arrays, "a, b");
      EXPECT_EQ(run.own_bytes, 16 * 8);
      EXPECT_EQ(run.failure, "");
      EXPECT_LE(run.begin_ns, run.started_ns);
      EXPECT_LE(run.started_ns, run.end_ns);
      EXPECT_EQ(run.finishing_ns > 0 && run.epoch == 2, false);
      ASSERT_EQ(run.messages.size(), 4u);
      for (const LoggedMessage& m : run.messages) {
        EXPECT_NE(m.source, m.target);
        EXPECT_TRUE(m.source == run.rank || m.target == run.rank);
        EXPECT_EQ(m.bytes, 16 * 8);
        EXPECT_STREQ(m.way, simulated ? "posted" : m.way);
        EXPECT_GE(m.done_ns, run.begin_ns);
        EXPECT_LE(m.done_ns, run.end_ns);
      }
    }
    EXPECT_EQ(last_epoch.size(), 3u);
  }
}

TEST(ExchangeLog, NothingIsRecordedWithoutOneAndOnlyOneCanBeOpen) {
  EXPECT_FALSE(ExchangeLog::is_open());
  launch(2, [](World& world) { turn_twice(world); });
  ExchangeLog log;
  EXPECT_TRUE(ExchangeLog::is_open());
  EXPECT_TRUE(log.records().empty());
  EXPECT_NE(error_of([] { ExchangeLog second; }).find("being recorded already"), std::string::npos);
  EXPECT_TRUE(ExchangeLog::is_open());
  launch(2, [](World& world) { turn_twice(world); });
  EXPECT_EQ(log.records().size(), 4u);
  log.clear();
  EXPECT_TRUE(log.records().empty());
}

TEST(ExchangeLog, ALogMayBeginAndEndWhileExchangesAreInFlight) {
  launch(2, [](World& world) {
    Array<double> a(world, rows(2)), b(world, columns(2));
    Redistribution turn(a, b);
    std::optional<ExchangeLog> log;
    world.barrier();
    turn.start();
    if (world.rank() == 0) log.emplace();
    world.barrier();
    turn.finish();
    world.barrier();
    turn.start();
    world.barrier();
    log.reset();
    world.barrier();
    turn.finish();
  });
  EXPECT_FALSE(ExchangeLog::is_open());
}

TEST(ExchangeLog, ARunThatFailsNamesWhatWasMissing) {
  const ExchangeLog log;
  const std::string error = error_of([] {
    launch(2, [](World& world) {
      Array<double> a(world, rows(2)), b(world, columns(2));
      Redistribution turn(a, b);
      world.set_timeout_ns(50'000'000);
      if (world.rank() == 0) turn();
      if (world.rank() == 1)
        world.wait_until([&] { return world.has_ended(0); }, WaitNote("test", 0, CallSite::here()));
    });
  });
  EXPECT_NE(error.find("timeout"), std::string::npos) << error;
  const auto runs = log.records();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_NE(runs[0].failure, "");
  ASSERT_EQ(runs[0].messages.size(), 2u);
  for (const LoggedMessage& m : runs[0].messages) EXPECT_EQ(m.done_ns, 0);
  std::vector<TraceSlice> slices;
  append_slices(runs[0], slices);
  int missing = 0;
  for (const TraceSlice& slice : slices) {
    EXPECT_GE(slice.end_ns, slice.begin_ns);
    missing += slice.args.contains("missing");
  }
  EXPECT_EQ(missing, 2);
}

TEST(ExchangeLog, RanksOfASubWorldAreNamedAsTheyWereLaunched) {
  const ExchangeLog log;
  launch(4, [](World& world) {
    std::optional<Team> team = world.team().split_strided({.first = 1, .stride = 2, .count = 2});
    if (!team) return;
    SubWorld sub(*team);
    turn_twice(sub.world());
  });
  for (const LoggedExchange& run : log.records()) {
    EXPECT_EQ(run.rank % 2, 1);
    for (const LoggedMessage& m : run.messages) EXPECT_EQ(m.source + m.target, 4);
  }
  EXPECT_EQ(log.records().size(), 4u);
}

TEST(ExchangeLog, KeepsTheFirstRunsAndCountsTheOthers) {
  ExchangeLog log;
  LoggedExchange run{.rank = 0, .messages = std::vector<LoggedMessage>(9997)};
  for (int i = 0; i < 30; ++i) ExchangeLog::add(run);
  run.messages.clear();
  ExchangeLog::add(run);  // there is room for it, but not in its order
  EXPECT_EQ(log.records().size(), 26u);
  EXPECT_EQ(log.left_out(), 5);
  log.clear();
  ExchangeLog::add(run);
  EXPECT_EQ(log.records().size(), 1u);
  EXPECT_EQ(log.left_out(), 0);
}

TEST(ExchangeLog, SlicesOfATrackDoNotOverlap) {
  std::vector<TraceSlice> slices;
  {
    const ExchangeLog log;
    launch(2, [](World& world) {
      Array<double> a(world, rows(2)), b(world, columns(2)), c(world, columns(2));
      Redistribution one(a, b), other(a, c);
      one.start();
      other.start();
      one.finish();
      other.finish();
    });
    for (const LoggedExchange& run : log.records())
      if (run.rank == 0) append_slices(run, slices);
  }
  const Json events = trace_events({.id = 0, .name = "rank 0"}, slices);
  std::map<std::int64_t, std::vector<std::pair<double, double>>> tracks;
  std::vector<std::string> names;
  for (const Json& event : events.items()) {
    if (event.at("ph") == Json("M") && event.at("name") == Json("thread_name"))
      names.push_back(event.at("args").at("name").as_string());
    if (event.at("ph") != Json("X")) continue;
    EXPECT_GE(event.at("dur").as_number(), 0);
    tracks[event.at("tid").as_integer()].push_back({event.at("ts").as_number(), event.at("dur").as_number()});
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), "in flight"), 2);
  EXPECT_EQ(std::count(names.begin(), names.end(), "calls"), 1);
  EXPECT_EQ(tracks.size(), names.size());
  for (auto& [track, list] : tracks)
    for (std::size_t i = 1; i < list.size(); ++i)
      EXPECT_LE(list[i - 1].first + list[i - 1].second, list[i].first + 1e-3);
}

}  // namespace
}  // namespace tranship::test
