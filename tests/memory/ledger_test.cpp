#include <algorithm>
#include <optional>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <tranship/memory/ledger.hpp>

#include "support/random_layouts.hpp"

namespace tranship {
namespace {

constexpr Device host = Device::host(), fake0 = Device::fake(0), fake1 = Device::fake(1);

CopyRecord copy_of(Device source, Device target, const Region& region, const std::string& buffer = "u") {
  return {.buffer = buffer, .source = source, .target = target, .region = region, .bytes = 8 * region.count()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class F>
std::string refusal(F act) {
  try {
    act();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_use);
    return error.message();
  }
  return "";
}

TEST(CopyLedger, sums_go_by_cause_and_by_pair) {
  CopyLedger ledger;
  CopyRecord record = copy_of(host, fake0, Region::interval(0, 10));
  EXPECT_EQ(ledger.add(record), 1u);
  record.cause = Cause::halo;
  EXPECT_EQ(ledger.add(record), 2u);
  std::swap(record.source, record.target);
  record.cause = Cause::duplicate;
  EXPECT_EQ(ledger.add(record), 3u);
  EXPECT_EQ(ledger.sums().copies, 3);
  EXPECT_EQ(ledger.sums().bytes, 240);
  EXPECT_EQ(ledger.sums(Cause::halo).copies, 1);
  EXPECT_EQ(ledger.sums(Cause::duplicate).bytes, 80);
  EXPECT_EQ(ledger.sums(Cause::merge).copies, 0);
  EXPECT_EQ(ledger.sums(host, fake0).bytes, 160);
  EXPECT_EQ(ledger.sums(fake0, host).bytes, 80);
  EXPECT_EQ(ledger.sums(fake0, fake1).copies, 0);
  ledger.clear();
  EXPECT_EQ(ledger.sums().copies, 0);
  EXPECT_EQ(ledger.sums(Cause::halo).copies, 0);
  EXPECT_EQ(ledger.sums(host, fake0).bytes, 0);
  EXPECT_TRUE(ledger.records().empty());
}

TEST(CopyLedger, keeps_the_last_records_and_the_sums_of_all) {
  CopyLedger ledger;
  ledger.add(copy_of(host, fake0, Region::interval(0, 1)));
  ledger.clear();
  const std::uint64_t before = 1, count = CopyLedger::records_max + 10;
  for (std::uint64_t i = 1; i <= count; ++i)
    ASSERT_EQ(ledger.add(copy_of(host, fake0, Region::interval(0, 1))), before + i);
  ledger.set_end(before, 5);      // of before clear()
  ledger.set_end(before + 1, 6);  // overwritten
  ledger.set_end(before + 11, 7);
  ledger.set_end(before + count, 8);
  ledger.set_end(before + count + 1, 9);  // never given
  const std::vector<CopyRecord> records = ledger.records();
  ASSERT_EQ(records.size(), CopyLedger::records_max);
  EXPECT_EQ(records.front().number, before + 11);
  EXPECT_EQ(records.front().end_ns, 7);
  EXPECT_EQ(records.back().number, before + count);
  EXPECT_EQ(records.back().end_ns, 8);
  for (std::size_t i = 1; i + 1 < records.size(); ++i) {
    ASSERT_EQ(records[i].number, records[i - 1].number + 1);
    ASSERT_EQ(records[i].end_ns, 0);
  }
  EXPECT_EQ(ledger.sums().copies, Index(count));
}

TEST(CopyLedger, threads_add_and_end_records_together) {
  CopyLedger ledger;
  constexpr int threads = 4, each = 500;
  std::vector<std::thread> workers;
  for (int t = 0; t < threads; ++t)
    workers.emplace_back([&ledger, t] {
      for (int i = 0; i < each; ++i) {
        const std::uint64_t number = ledger.add(copy_of(host, Device::fake(t), Region::interval(i, i + 1)));
        ledger.set_end(number, std::int64_t(number));
        if (i % 100 == 0) (void)ledger.records();
      }
    });
  for (std::thread& worker : workers) worker.join();
  const std::vector<CopyRecord> records = ledger.records();
  ASSERT_EQ(records.size(), std::size_t(threads * each));
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].number, i + 1);
    EXPECT_EQ(records[i].end_ns, std::int64_t(i + 1));
  }
  for (int t = 0; t < threads; ++t) EXPECT_EQ(ledger.sums(host, Device::fake(t)).copies, each);
}

