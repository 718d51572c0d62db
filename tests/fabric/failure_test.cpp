// No silent hang: what waits say when they fail, what collective calls say that differ, and how the failure of one rank
// reaches the others, on every back-end.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <regex>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/lanes/cpu_lanes.hpp>
#include <tranship/fabric/seam/board.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>

#include "support/ranks.hpp"
#include "support/thinned.hpp"

namespace tranship::test {
namespace {

/// Runs `f` as ranks: what each rank threw, and what its launch threw.
class Failures {
 public:
  template <class F>
  Failures(On on, const LaunchOptions& options, F&& f, std::uint64_t seed = 1)
      : of_rank(static_cast<std::size_t>(options.ranks)) {
    // Ranks that are processes have nothing else to tell it by.
    const std::size_t bytes = of_rank.size() * sizeof(Said);
    auto* said = static_cast<Said*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (said == MAP_FAILED) throw std::bad_alloc();
    try {
      run_once(on, options, seed, [&](World& world) {
        try {
          f(world);
        } catch (const Error& error) {
          said[world.rank()].say(error);
          throw;
        }
      });
    } catch (const Error& error) {
      thrown = error;
    }
    for (std::size_t r = 0; r < of_rank.size(); ++r) of_rank[r] = said[r].error();
    munmap(said, bytes);
  }

  std::vector<std::optional<Error>> of_rank;
  std::optional<Error> thrown;

 private:
  struct Said {
    bool anything;
    ErrorCode code;
    Rank rank, peer;
    char message[4000];