TEST(CopyLedger, names_a_record_with_both_places) {
  CopyRecord record = copy_of(host, fake0, Region::interval(0, 512));
  record.cause = Cause::stale;
  record.writer = {"a.cpp", 12};
  record.requester = {"b.cpp", 40};
  EXPECT_EQ(to_string(record), "host -> fake:0 4096 bytes [0,512) of 'u', stale since write at a.cpp:12, for b.cpp:40");
  record.cause = Cause::halo;
  EXPECT_EQ(to_string(record), "host -> fake:0 4096 bytes [0,512) of 'u', halo, last write at a.cpp:12, for b.cpp:40");
  record.writer.line = record.requester.line = 0;
  EXPECT_EQ(to_string(record), "host -> fake:0 4096 bytes [0,512) of 'u', halo");
}

TEST(CopyLedger, every_cause_and_route_has_a_name_of_its_own) {
  std::vector<std::string> names;
  for (int cause = 0; cause <= int(Cause::duplicate); ++cause) names.emplace_back(name_of(Cause(cause)));
  for (int route = 0; route <= int(Route::within); ++route) names.emplace_back(name_of(Route(route)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(std::count(names.begin(), names.end(), "?"), 0);
}

// --- Ping-pong ------------------------------------------------------------------------------------------------------

TEST(PingPongs, a_region_that_goes_back_and_forth_is_found) {
  CopyLedger ledger;
  for (int turn = 0; turn < 3; ++turn) {
    ledger.add(copy_of(host, fake0, Region::interval(0, 100)));
    ledger.add(copy_of(fake1, fake0, Region::interval(0, 100)));  // another pair
    ledger.add(copy_of(host, fake0, Region::interval(0, 100), "v"));
    ledger.add(copy_of(fake0, host, Region::interval(40, 60)));
  }
  const std::vector<PingPong> found = ledger.ping_pongs();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].buffer, "u");
  EXPECT_EQ(found[0].a, host);
  EXPECT_EQ(found[0].b, fake0);
  EXPECT_EQ(found[0].region, Region::interval(40, 60));
  EXPECT_EQ(found[0].turns, 5);
  EXPECT_EQ(found[0].bytes, 6 * 20 * 8);
  EXPECT_EQ(ledger.ping_pongs(5).size(), 1u);
  EXPECT_TRUE(ledger.ping_pongs(6).empty());
}

TEST(PingPongs, copies_one_way_only_are_none) {
  CopyLedger ledger;
  for (int turn = 0; turn < 9; ++turn) ledger.add(copy_of(host, fake0, Region::interval(0, 100)));
  for (int turn = 0; turn < 9; ++turn) ledger.add(copy_of(fake0, host, Region::interval(100, 200)));
  for (int turn = 0; turn < 9; ++turn) ledger.add(copy_of(fake0, fake0, Region::interval(0, 200)));
  EXPECT_TRUE(ledger.ping_pongs(1).empty());
}

TEST(PingPongs, several_copies_one_way_are_one_turn) {
  CopyLedger ledger;
  for (const Device target : {fake0, fake0, host, host, fake0})
    ledger.add(copy_of(target == host ? fake0 : host, target, Region::whole({4, 4})));
  const std::vector<PingPong> found = ledger.ping_pongs(1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].turns, 2);
  EXPECT_EQ(found[0].bytes, 5 * 16 * 8);
}

TEST(PingPongs, those_with_the_most_bytes_come_first) {
  CopyLedger ledger;
  const Region small = Region(Box{{0, 0}, {2, 2}}), large = Region(Box{{4, 4}, {9, 9}});
  for (int turn = 0; turn < 2; ++turn)
    for (const Region& region : {small, large}) {
      ledger.add(copy_of(host, fake0, region));
      ledger.add(copy_of(fake0, host, region));
    }
  ledger.add(copy_of(host, fake0, Region::whole({})));
  const std::vector<PingPong> found = ledger.ping_pongs();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].region, large);
  EXPECT_EQ(found[1].region, small);
}

TEST(PingPongs, random_copies_agree_with_turns_counted_cell_by_cell) {
  EXPECT_EQ(
      test::first_fault(0.05,
                        [](std::uint64_t seed) -> std::string {
                          test::Random random(seed);
                          const int dims = int(random.between(1, 2));
                          const Index extent = dims == 1 ? 30 : 6;
                          CopyLedger ledger;
                          std::vector<CopyRecord> copies;
                          for (int i = 0; i < 25; ++i) {
                            Box box;
                            for (int d = 0; d < dims; ++d) {
                              box.lower.push_back(random.below(extent));
                              box.upper.push_back(random.between(box.lower[d] + 1, extent));
                            }
                            copies.push_back(random.one_in(2) ? copy_of(host, fake0, box) : copy_of(fake0, host, box));
                            ledger.add(copies.back());
                          }
                          const std::vector<PingPong> found = ledger.ping_pongs(2);
                          std::string fault;
                          for_each_coordinate(Indices::filled(dims, extent), [&](const Indices& at) {
                            Index turns = 0, count = 0;
                            std::optional<Device> last;
                            for (const CopyRecord& copy : copies) {
                              if (!copy.region.contains(at)) continue;
                              turns += last && *last != copy.target;
                              last = copy.target;
                              ++count;
                            }
                            Index listed = 0;
                            for (const PingPong& one : found) {
                              if (!one.region.contains(at)) continue;
                              ++listed;
                              if (one.turns != turns) fault = fmt::format("{} turns, counted {}", one.turns, turns);
                              if (one.bytes != 8 * count * one.region.count()) fault = "bytes";
                            }
                            if (listed != (turns >= 2))
                              fault = fmt::format("a cell of {} turns in {} regions", turns, listed);
                          });
                          return fault;
                        }),
      "");
}

// --- Trace ----------------------------------------------------------------------------------------------------------

TEST(Trace, is_json_with_an_event_for_each_copy_and_a_name_for_each_track) {
  CopyLedger ledger;
  CopyRecord record = copy_of(host, fake0, Region::interval(0, 512));
  record.cause = Cause::stale;
  record.route = Route::through_host;
  record.writer = {"a.cpp", 12};
  record.requester = {"b.cpp", 40};
  record.begin_ns = 1'000'000;
  record.end_ns = 1'002'500;
  ledger.add(record);
  std::swap(record.source, record.target);
  record.begin_ns = 1'001'000;
  record.end_ns = 0;
  ledger.add(record);
  const auto trace = nlohmann::json::parse(ledger.trace_json());
  std::vector<nlohmann::json> copies;
  std::vector<std::string> tracks;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") copies.push_back(event);
    if (event.at("name") == "thread_name") tracks.push_back(event.at("args").at("name"));
  }
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0].at("ts"), 0.0);
  EXPECT_EQ(copies[0].at("dur"), 2.5);
  EXPECT_EQ(copies[1].at("ts"), 1.0);
  EXPECT_EQ(copies[1].at("dur"), 0.0);
  EXPECT_TRUE(copies[1].at("args").at("unfinished"));
  EXPECT_NE(copies[0].at("tid"), copies[1].at("tid"));
  const auto& args = copies[0].at("args");
  EXPECT_EQ(args.at("buffer"), "u");
  EXPECT_EQ(args.at("bytes"), 4096);
  EXPECT_EQ(args.at("region"), "[0,512)");
  EXPECT_EQ(args.at("cause"), name_of(Cause::stale));
  EXPECT_EQ(args.at("route"), name_of(Route::through_host));
  EXPECT_EQ(args.at("writer"), "a.cpp:12");
  EXPECT_EQ(args.at("requester"), "b.cpp:40");
  EXPECT_EQ(tracks, (std::vector<std::string>{"host -> fake:0", "fake:0 -> host"}));
}