    void say(const Error& error) {
      code = error.code();
      rank = error.rank;
      peer = error.peer;
      std::strncpy(message, error.message().c_str(), sizeof message - 1);
      anything = true;
    }
    std::optional<Error> error() const {
      if (!anything) return std::nullopt;
      Error error(code, message);
      error.rank = rank;
      error.peer = peer;
      return error;
    }
  };
};

::testing::AssertionResult says(const std::optional<Error>& error, ErrorCode code,
                                const std::vector<std::string>& parts) {
  if (!error) return ::testing::AssertionFailure() << "it has not failed";
  if (error->code() != code)
    return ::testing::AssertionFailure() << "code " << int(error->code()) << " is not " << int(code) << ": "
                                         << error->message();
  for (const std::string& part : parts)
    if (error->message().find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is missing in: " << error->message();
  return ::testing::AssertionSuccess();
}

std::string here(int line) {
  return fmt::format("(from failure_test.cpp:{})", line);
}

/// Until `peer` shows that it waits for what is called so.
void see_waiting(World& world, Rank peer, const std::string& label) {
  const std::string line = "waiting for " + label;
  world.wait_until([&] { return world.activity_of(peer).rfind(line, 0) == 0; }, "a wait of another rank");
}
constexpr std::int64_t short_ns = 20'000'000;

class FailingOn : public ::testing::TestWithParam<On> {
 public:
  /// Once, or under some seeds.
  template <class F, class Check>
  void run(int ranks, F&& f, Check&& check) const {
    for (std::uint64_t seed = 1; seed <= (is_simulated(GetParam()) ? 5 : 1); ++seed)
      check(Failures(GetParam(), {.ranks = ranks}, f, seed));
  }
};
const auto everywhere =
    ::testing::Values(On::threads, On::processes, On::sim, On::messaged, On::hosts, On::apart, On::dealt);
const auto names = [](const ::testing::TestParamInfo<On>& info) { return std::string(name_of(info.param)); };

// Waits.

INSTANTIATE_TEST_SUITE_P(All, FailingOn, everywhere, names);
class TimeoutOn : public FailingOn {};
INSTANTIATE_TEST_SUITE_P(All, TimeoutOn, everywhere, names);

TEST_P(TimeoutOn, names_who_waits_on_what_and_what_all_others_do) {
  constexpr int line = __LINE__ + 11;
  const auto program = [](World& world) {
    const auto signals = world.allocate<std::uint64_t>(3);
    Context& rma = world.context();
    if (world.rank() == 3) return;
    if (world.rank() == 0) {
      *signals.local() = 6;
      see_waiting(world, 1, "signal_wait");
      see_waiting(world, 2, "wait_until");
      world.wait_until([&] { return world.activity_of(3) == "finished"; }, "rank 3");
      world.set_timeout_ns(short_ns);
      rma.signal_wait(signals, Comparison::greater_equal, 7, 1);
    } else if (world.rank() == 1) {
      rma.signal_wait(signals.from(1), Comparison::equal, 1, 0);
    } else {
      rma.wait_until(signals.from(2), Comparison::not_equal, 0, 0);
    }
  };
  run(4, program, [&](const Failures& failures) {
    EXPECT_TRUE(says(
        failures.of_rank[0], ErrorCode::timeout,
        {"rank 0 waited ", " s for signal_wait (rank 0, flag 0 >= 7, sees 6; rank 1 should raise it) " + here(line),
         "; in a circle: 0 waits on 1 waits on 0",
         "; rank 1 waiting for signal_wait (rank 1, flag 8 == 1, sees 0; rank 0 should raise it) for ",
         " s " + here(line + 2),
         "; rank 2 waiting for wait_until (rank 2, flag 16 != 0, sees 0; rank 0 should raise it) for ",
         " s " + here(line + 4), "; rank 3 finished"}));
    EXPECT_EQ(failures.of_rank[0].value().rank, 0);
    EXPECT_EQ(failures.of_rank[0].value().peer, 1);
    // Who waited for rank 0 learns why it will not come.
    for (const Rank r : {1, 2}) {
      EXPECT_TRUE(says(failures.of_rank[std::size_t(r)], ErrorCode::peer_lost,
                       {"rank 0 failed: rank 0 waited", "signal_wait (rank 0, flag 0 >= 7, sees 6"}));
      EXPECT_EQ(failures.of_rank[std::size_t(r)].value().peer, 0);
    }
    EXPECT_FALSE(failures.of_rank[3]);
    EXPECT_TRUE(says(failures.thrown, ErrorCode::timeout, {"rank 0 waited", "rank 3 finished"}));
    EXPECT_EQ(failures.thrown->rank, 0);
  });
}

TEST_P(TimeoutOn, names_circles_of_three_and_those_that_lead_into_one) {
  struct Case {
    std::vector<Rank> waits_on;
    const char* circle;
  };
  for (const Case& c : {Case{{1, 2, 0}, "in a circle: 0 waits on 1 waits on 2 waits on 0"},
                        Case{{1, 2, 3, 1}, "in a circle: 1 waits on 2 waits on 3 waits on 1"}}) {
    const int ranks = int(c.waits_on.size());
    const auto program = [&](World& world) {
      const auto signal = world.allocate<std::uint64_t>(1);
      if (world.rank() == 0) {
        for (Rank r = 1; r < ranks; ++r) see_waiting(world, r, "signal_wait");
        world.set_timeout_ns(short_ns);
      }
      world.context().signal_wait(signal, Comparison::equal, 1, c.waits_on[std::size_t(world.rank())]);
    };
    run(ranks, program,
        [&](const Failures& failures) { EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout, {c.circle})); });
  }
}

// Each kind of wait, by rank 0 of three; the others wait for something else.

struct Prepared {
  SymmetricArray<std::uint64_t> signals;  // at the start of the heap
  SymmetricArray<int> numbers;            // 64 bytes behind it
  Team pair;                              // of ranks 0 and 2
  SharedFlags words;
};
struct WaitKind {
  const char* name;
  void (*wait)(World&, Prepared&);
  const char* says;
};
void PrintTo(const WaitKind& kind, std::ostream* out) {
  *out << kind.name;
}

/// A number that a wait sees is one less than the one that it wants.
bool misses_by_one(const std::string& message) {
  std::smatch match;
  return std::regex_search(message, match, std::regex(R"(flag \d+ >= (\d+), sees (\d+);)")) &&
         std::stoll(match[1]) == std::stoll(match[2]) + 1;
}

class EveryWait : public ::testing::TestWithParam<std::tuple<On, WaitKind>> {};

const WaitKind wait_kinds[] = {
    {"signal_wait",
     [](World& world, Prepared& p) { world.context().signal_wait(p.signals, Comparison::greater_equal, 4, 2); },
     "signal_wait (rank 0, flag 0 >= 4, sees 3; rank 2 should raise it)"},
    {"wait_until", [](World& world, Prepared& p) { world.context().wait_until(p.numbers, Comparison::less, -7, 1); },
     "wait_until (rank 0, flag 64 < -7, sees -5; rank 1 should raise it)"},
    {"wait_until_all",
     [](World& world, Prepared& p) { world.context().wait_until_all(p.numbers, Comparison::equal, -5); },
     "wait_until_all (rank 0, flag 68 == -5, sees 0)"},
    {"wait_until_any",
     [](World& world, Prepared& p) { world.context().wait_until_any(p.numbers, Comparison::equal, 8); },
     "wait_until_any (rank 0, flag 64 == 8, sees -5)"},
    {"wait_until_some",
     [](World& world, Prepared& p) {
       const int skip[] = {1};
       Index places[4];
       world.context().wait_until_some(p.numbers, places, Comparison::not_equal, 0, skip);
     },
     "wait_until_some (rank 0, flag 68 != 0, sees 0)"},
    {"words",
     [](World& world, Prepared& p) {
       world.wait(p.words, 0, 1, 1, {"step 1", 1});
     },
     "step 1 (rank 0, flag 1 >= 1, sees 0; rank 1 should raise it)"},
    {"predicate",
     [](World& world, Prepared&) {
       world.wait_until([] { return false; }, {"a miracle", 2});
     },
     "a miracle (rank 2 should raise it)"},
    {"kernel",
     [](World& world, Prepared& p) {
       run_block(world, {.lanes = 8}, [&](const CpuLane& lane) {
         heap_view(world).signal_wait(lane.block(), p.signals.local(), Comparison::equal, 4);
       });
     },
     "signal_wait of lane 0 of block 0 (rank 0, flag 0 == 4, sees 3)"},
    {"kernel_any",
     [](World& world, Prepared& p) {
       run_block(world, {.lanes = 3}, [&](const CpuLane& lane) {
         const int skip[] = {1};
         heap_view(world).wait_until_any(lane.thread(), span_of(p.numbers), Comparison::equal, 8,
                                         Span<const int>(skip, lane.index() == 0));
       });
     },
     "wait_until_any of lane 0 of block 0 and 2 more (rank 0, flag 68 == 8, sees 0)"},
    {"barrier", [](World& world, Prepared&) { world.barrier(); }, "barrier (rank 1, flag 0 >= "},
    {"sync", [](World& world, Prepared&) { world.sync(); }, "sync (rank 1, flag 0 >= "},
    {"broadcast",
     [](World& world, Prepared&) {
       int data = 0;
       world.broadcast(&data, sizeof data, 1);
     },
     "broadcast (rank 1, flag 0 >= "},
    {"all_gather", [](World& world, Prepared&) { world.all_gather(1); }, "all_gather (rank 1, flag 0 >= "},
    {"allocate", [](World& world, Prepared&) { world.allocate<int>(5); }, "allocate (rank 1, flag 0 >= "},
    {"free", [](World& world, Prepared& p) { world.free(std::move(p.numbers)); }, "free (rank 1, flag 0 >= "},
    {"more_words", [](World& world, Prepared&) { world.shared_flags(2, "more"); }, "shared_flags (rank 1, flag 0 >= "},
    {"split", [](World& world, Prepared&) { world.team().split_strided({.count = 2}); }, "split (rank 1, flag 0 >= "},
    {"split_2d", [](World& world, Prepared&) { world.team().split_2d(2); }, "split (rank 1, flag 0 >= "},
    {"team_barrier", [](World&, Prepared& p) { p.pair.barrier(); }, "barrier (rank 2, flag 3 >= "},
    {"team_split", [](World&, Prepared& p) { p.pair.split_2d(1); }, "split (rank 2, flag 3 >= "},
};
INSTANTIATE_TEST_SUITE_P(All, EveryWait, ::testing::Combine(everywhere, ::testing::ValuesIn(wait_kinds)),
                         [](const ::testing::TestParamInfo<std::tuple<On, WaitKind>>& info) {
                           return fmt::format("{}_{}", name_of(std::get<0>(info.param)), std::get<1>(info.param).name);
                         });

TEST_P(EveryWait, ends_at_its_deadline_and_says_all) {
  const auto& [on, kind] = GetParam();
  const auto program = [&kind = kind](World& world) {
    auto signals = world.allocate<std::uint64_t>(1);
    auto numbers = world.allocate<int>(2);
    SharedFlags words = world.shared_flags(2, "steps");
    std::optional<Team> pair = world.team().split_strided({.first = 0, .stride = 2, .count = 2});
    if (world.rank() == 0) {
      *signals.local() = 3;
      *numbers.local() = -5;
      for (const Rank peer : {1, 2}) see_waiting(world, peer, "company");
      world.set_timeout_ns(short_ns);
      Prepared prepared{std::move(signals), std::move(numbers), *pair, std::move(words)};
      kind.wait(world, prepared);
    }
    world.wait_until([] { return false; }, "company");
  };
  const Failures failures(on, {.ranks = 3}, program);
  // The first one that rank 0 misses is on its own host, or the last one, which it speaks for where none share memory.
  std::string awaited = kind.says;
  if (const std::size_t at = awaited.find("(rank 1, flag 0 >= ");
      (on == On::dealt || on == On::messaged) && at != std::string::npos)
    awaited.replace(at, 7, "(rank 2");
  ASSERT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                   {"rank 0 waited ", fmt::format(" s for {}", awaited), "(from failure_test.cpp:",
                    "; rank 1 waiting for company for ", "; rank 2 waiting for company for "}));
  const std::string message = failures.of_rank[0]->message();
  if (message.find(" >= ") != std::string::npos) EXPECT_TRUE(misses_by_one(message)) << message;
  for (const std::size_t r : {1, 2})
    EXPECT_TRUE(says(failures.of_rank[r], ErrorCode::peer_lost, {"rank 0 failed: rank 0 waited", awaited}));
}

// Messages name ten of the other ranks, those that are awaited first, and say how many more there are.
void expect_ten_others(const std::optional<Error>& error, const std::string& first, int more) {
  ASSERT_TRUE(says(error, ErrorCode::timeout, {first, fmt::format("; and {} more", more)}));
  const std::string& text = error->message();
  int listed = 0;
  for (std::size_t at = 0; (at = text.find(" waiting for company ", at)) != std::string::npos; ++at) ++listed;
  EXPECT_EQ(listed, 10) << text;
  EXPECT_LT(text.find(first), text.find("; rank 1 ")) << text;
}

TEST(Timeout, lists_ten_ranks_and_a_count) {
  constexpr int ranks = 30;
  const auto after_others = [&](auto&& does) {
    return Failures(On::threads, {.ranks = ranks}, [&](World& world) {
      const auto flags = world.allocate<std::uint64_t>(1);
      if (world.rank() == 0) {
        for (Rank peer = 1; peer < ranks; ++peer) see_waiting(world, peer, "company");
        world.set_timeout_ns(short_ns);
        does(world, flags);
      }
      world.wait_until([] { return false; }, "company");
    });
  };
  const Failures waits = after_others([](World& world, const Symmetric<std::uint64_t>& flags) {
    world.context().signal_wait(flags, Comparison::equal, 1, 20);
  });
  expect_ten_others(waits.of_rank[0], "; rank 20 waiting for company", ranks - 11);
  const Failures polls = after_others([](World& world, const Symmetric<std::uint64_t>& flags) {
    while (world.context().g(flags, 25) == 0) RealSync::pause();
  });
  expect_ten_others(polls.of_rank[0], "; rank 25 waiting for company", ranks - 11);
}

// Loops that poll, by rank 0 of three. What they look for never comes.

constexpr Index many_flags = 4096;

struct PollKind {
  const char* name;
  void (*poll)(World&, Symmetric<std::uint64_t>);  ///< for ever
  const char* says;
};
void PrintTo(const PollKind& kind, std::ostream* out) {
  *out << kind.name;
}
const PollKind poll_kinds[] = {
    {"test",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (!world.context().test(flags, Comparison::equal, 1)) RealSync::pause();
     },
     "test (rank 0, flag 0 == 1, sees 0)"},
    {"test_all",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (!world.context().test_all(flags, Comparison::equal, 0)) RealSync::pause();
     },
     "test_all (rank 0, flag 8 == 0, sees 5)"},
    {"test_any",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().test_any(flags, Comparison::greater, 7) < 0) RealSync::pause();
     },
     "test_any (rank 0, flag 0 > 7, sees 0)"},
    {"test_some",
     [](World& world, Symmetric<std::uint64_t> flags) {
       Index places[2];
       while (world.context().test_some(flags, places, Comparison::greater, 7) == 0) RealSync::pause();
     },
     "test_some (rank 0, flag 0 > 7, sees 0)"},
    {"two_tests",
     [](World& world, Symmetric<std::uint64_t> flags) {
       Context& rma = world.context();
       while (!rma.test(flags, Comparison::equal, 1) && !rma.test(flags.from(1), Comparison::equal, 1)) {
       }
     },
     "test (rank 0, flag "},
    {"signal_fetch",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().signal_fetch(flags.from(1)) == 5) RealSync::pause();
     },
     "signal_fetch (rank 0, flag 8, sees 5)"},
    {"g",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().g(flags, 1) == 0) RealSync::pause();
     },
     "g (rank 1, flag 0, sees 0)"},
    {"two_g",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().g(flags, 1) == 0 || world.context().g(flags, 2) == 0) RealSync::pause();
     },
     "g (rank "},
    {"get",
     [](World& world, Symmetric<std::uint64_t> flags) {
       for (std::vector<std::uint64_t> seen(2); seen[0] == 0;) world.context().get(seen, flags, 1);
     },
     "get (rank 1, flag 0)"},
    {"get_of_many",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const auto many = Symmetric<std::uint64_t>::at(flags.local(), many_flags);
       for (std::vector<std::uint64_t> seen(many_flags); seen.back() == 0;) world.context().get(seen, many, 1);
     },
     "get (rank 1, flag 0)"},
    {"get_of_a_box",
     [](World& world, Symmetric<std::uint64_t> flags) {
       std::vector<std::uint64_t> seen(16);
       const StridedView from{.data = flags.local(), .type = ElementType::u64, .extents = {8}, .strides = {4}},
           backwards{.data = &seen[14], .type = ElementType::u64, .extents = {8}, .strides = {-2}};
       while (seen[0] == 0) world.context().get(backwards, from, 1);
     },
     "get (rank 1, flag 0)"},
    {"fetch",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().fetch(flags.from(1), 2) == 0) RealSync::pause();
     },
     "fetch (rank 2, flag 8, sees 0)"},
    {"compare_swap",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().compare_swap(flags.from(1), 1, 2, 0) != 1) RealSync::pause();
     },
     "compare_swap (rank 0, flag 8, sees 5)"},
    {"swap",
     [](World& world, Symmetric<std::uint64_t> flags) {
       while (world.context().swap(flags.from(1), 5, 0) == 5) RealSync::pause();
     },
     "swap (rank 0, flag 8, sees 5)"},
    {"fetch_nbi",
     [](World& world, Symmetric<std::uint64_t> flags) {
       for (std::uint64_t seen = 0; seen == 0; world.context().quiet()) world.context().fetch_nbi(seen, flags, 1);
     },
     "fetch (rank 1, flag 0, sees 0)"},
    {"another_context",
     [](World& world, Symmetric<std::uint64_t> flags) {
       Context mine(world);
       while (!mine.test(flags, Comparison::equal, 1)) RealSync::pause();
     },
     "test (rank 0, flag 0 == 1, sees 0)"},
    {"kernel",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
         while (heap.g(lane.thread(), flags.local(), 1) == 0) RealSync::pause();
       });
     },
     "g (rank 1, flag 0, sees 0)"},
    {"kernel_get",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
         std::uint64_t seen = 0;
         while (seen == 0) heap.get(lane.thread(), Span(&seen, 1), Span<const std::uint64_t>(flags.local(), 1), 1);
       });
     },
     "get (rank 1, flag 0)"},
    {"kernel_get_nbi_of_many",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       std::vector<std::uint64_t> seen(64);
       run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
         while (seen[0] == 0) {
           heap.get_nbi(lane.block(), Span(seen.data(), Index(64)), Span<const std::uint64_t>(flags.local(), Index(64)),
                        1);
           heap.quiet(lane.block());
         }
       });
     },
     " (rank 1, flag 0)"},
    {"kernel_get_of_a_box",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       std::vector<std::uint64_t> seen(16);
       const StridedSpan<std::uint64_t> backwards{.data = &seen[14], .dims = 1, .extents = {8}, .strides = {-2}};
       const StridedSpan<const std::uint64_t> from{.data = flags.local(), .dims = 1, .extents = {8}, .strides = {4}};
       run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
         while (seen[0] == 0) heap.get(lane.warp(), backwards, from, 1);
       });
     },
     "get (rank 1, flag 0)"},
    {"kernel_test",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
         while (!heap.test(lane.warp(), flags.local(), Comparison::greater, 1)) RealSync::pause();
       });
     },
     "test (rank 0, flag 0 > 1, sees 0)"},
    {"kernel_test_some",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       int places[2];
       run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
         while (heap.test_some(lane.block(), span_of(flags), Span(places, 2), Comparison::equal, 9) == 0)
           RealSync::pause();
       });
     },
     "test_some (rank 0, flag 0 == 9, sees 0)"},
    {"kernel_fetch_nbi",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       std::uint64_t seen = 0;
       run_block(world, {.lanes = 2}, [&](const CpuLane& lane) {
         while (seen == 0) {
           heap.fetch_nbi(lane.block(), &seen, flags.local(), 2);
           heap.quiet(lane.block());
         }
       });
     },
     "rank 2, flag 0, sees 0)"},
    {"kernel_signal_fetch",
     [](World& world, Symmetric<std::uint64_t> flags) {
       const HeapView heap = heap_view(world);
       run_block(world, {.lanes = 1}, [&](const CpuLane& lane) {
         while (heap.signal_fetch(lane.thread(), flags.local()) == 0) RealSync::pause();
       });
     },
     "signal_fetch (rank 0, flag 0"},
};