TEST(Trace, copies_that_overlap_in_time_lie_on_tracks_of_their_own) {
  CopyLedger ledger;
  for (const auto& [begin, end] : {std::pair{0, 10}, {5, 15}, {10, 20}, {15, 30}, {16, 17}}) {
    CopyRecord record = copy_of(host, fake0, Region::interval(0, 1));
    record.begin_ns = begin;
    record.end_ns = end;
    ledger.add(record);
  }
  const auto trace = nlohmann::json::parse(ledger.trace_json());
  std::vector<int> tracks;
  for (const auto& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") tracks.push_back(event.at("tid"));
  EXPECT_EQ(tracks, (std::vector<int>{1, 2, 1, 2, 3}));
}

TEST(Trace, any_bytes_may_be_in_a_name) {
  CopyLedger ledger;
  EXPECT_TRUE(nlohmann::json::parse(ledger.trace_json()).at("traceEvents").is_array());
  ledger.add(copy_of(host, fake0, Region::interval(0, 1), std::string("\xff\"\0\n\xc3", 5)));
  const auto trace = nlohmann::json::parse(ledger.trace_json());
  EXPECT_EQ(trace.at("traceEvents").at(0).at("args").at("buffer").get<std::string>(),
            std::string("\xef\xbf\xbd\"\0\n\xef\xbf\xbd", 9));
}

// --- Scopes ---------------------------------------------------------------------------------------------------------

TEST(NoImplicitCopies, refuses_what_nobody_asked_for_and_names_both_places) {
  std::vector<CopyRecord> copies = {copy_of(host, fake0, Region::interval(0, 512))};
  copies[0].cause = Cause::prefetch;
  copies[0].requester = {"b.cpp", 40};
  check_scopes(copies);
  {
    const NoImplicitCopies outer({"outer.cpp", 7});
    check_scopes(copies);
    copies[0].cause = Cause::export_;
    check_scopes(copies);
    copies.push_back(copies[0]);
    copies.push_back(copies[0]);
    copies[1].cause = Cause::stale;
    copies[2].cause = Cause::halo;
    const std::string message = refusal([&] { check_scopes(copies); });
    EXPECT_TRUE(has(message, "outer.cpp:7")) << message;
    EXPECT_TRUE(has(message, to_string(copies[1]))) << message;
    EXPECT_TRUE(has(message, "b.cpp:40")) << message;
    EXPECT_TRUE(has(message, "1 more")) << message;
    {
      const NoImplicitCopies inner({"inner.cpp", 8});
      EXPECT_TRUE(has(refusal([&] { check_scopes(copies); }), "inner.cpp:8"));
    }
    EXPECT_TRUE(has(refusal([&] { check_scopes(copies); }), "outer.cpp:7"));
    std::thread([&] { EXPECT_EQ(refusal([&] { check_scopes(copies); }), ""); }).join();
  }
  EXPECT_EQ(refusal([&] { check_scopes(copies); }), "");
}

TEST(NoImplicitCopies, may_be_closed_in_any_order) {
  const std::vector<CopyRecord> copies = {copy_of(host, fake0, Region::interval(0, 1))};
  std::optional<NoImplicitCopies> first, second, third;
  first.emplace(CallSite{"first.cpp", 1});
  second.emplace(CallSite{"second.cpp", 2});
  third.emplace(CallSite{"third.cpp", 3});
  second.reset();
  EXPECT_TRUE(has(refusal([&] { check_scopes(copies); }), "third.cpp:3"));
  third.reset();
  EXPECT_TRUE(has(refusal([&] { check_scopes(copies); }), "first.cpp:1"));
  first.reset();
  EXPECT_EQ(refusal([&] { check_scopes(copies); }), "");
}

TEST(ByteBudget, counts_and_refuses_with_both_numbers_and_its_place) {
  const std::vector<CopyRecord> copies = {copy_of(host, fake0, Region::interval(0, 4)),
                                          copy_of(host, fake0, Region::interval(0, 5))};
  ByteBudget outer(150, {"outer.cpp", 7});
  {
    ByteBudget inner(100, {"inner.cpp", 8});
    check_scopes(copies);
    spend(72);
    EXPECT_EQ(inner.spent_bytes(), 72);
    const std::string message = refusal([&] { check_scopes(copies); });
    for (const char* part : {"72 bytes", "28 of 100 bytes", "inner.cpp:8", "[0,5)"})
      EXPECT_TRUE(has(message, part)) << message;
    check_scopes({copies.data(), 0});
    spend(28);
  }
  EXPECT_EQ(outer.spent_bytes(), 100);
  const std::string message = refusal([&] { check_scopes(copies); });
  for (const char* part : {"72 bytes", "50 of 150 bytes", "outer.cpp:7"}) EXPECT_TRUE(has(message, part)) << message;
  spend(100);
  EXPECT_EQ(outer.spent_bytes(), 200);
  EXPECT_TRUE(has(refusal([&] { check_scopes(copies); }), "0 of 150 bytes"));
  std::thread([&] {
    check_scopes(copies);
    spend(1);
  }).join();
  EXPECT_EQ(outer.spent_bytes(), 200);
}

TEST(ByteBudget, of_exactly_the_bytes_is_enough_and_a_negative_one_is_refused) {
  const std::vector<CopyRecord> copies = {copy_of(host, fake0, Region::interval(0, 4))};
  {
    const ByteBudget enough(32);
    check_scopes(copies);
  }
  {
    const ByteBudget short_by_one(31);
    EXPECT_NE(refusal([&] { check_scopes(copies); }), "");
  }
  EXPECT_TRUE(has(refusal([] { const ByteBudget budget(-3, {"a.cpp", 4}); }), "-3"));
  EXPECT_EQ(refusal([&] { check_scopes(copies); }), "");
}

}  // namespace
}  // namespace tranship