class EveryPoll : public ::testing::TestWithParam<std::tuple<On, PollKind>> {
 public:
  /// Rank 0 polls with this timeout; rank 2 does `f(world)`.
  template <class F>
  Failures poll(std::int64_t timeout_ns, F&& f) const {
    const auto& [on, kind] = GetParam();
    return Failures(on, {.ranks = 3}, [&, &kind = kind](World& world) {
      const auto memory = world.allocate<std::uint64_t>(many_flags);
      const Symmetric<std::uint64_t> flags = memory.slice(0, 2);
      if (world.rank() == 0) flags[1] = 5;
      world.barrier();
      if (world.rank() == 0) {
        for (const Rank peer : {1, 2})
          if (timeout_ns < INT64_MAX) see_waiting(world, peer, "company");
        world.set_timeout_ns(timeout_ns);
        kind.poll(world, flags);
      }
      if (world.rank() == 2) f(world);
      world.wait_until([] { return false; }, "company");
    });
  }
};
INSTANTIATE_TEST_SUITE_P(All, EveryPoll, ::testing::Combine(everywhere, ::testing::ValuesIn(poll_kinds)),
                         [](const ::testing::TestParamInfo<std::tuple<On, PollKind>>& info) {
                           return fmt::format("{}_{}", name_of(std::get<0>(info.param)), std::get<1>(info.param).name);
                         });

TEST_P(EveryPoll, ends_when_a_rank_has_failed) {
  const auto fails = [](World&) { throw Error(ErrorCode::io, "disk gone"); };
  const Failures failures = poll(INT64_MAX, fails);
  // A poll of another host waits for its answer.
  const bool waits = are_apart(std::get<0>(GetParam()));
  EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::peer_lost,
                   {waits ? "rank 2 failed: disk gone" : "rank 2 failed: disk gone; rank 0 polls ",
                    waits ? "" : std::get<1>(GetParam()).says, waits ? "" : " (from failure_test.cpp:"}));
  EXPECT_TRUE(says(failures.thrown, ErrorCode::io, {"disk gone"}));
}

TEST_P(EveryPoll, ends_at_its_deadline_when_nothing_else_happens) {
  const Failures failures = poll(short_ns, [](World&) {});
  EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                   {"rank 0 has seen nothing new for ", std::get<1>(GetParam()).says,
                    " (from failure_test.cpp:", "; rank 1 waiting for company", "; rank 2 waiting for company"}));
}

TEST_P(TimeoutOn, is_not_of_ranks_that_do_something_between_their_polls) {
  // Each of them lasts longer than the timeout, and looks for what does not come.
  const auto program = [&](World& world) {
    Context& rma = world.context();
    const auto flags = world.allocate<std::uint64_t>(64);
    // A rank that gets no core for so long has done nothing meanwhile; of two that are apart, one is enough.
    const std::int64_t timeout_ns = is_simulated(GetParam()) ? 60'000'000'000
                                    : are_apart(GetParam())  ? 400'000'000
                                                             : 100'000'000;
    world.set_timeout_ns(timeout_ns);
    if (world.rank() == 1) return;
    const auto beyond_it = [&](auto f) {
      const auto begin = std::chrono::steady_clock::now();
      const auto is_long = [&](int i) {
        if (is_simulated(GetParam())) return i == 300;
        return i % 64 == 0 && std::chrono::steady_clock::now() - begin > std::chrono::nanoseconds(timeout_ns * 5 / 4);
      };
      for (int i = 0; !is_long(i); ++i) f(i);
    };
    beyond_it([&](int) {  // puts
      rma.p(flags.from(1), 1, 1);
      rma.quiet();
      (void)rma.g(flags, 1);
    });
    beyond_it([&](int) { (void)rma.fetch_inc(flags.from(2), 1); });  // new values
    beyond_it([&](int i) { (void)rma.g(flags.from(i % 64), 1); });   // other places
  };
  run(2, program, [](const Failures& failures) { EXPECT_FALSE(failures.thrown) << failures.thrown->message(); });
}

TEST(Timeout, is_not_of_tests_that_see_a_flag_rise) {
  const auto look_often = [](World& world, int steps_per_value) {
    WaitNote note("test");
    note.flag_rank = note.flag_index = 0;
    note.wants(Comparison::greater_equal, 1'000'000);
    for (int i = 0; i < 20'000; ++i) {
      note.sees(i / steps_per_value);
      world.look(note);
    }
  };
  EXPECT_NO_THROW(launch({.ranks = 1, .timeout_ns = 1}, [&](World& world) { look_often(world, 1); }));
  EXPECT_THROW(launch({.ranks = 1, .timeout_ns = 1}, [&](World& world) { look_often(world, 1000); }), Error);
}

TEST(Timeout, is_of_polls_that_many_lanes_make_together) {
  const Failures failures(On::threads, {.ranks = 1}, [](World& world) {
    const auto flags = world.allocate<std::uint64_t>(2);
    world.set_timeout_ns(short_ns);
    const HeapView heap = heap_view(world);
    run_block(world, {.lanes = 64}, [&](const CpuLane& lane) {
      while (!heap.test(lane.block(), flags.local(), Comparison::greater, 2)) RealSync::pause();
    });
  });
  EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                   {"rank 0 has seen nothing new for ", "test (rank 0, flag 0 > 2, sees 0)"}));
}

TEST(Timeout, is_of_lanes_that_compute_between_their_polls) {
  const Failures failures(On::threads, {.ranks = 1}, [](World& world) {
    const auto flags = world.allocate<std::uint64_t>(1);
    world.set_timeout_ns(short_ns);
    const HeapView heap = heap_view(world);
    run_block(world, {.lanes = 4}, [&](const CpuLane& lane) {
      volatile double sum = 0;
      while (!heap.test(lane.block(), flags.local(), Comparison::greater, 2))
        for (int i = 0; i < 1000; ++i) sum = sum + i;
    });
  });
  EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout, {"rank 0 has seen nothing new for "}));
}

// Whatever a rank does between its polls, what counts is that nothing has changed there.
TEST_P(TimeoutOn, is_of_ranks_that_pause_or_compute_between_their_polls) {
  if (is_simulated(GetParam())) GTEST_SKIP() << "there, time stands still while a rank pauses";
  for (const int pauses : {100, 1000})
    for (const int additions : {0, 1000, 100'000}) {
      const auto program = [&](World& world) {
        const auto flags = world.allocate<std::uint64_t>(1);
        world.set_timeout_ns(short_ns);
        volatile double sum = 0;
        while (!world.context().test(flags, Comparison::equal, 1)) {
          for (int i = 0; i < pauses; ++i) RealSync::pause();
          for (int i = 0; i < additions; ++i) sum = sum + i;
        }
      };
      run(1, program, [](const Failures& failures) {
        EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                         {"rank 0 has seen nothing new for ", "test (rank 0, flag 0 == 1, sees 0)"}));
      });
    }
}

// Rank 1 raises the word as often as rank 0 looks, and both take many times the timeout in all.
TEST(Timeout, is_not_of_ranks_that_compute_while_the_place_changes) {
  const auto program = [](World& world) {
    const auto words = world.allocate<std::uint64_t>(2);
    Context& rma = world.context();
    volatile double sum = 0;
    const std::int64_t until_ns = now_ns() + 3 * short_ns;
    if (world.rank() == 0) world.set_timeout_ns(short_ns);
    for (std::uint64_t step = 1; now_ns() < until_ns || step < 100; ++step) {
      if (world.rank() == 0) {
        for (int i = 0; i < 10'000; ++i) sum = sum + i;
        words[0] = step;
        (void)rma.test(words.from(0), Comparison::equal, 0);
      }
    }
  };
  const Failures failures(On::threads, {.ranks = 1}, program);
  EXPECT_FALSE(failures.thrown) << failures.thrown->message();
}

// Something changes there, though neither at the start nor at the end.
TEST(Timeout, is_not_of_a_get_whose_values_change) {
  const auto get_often = [](Index changing, Index count) {
    launch({.ranks = 1, .timeout_ns = 1}, [&](World& world) {
      const auto flags = world.allocate<std::uint64_t>(count);
      std::vector<std::uint64_t> seen(std::size_t(count), 0);
      const auto n = [&](const void* data, Index stride) {
        return StridedView{
            .data = const_cast<void*>(data), .type = ElementType::u64, .extents = {count}, .strides = {stride}};
      };
      for (int i = 0; i < 20'000; ++i) {
        if (changing >= 0) flags[changing] += std::uint64_t(1) << 50;
        world.context().get(seen, flags, 0);
        if (changing >= 0) flags[changing] += std::uint64_t(1) << 50;
        world.context().get(n(seen.data(), 1), n(flags.local(), 1), 0);
      }
    });
  };
  EXPECT_NO_THROW(get_often(400, 1000));
  EXPECT_NO_THROW(get_often(-1, 10'000));  // too much to be looked for
  EXPECT_THROW(get_often(-1, 1000), Error);
}

TEST_P(FailingOn, what_came_before_a_failure_is_found_by_polls) {
  const auto program = [](World& world) {
    Context& rma = world.context();
    const auto flag = world.allocate<std::uint64_t>(1);
    world.set_timeout_ns(INT64_MAX);
    if (world.rank() == 1) {
      rma.p(flag, 1, 0);
      rma.p(flag, 1, 2);
      rma.quiet();
      // A rank that is still in the allocation may fail with this one.
      world.wait_until([&] { return world.has_ended(2); }, "rank 2", Deadline::never());
      throw Error(ErrorCode::io, "disk gone");
    }
    if (world.rank() == 0) {
      world.wait_until([&] { return world.has_ended(1); }, "the failure", Deadline::never());
      while (!rma.test(flag, Comparison::equal, 1)) {
      }
      while (rma.g(flag, 2) == 0) {
      }
    }
  };
  run(3, program,
      [](const Failures& failures) { EXPECT_FALSE(failures.of_rank[2]) << failures.of_rank[2]->message(); });
}

TEST_P(TimeoutOn, says_in_which_call_the_missing_rank_is) {
  // Ranks 0 to 2 are at a barrier of a team, for the 17th time; rank 3 allocates.
  const auto program = [](World& world) {
    std::optional<Team> all = world.team().split_strided({.count = 4});
    for (int i = 0; i < 16; ++i) all->barrier();
    if (world.rank() == 3) {
      world.allocate<int>(1);
    } else {
      if (world.rank() == 0) {
        for (const Rank peer : {1, 2}) see_waiting(world, peer, "barrier");
        see_waiting(world, 3, "allocate");
        world.set_timeout_ns(short_ns);
      }
      all->barrier();
    }
  };
  run(4, program, [this](const Failures& failures) {
    if (are_apart(GetParam())) {  // rank 0 waits for its own host, or for the rank that leads the other one
      EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                       {"s for barrier (rank ", "; rank 3 waiting for allocate (rank "}));
      return;
    }
    if (GetParam() == On::messaged || GetParam() == On::hosts) {  // by way of rank 2, which misses rank 3
      EXPECT_TRUE(
          says(failures.of_rank[0], ErrorCode::timeout,
               {"s for barrier (rank 2, flag 3 >= ", "; rank 2 should raise it)",
                "; in a circle: 3 waits on 2 waits on 3", "; rank 3 waiting for allocate (rank 2, flag 0 >= "}));
      return;
    }
    EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                     {"s for barrier (rank 3, flag 3 >= ", "; rank 3 should raise it)",
                      "; in a circle: 0 waits on 3 waits on 0", "; rank 3 waiting for allocate (rank 0, flag 0 >= "}));
    EXPECT_TRUE(misses_by_one(failures.of_rank[0]->message())) << failures.of_rank[0]->message();
  });
}

TEST_P(TimeoutOn, says_which_call_a_rank_that_computes_has_made_last) {
  if (is_simulated(GetParam())) GTEST_SKIP() << "there, time stands still while a rank computes";
  const auto program = [](World& world) {
    world.barrier();
    if (world.rank() == 0) world.set_timeout_ns(short_ns);
    if (world.rank() != 2) world.barrier();
    while (attempt([&] { world.check_failed(); }).ok()) RealSync::yield();
  };
  run(3, program, [](const Failures& failures) {
    EXPECT_TRUE(says(failures.of_rank[0], ErrorCode::timeout,
                     {"s for barrier (rank 2, flag 0 >= 2, sees 1; rank 2 should raise it)",
                      "; rank 2 running since barrier (collective call 1)"}));
  });
}

TEST_P(TimeoutOn, may_be_off) {
  // Nobody gives up; the failure of another rank ends the waits all the same.
  const auto program = [](World& world) {
    world.set_timeout_ns(INT64_MAX);
    const auto signal = world.allocate<std::uint64_t>(1);
    if (world.rank() == 2) {
      see_waiting(world, 0, "signal_wait");
      see_waiting(world, 1, "barrier");
      throw Error(ErrorCode::io, "disk gone");
    }
    if (world.rank() == 0) world.context().signal_wait(signal, Comparison::equal, 1);
    world.barrier();
  };
  run(3, program, [](const Failures& failures) {
    for (const std::size_t r : {0, 1})
      EXPECT_TRUE(says(failures.of_rank[r], ErrorCode::peer_lost, {"rank 2 failed: disk gone"}));
    EXPECT_TRUE(says(failures.thrown, ErrorCode::io, {"disk gone"}));
  });
}

TEST(Timeout, takes_the_deadline_of_the_call) {
  const Failures failures(On::threads, {.ranks = 2}, [&](World& world) {
    const SharedFlags words = world.shared_flags(1, "never");
    if (world.rank() == 0) world.wait(words, 0, 0, 1, "a word", Deadline::after_ns(1'000'000));
    if (world.rank() == 1) world.wait_until([] { return false; }, "company", Deadline::never());
  });
  EXPECT_TRUE(says(failures.thrown, ErrorCode::timeout, {"a word"}));
  EXPECT_EQ(failures.thrown->rank, 0);
}

TEST(Timeout, passed_deadlines_do_not_matter_to_what_is_there) {
  launch(1, [](World& world) {
    const SharedFlags words = world.shared_flags(1, "there");
    words.store(0, 0, 5);
    world.wait(words, 0, 0, 5, "a word", Deadline::after_ns(-1));
    int calls = 0;
    world.wait_until([&] { return ++calls == 2; }, "the second look", Deadline::after_ns(-1));
    EXPECT_EQ(calls, 2);
  });
}

// Collective calls that differ.

struct Difference {
  const char* name;
  void (*usual)(Team&);
  void (*other)(Team&);
  const char* usual_text;
  const char* other_text;
};
void PrintTo(const Difference& difference, std::ostream* out) {
  *out << difference.name;
}
template <std::size_t bytes>
void gather(Team& team) {
  char mine[bytes] = {};
  std::vector<char> all(bytes * std::size_t(team.size()));
  team.all_gather(mine, bytes, all.data());
}
template <int root>
void broadcast(Team& team) {
  int data = 0;
  team.broadcast(&data, sizeof data, root);
}
template <class T, int count, std::size_t alignment = 64>
void allocate(Team& team) {
  team.world().allocate<T>(count, {.bytes = alignment});
}
template <int block>
void free_block(Team& team) {
  World& world = team.world();
  std::vector<SymmetricArray<int>> two;
  for (int i = 0; i < 2; ++i) two.push_back(world.allocate<int>(1));
  world.free(std::move(two[block]));
}

// The world's own, and those that any team has.
const Difference world_differences[] = {
    {"size", allocate<double, 10>, allocate<double, 11>, "allocate of 80 bytes of f64", "allocate of 88 bytes of f64"},
    {"type", allocate<double, 8>, allocate<std::int64_t, 8>, "allocate of 64 bytes of f64",
     "allocate of 64 bytes of i64"},
    {"alignment", allocate<double, 8, 128>, allocate<double, 8, 256>, "allocate of 64 bytes of f64, aligned to 128",
     "allocate of 64 bytes of f64, aligned to 256"},
    {"words", [](Team& team) { team.world().shared_flags(4, "flags"); },
     [](Team& team) { team.world().shared_flags(5, "flags"); }, "shared_flags, 4 per rank", "shared_flags, 5 per rank"},
    {"block", free_block<0>, free_block<1>, "free of block 1", "free of block 2"},
    {"kind_of_allocation", [](Team& team) { team.world().shared_flags(8, "flags"); }, allocate<std::uint64_t, 8>,
     "shared_flags, 8 per rank", "allocate of 64 bytes of u64"},
};
const Difference team_differences[] = {
    {"kind", [](Team& team) { team.barrier(); }, [](Team& team) { team.sync(); }, "barrier", "sync"},
    {"order", [](Team& team) { team.barrier(), gather<8>(team); }, [](Team& team) { gather<8>(team), team.barrier(); },
     "barrier", "all_gather of 8 bytes"},
    {"bytes", gather<16>, gather<12>, "all_gather of 16 bytes", "all_gather of 12 bytes"},
    {"many_bytes", gather<10000>, gather<12>, "all_gather of 10000 bytes", "all_gather of 12 bytes"},
    {"root", broadcast<0>, broadcast<1>, "broadcast of 4 bytes from 0", "broadcast of 4 bytes from 1"},
    {"members", [](Team& team) { team.split_strided({.count = 1}); },
     [](Team& team) { team.split_strided({.first = 1, .count = 1}); }, "split of 1 member from 0, 1 apart",
     "split of 1 member from 1, 1 apart"},
    {"list",
     [](Team& team) {
       team.split_listed({1, 0});
     },
     [](Team& team) { team.split_2d(1); }, "split by a list", "split in rows of 1"},
    {"rows", [](Team& team) { team.split_2d(2); }, [](Team& team) { team.split_2d(1); }, "split in rows of 2",
     "split in rows of 1"},
};

class Differences : public ::testing::TestWithParam<std::tuple<On, Difference>> {};
const auto name_difference = [](const ::testing::TestParamInfo<std::tuple<On, Difference>>& info) {
  return fmt::format("{}_{}", name_of(std::get<0>(info.param)), std::get<1>(info.param).name);
};
INSTANTIATE_TEST_SUITE_P(World, Differences, ::testing::Combine(everywhere, ::testing::ValuesIn(world_differences)),
                         name_difference);
INSTANTIATE_TEST_SUITE_P(Team, Differences, ::testing::Combine(everywhere, ::testing::ValuesIn(team_differences)),
                         name_difference);

void expect_both_sides(const Failures& failures, const Difference& what, const std::vector<Rank>& members, Rank odd) {
  const Rank first = members.front();
  // The first member and the first that differs from it speak for both sides.
  const Rank other = odd == first ? members[1] : odd;
  const auto text = [&](Rank r) { return r == odd ? what.other_text : what.usual_text; };
  for (const Rank r : members)
    EXPECT_TRUE(says(failures.of_rank[std::size_t(r)], ErrorCode::mismatch,
                     {"collective call ", fmt::format(" differs: rank {} makes {}", first, text(first)),
                      fmt::format(", rank {} {}", other, text(other)), fmt::format(" (rank {})", r)}))
        << "odd is " << odd;
  // Both places.
  const std::string message = failures.of_rank[std::size_t(first)]->message();
  const std::size_t at = message.find("failure_test.cpp:");
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_NE(message.find("failure_test.cpp:", at + 1), std::string::npos) << message;
}

TEST_P(Differences, are_reported_by_all_whoever_is_the_odd_one) {
  const auto& [on, what] = GetParam();
  for (const int ranks : {2, 3, 4})
    for (Rank odd = 0; odd < ranks; ++odd) {
      const Failures failures(on, {.ranks = ranks}, [odd, &what = what](World& world) {
        (world.rank() == odd ? what.other : what.usual)(world.team());
      });
      std::vector<Rank> everyone;
      for (Rank r = 0; r < ranks; ++r) everyone.push_back(r);
      expect_both_sides(failures, what, everyone, odd);
      EXPECT_TRUE(says(failures.thrown, ErrorCode::mismatch, {"differs"}));
    }
}

class TeamDifferences : public Differences {};
INSTANTIATE_TEST_SUITE_P(All, TeamDifferences, ::testing::Combine(everywhere, ::testing::ValuesIn(team_differences)),
                         name_difference);

TEST_P(TeamDifferences, are_reported_by_the_members_and_reach_the_others) {
  const auto& [on, what] = GetParam();
  const std::vector<Rank> members = {1, 3, 5};
  for (const Rank odd : members) {
    const Failures failures(on, {.ranks = 6}, [odd, &what = what](World& world) {
      std::optional<Team> team = world.team().split_strided({.first = 1, .stride = 2, .count = 3});
      if (team) (world.rank() == odd ? what.other : what.usual)(*team);
      world.barrier();
    });
    expect_both_sides(failures, what, members, odd);
    for (const std::size_t r : {0, 2, 4})
      EXPECT_TRUE(says(failures.of_rank[r], ErrorCode::peer_lost, {" failed: collective call ", "differs"}));
  }
}

// Destructors are not collective.

class LettingGo : public FailingOn {};
INSTANTIATE_TEST_SUITE_P(All, LettingGo, everywhere, names);

TEST_P(LettingGo, in_any_order_frees_at_the_next_allocation) {
  run_on(GetParam(), 4, [](World& world) {
    const HeapUsage before = world.heap_usage();
    for (int round = 0; round < 5; ++round) {
      // More than are told to the others at a time.
      std::vector<SymmetricArray<int>> many;
      for (int i = 0; i < 50; ++i) many.push_back(world.allocate<int>(i + 1));
      std::rotate(many.begin(), many.begin() + 7 * world.rank(), many.end());
      if (world.rank() % 2 == 0) std::reverse(many.begin(), many.end());
      while (!many.empty()) many.pop_back();
      for (int i = 0; i < 2; ++i) world.allocate<int>(0);
      require(world.heap_usage().used_bytes == before.used_bytes && world.heap_usage().blocks == before.blocks,
              "round {}: {} bytes in {} blocks are in use, {} in {} were", round, world.heap_usage().used_bytes,
              world.heap_usage().blocks, before.used_bytes, before.blocks);
    }
  });
}

TEST_P(LettingGo, during_unwinding_waits_for_nobody) {
  run_on(GetParam(), 3, [](World& world) {
    const HeapUsage before = world.heap_usage();
    for (Rank thrower = 0; thrower < 3; ++thrower) {
      const auto kept = world.allocate<double>(10);
      try {
        const auto a = world.allocate<double>(100);
        SharedFlags words = world.shared_flags(3, "steps");
        const auto b = world.allocate<int>(7);
        if (world.rank() == thrower) throw std::runtime_error("a fault of its own");
        world.context().p(kept.from(world.rank()), 1.0, thrower);
      } catch (const std::runtime_error&) {
      }
      world.allocate<int>(0);
      require(world.heap_usage().blocks == before.blocks + 1, "{} blocks", world.heap_usage().blocks);
    }
    world.allocate<int>(0);
    require(world.heap_usage().used_bytes == before.used_bytes, "{} bytes", world.heap_usage().used_bytes);
  });
}

TEST_P(LettingGo, after_a_failure_hangs_nobody) {
  // All that ranks hold is released while they unwind, at different places.
  const auto program = [](World& world) {
    const auto a = world.allocate<int>(100);
    std::optional<Team> team = world.team().split_strided({.count = 3});
    const SharedFlags words = world.shared_flags(1, "steps");
    Context mine(world);
    const std::vector<int> source(100, 1);
    mine.put_nbi(a, source, (world.rank() + 1) % 3);
    if (world.rank() == 1) throw Error(ErrorCode::io, "disk gone");
    const auto b = world.allocate<int>(1);
    world.barrier();
  };
  run(3, program, [](const Failures& failures) {
    EXPECT_TRUE(says(failures.thrown, ErrorCode::io, {"disk gone"}));
    for (const std::size_t r : {0, 2})
      EXPECT_TRUE(says(failures.of_rank[r], ErrorCode::peer_lost, {"rank 1 failed: disk gone"}));
  });
}

// Heaps that are full.

class FullHeap : public FailingOn {};
INSTANTIATE_TEST_SUITE_P(All, FullHeap, everywhere, names);

TEST_P(FullHeap, names_both_numbers_on_every_rank_and_leaves_a_world_that_works) {
  run_on(GetParam(), {.ranks = 3, .heap_bytes = std::size_t(1) << 20}, [](World& world) {
    for (int round = 0; round < 3; ++round) {
      const auto some = world.allocate<char>(600'000);
      require_says(error_of_rank([&] { world.allocate<char>(600'000); }), ErrorCode::no_memory,
                   {"the symmetric heap of 1048576 bytes per rank has no room for 600000: ", " are in use, ",
                    fmt::format("(rank {}, failure_test.cpp:", world.rank()).c_str()});
      require_says(error_of_rank([&] { world.shared_flags(1 << 20, "steps"); }), ErrorCode::no_memory,
                   {"1048576 bytes per rank has no room for 67108864"});
      const auto less = world.allocate<int>(1000);
      world.context().put(less, std::vector<int>(1000, round), (world.rank() + 1) % 3);
      world.barrier();
      require(less[999] == round, "{}", less[999]);
    }
  });
}

// What reaches the others.

class FailingWorlds : public OnRanks {
 public:
  template <class F>
  Failures fail(F&& f) const {
    return Failures(on(), {.ranks = ranks()}, f);
  }
};
INSTANTIATE_TEST_SUITE_P(All, FailingWorlds, ::testing::Combine(everywhere, ::testing::Values(2, 3, 4, 8)),
                         OnRanks::name);
INSTANTIATE_TEST_SUITE_P(Many, FailingWorlds,
                         ::testing::Combine(::testing::Values(On::threads), ::testing::Values(16, 64)), OnRanks::name);

TEST_P(FailingWorlds, fail_with_the_name_of_the_rank_that_threw) {
  const int n = ranks();
  const Rank culprit = n / 2;
  const Failures failures = fail([&](World& world) {
    world.barrier();
    if (world.rank() == culprit) throw Error(ErrorCode::bad_file, "part 7 is short: needs 64 bytes, has 12");
    world.barrier();
  });
  EXPECT_TRUE(says(failures.thrown, ErrorCode::bad_file, {"part 7 is short: needs 64 bytes, has 12"}));
  EXPECT_EQ(failures.thrown->rank, culprit);
  for (Rank r = 0; r < n; ++r) {
    if (r == culprit) continue;
    const std::optional<Error>& error = failures.of_rank[std::size_t(r)];
    ASSERT_TRUE(says(error, ErrorCode::peer_lost,
                     {fmt::format("rank {} failed: part 7 is short: needs 64 bytes, has 12", culprit)}));
    EXPECT_EQ(error->rank, r);
    EXPECT_EQ(error->peer, culprit);
  }
}

TEST_P(FailingWorlds, fail_when_a_rank_leaves_early) {
  const Rank leaver = ranks() - 1;
  const Failures failures = fail([&](World& world) {
    world.barrier();
    if (world.rank() != leaver) world.barrier();
  });
  EXPECT_TRUE(says(failures.thrown, ErrorCode::peer_lost,
                   {fmt::format("rank {} has finished, but rank ", leaver), "waits for barrier", ">= 2, sees 1",
                    "failure_test.cpp:"}));
  for (Rank r = 0; r < leaver; ++r) EXPECT_TRUE(failures.of_rank[std::size_t(r)]) << r;
  EXPECT_FALSE(failures.of_rank[std::size_t(leaver)]);
}

TEST(Failing, misuse_is_refused_before_anything_happens) {
  for (int ranks : {0, -3}) {
    const auto refused = attempt([&] { launch(ranks, [](World&) { ADD_FAILURE() << "ran"; }); });
    ASSERT_FALSE(refused.ok());
    EXPECT_TRUE(says(refused.error(), ErrorCode::invalid_use, {"needs at least 1 rank", std::to_string(ranks)}));
  }
  launch(2, [](World& world) {
    const auto refused = [](auto call) {
      const auto result = attempt(call);
      return !result.ok() && result.error().code() == ErrorCode::invalid_use;
    };
    EXPECT_TRUE(refused([&] { return world.peer_kind(2); }));
    EXPECT_TRUE(refused([&] { return world.reach(-1, nullptr); }));
    EXPECT_TRUE(refused([&] { return world.activity_of(7); }));
    EXPECT_TRUE(refused([&] { return world.shared_flags(0, "none"); }));
  });
}

TEST(Failing, other_exceptions_come_out_as_they_are) {
  const auto throws_on_rank_1 = [](auto what) {
    return [what](World& world) {
      if (world.rank() == 1) throw what;
      world.barrier();
    };
  };
  EXPECT_THROW(launch(3, throws_on_rank_1(std::out_of_range("index 9 of 4"))), std::out_of_range);
  EXPECT_THROW(launch(3, throws_on_rank_1(42)), int);
  const SimulationOptions options{.ranks = 3};
  EXPECT_THROW(simulate(options, throws_on_rank_1(std::out_of_range("index 9 of 4"))), std::out_of_range);
  EXPECT_THROW(simulate(options, throws_on_rank_1(42)), int);
}

class OwnExceptions : public FailingOn {};
INSTANTIATE_TEST_SUITE_P(All, OwnExceptions, everywhere, names);

struct SolverDiverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};
TEST_P(OwnExceptions, reach_the_others_with_type_and_text) {
  struct Case {
    void (*raise)();
    const char* says;
  };
  for (const Case& c : {Case{[] { throw std::out_of_range("index 9 of 4"); }, "std::out_of_range: index 9 of 4"},
                        Case{[] { throw SolverDiverged("at step 12"); }, "SolverDiverged: at step 12"},
                        Case{[] { throw 42; }, "an exception of type int, which is no std::exception"},
                        Case{[] { throw std::string("no such cell"); }, "a std::string was thrown: no such cell"},
                        Case{[] { throw "no such cell"; }, "a text was thrown: no such cell"}}) {
    const auto program = [&](World& world) {
      if (world.rank() == 1) c.raise();
      const Error error = error_of_rank([&] { world.barrier(); });
      require_says(error, ErrorCode::peer_lost, {"rank 1 failed: ", c.says});
    };
    std::string own;
    try {
      run_once(GetParam(), {.ranks = 3}, 1, program);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::user_exception) << error.message();
      EXPECT_EQ(error.rank, 1);
      own = error.message();
    } catch (...) {
      EXPECT_FALSE(are_processes(GetParam())) << "it cannot leave its process";
      continue;
    }
    EXPECT_TRUE(are_processes(GetParam()));
    EXPECT_NE(own.find(c.says), std::string::npos) << own;
  }
}

TEST(Failing, a_predicate_may_throw_and_the_board_says_running_again) {
  launch(1, [](World& world) {
    int calls = 0;
    const auto thrower = [&] {
      if (++calls == 1100) throw std::runtime_error("enough");
      return false;
    };
    EXPECT_THROW(world.wait_until(thrower, "trouble"), std::runtime_error);
    EXPECT_EQ(world.activity_of(0), "running");
  });
}

TEST(Failing, a_rank_that_catches_a_failure_and_returns_is_not_the_first_failure) {
  for (const On on : {On::threads, On::processes, On::sim, On::messaged, On::hosts}) {
    const Failures failures(on, {.ranks = 3}, [](World& world) {
      if (world.rank() == 1) throw Error(ErrorCode::io, "disk gone");
      require(!attempt([&] { world.barrier(); }).ok(), "met");
    });
    EXPECT_TRUE(says(failures.thrown, ErrorCode::io, {"disk gone"}));
    EXPECT_EQ(failures.thrown->rank, 1);
  }
}

TEST(TheBoard, keeps_the_first_failure_and_cuts_long_text) {
  Board board(3);
  EXPECT_EQ(board.first_failed(), -1);
  board.post_failed(2, ErrorCode::internal, std::string(5000, 'x'));
  board.post_failed(1, ErrorCode::internal, "later");
  EXPECT_EQ(board.first_failed(), 2);
  EXPECT_EQ(board.failure_of(2), std::string(1007, 'x'));
  EXPECT_EQ(board.line(1), "failed: later");
  EXPECT_EQ(board.line(0), "starting");
  board.post_finished(0);
  EXPECT_TRUE(board.finished(0));
  EXPECT_FALSE(board.finished(1));
}

TEST(TheBoard, never_mixes_two_waits) {
  // The writer posts two waits in turn, whose parts agree with each other; no reader may see parts of both.
  Board board(1);
  launch(2, [&](World& world) {
    const SharedFlags stop = world.shared_flags(1, "stop");
    const std::string labels[] = {std::string(40, 'a'), std::string(40, 'b')};
    if (world.rank() == 0) {
      for (int i = 0; i < 20000; ++i) {
        WaitNote note(labels[i % 2].c_str());
        note.flag_rank = note.flag_index = i % 2;
        note.wanted = note.seen = static_cast<std::uint64_t>(i % 2);
        board.post_wait(0, note, 0);
      }
      stop.store(1, 0, 1);
    } else {
      while (stop.load(1, 0) == 0) {
        const std::string line = board.line(0);
        if (line == "starting" || line == "running" || line == "waiting")
          continue;  // before the first post; the writer has stopped inside one
        const bool first = line.find('a', 12) == 12;
        const std::string whole = "waiting for " + labels[first ? 0 : 1] +
                                  (first ? " (rank 0, flag 0 >= 0, sees 0)" : " (rank 1, flag 1 >= 1, sees 1)");
        EXPECT_EQ(line.substr(0, whole.size()), whole);
      }
    }
  });
}

}  // namespace
}  // namespace tranship::test
