// What ranks do together when nothing fails, at many sizes of world, most of them larger than the machine.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tranship/base/pages.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/context.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/launch.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/rank_scope.hpp>
#include <tranship/fabric/seam/backends.hpp>
#include <tranship/fabric/shared/shared_clock.hpp>
#include <tranship/fabric/shared/shared_fabric.hpp>
#include <tranship/fabric/sim/simulate.hpp>
#include <tranship/fabric/threads/threads_fabric.hpp>

namespace tranship {
namespace {

// Tests inside launch() throw, so that a rank that finds something wrong does not leave the others waiting.
void require(bool holds, const char* what) {
  if (!holds) throw Error(ErrorCode::internal, std::string("test: ") + what);
}

/// Counts the offers that its rank reads in meetings.
class CountingMeeting final : public Meeting {
 public:
  CountingMeeting(std::unique_ptr<Meeting> inner, Index& offers_read)
      : inner_(std::move(inner)), offers_read_(offers_read) {}

  void meet(World& world, const Call& call, CallSite where) override { inner_->meet(world, call, where); }
  void gather(World& world, const Call& call, const void* mine, std::size_t size_bytes, void* all,
              CallSite where) override {
    inner_->gather(world, call, mine, size_bytes, all, where);
    count();
  }
  void spread(World& world, const Call& call, void* data, std::size_t size_bytes, int from_member,
              CallSite where) override {
    inner_->spread(world, call, data, size_bytes, from_member, where);
    count();
  }
  void reduce(World& world, const Call& call, void* record, std::size_t size_bytes, Combine combine,
              CallSite where) override {
    inner_->reduce(world, call, record, size_bytes, combine, where);
    count();
  }
  std::uint64_t calls() const noexcept override { return inner_->calls(); }
  void begin_at(std::uint64_t calls) override { inner_->begin_at(calls); }

 private:
  void count() { offers_read_ = static_cast<const SharedMeeting&>(*inner_).offers_read(); }

  std::unique_ptr<Meeting> inner_;
  Index& offers_read_;
};

class CountingClock final : public SharedClock {
 public:
  using SharedClock::SharedClock;

  void idle(int round) override {
    ++idles;
    SharedClock::idle(round);
  }

  Index idles = 0;
};

class CountingFabric final : public SharedFabric {
 public:
  CountingFabric(const std::shared_ptr<SharedWorld>& shared, Rank rank,
                 std::shared_ptr<CountingClock> counting = nullptr)
      : SharedFabric(shared, rank, shared->board(), {.count = shared->shape().ranks}, nullptr, std::move(counting)) {}

  void* reach(Rank, const void* address) const noexcept override { return const_cast<void*>(address); }
  bool is_exposed(const void*) const noexcept override { return true; }
  std::unique_ptr<Meeting> meeting(const Members& members, int slot, const Members& named) override {
    return std::make_unique<CountingMeeting>(SharedFabric::meeting(members, slot, named), offers_read);
  }

  Index offers_read = 0;  ///< in the team that has met last
};

// A rank that looks again where nothing has changed gives its core away; one that sees something new, or gets something
// else each time, as a collective does, keeps it.
TEST(Polls, give_the_core_away_in_vain_alone) {
  const auto shared = SharedWorld::make({.ranks = 1, .heap_bytes = std::size_t(1) << 20}, SharedWorld::Kind::threads);
  const auto clock = std::make_shared<CountingClock>(1, shared->shape().cores);
  CountingFabric fabric(shared, 0, clock);
  World world(fabric, default_timeout_ns());
  constexpr Index places = 100'000;  // none comes again while a row of looks lasts
  const auto words = world.allocate<std::uint64_t>(places);
  Context& rma = world.context();
  const Index before = clock->idles;
  for (int i = 0; i < 200'000; ++i) (void)rma.g(words.from(i % places), 0);
  for (int i = 0; i < 200'000; ++i) (void)rma.fetch_inc(words, 0);
  for (int i = 0; i < 200'000; ++i) (void)rma.test(words.from(1), Comparison::equal, 0);
  EXPECT_EQ(clock->idles, before);
  while (clock->idles == before) (void)rma.test(words.from(1), Comparison::equal, 1);
  const Index after_test = clock->idles;
  while (clock->idles == after_test) (void)rma.g(words.from(1), 0);
}

TEST(Broadcasts, read_what_the_root_brings_alone) {
  constexpr int ranks = 12;
  const auto shared =
      SharedWorld::make({.ranks = ranks, .heap_bytes = std::size_t(1) << 20}, SharedWorld::Kind::threads);
  std::vector<std::thread> threads;
  std::vector<Index> read(ranks);
  std::atomic<int> wrong = 0;
  for (Rank rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      CountingFabric* fabric = nullptr;
      RankScope scope(nullptr, shared->board(), rank, default_timeout_ns(), [&] {
        auto made = std::make_unique<CountingFabric>(shared, rank);
        fabric = made.get();
        return made;
      });
      World& world = scope.world();
      const Index before = fabric->offers_read;
      for (const std::size_t bytes : {0, 5, 3000}) {
        std::vector<std::uint8_t> data(bytes, std::uint8_t(rank));
        world.broadcast(data.data(), bytes, 3);
        wrong += int(bytes) - int(std::count(data.begin(), data.end(), 3));
      }
      read[std::size_t(rank)] = fabric->offers_read - before;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  // Of none and of 5 bytes in one piece, of 3000 in four.
  for (Rank rank = 0; rank < ranks; ++rank) EXPECT_EQ(read[std::size_t(rank)], rank == 3 ? 0 : 6) << "rank " << rank;
}

// A block that is larger than the share that each rank has of what is free takes no memory until it is touched, and
// only where it is; what the next owner of its place finds there is zero.
void allocate_sparsely(World& world) {
  const Index pages_max = Index(world.heap().place().size_bytes / page_bytes());
  for (int round = 0; round < 2; ++round) {
    const auto block = world.allocate<std::byte>(Index(pages_max - 1024) * Index(page_bytes()));
    std::vector<unsigned char> is_there(static_cast<std::size_t>(pages_max - 1024));
    require(mincore(block.local(), std::size_t(block.size()), is_there.data()) == 0, "mincore");
    require(std::count_if(is_there.begin(), is_there.end(), [](auto flags) { return flags & 1; }) == 0, "it is sparse");
    std::byte& last = block.local()[block.size() - 1];
    require(last == std::byte(0), "it is zero");
    last = std::byte(7);
    require(world.heap_usage().used_bytes >= std::size_t(block.size()), "used");
    (void)world.allocate<std::byte>(1 << 20);  // it is not spoken for
  }
}

std::size_t sparse_heap_bytes(int ranks) {
  const std::size_t wanted = std::size_t(available_memory_bytes()) / std::size_t(ranks - 1);
  return std::max(wanted, 2 * Domain::sparse_bytes_min) / page_bytes() * page_bytes();
}

TEST(Heaps, are_sparse_where_blocks_are_large) {
  constexpr int ranks = 4;
  launch({.ranks = ranks, .heap_bytes = sparse_heap_bytes(ranks) + (std::size_t(4) << 20)}, allocate_sparsely);
  launch_processes({.ranks = ranks, .heap_bytes = sparse_heap_bytes(ranks) + (std::size_t(4) << 20)},
                   allocate_sparsely);
}

// The first ones first, as a vector of them goes: each leaves the lists that it is in without a search.
TEST(Contexts, come_and_go_in_any_order) {
  launch(2, [](World& world) {
    const auto word = world.allocate<std::uint64_t>(1);
    std::vector<std::unique_ptr<Context>> many;
    for (int i = 0; i < 100'000; ++i) many.push_back(std::make_unique<Context>(world));
    for (std::size_t i = 0; i < many.size(); ++i)
      if (i != 77'777) many[i].reset();
    many[77'777]->p(word, 5, 1 - world.rank());
    world.barrier();
    require(world.context().test(word, Comparison::equal, 5), "it has come");
    many.clear();
    Context another(world);
    another.p(word, 6, world.rank());
    require(another.g(word, world.rank()) == 6, "it is there");
  });
}

// A hundred teams and their sub-teams at a time, twice.
void make_many_teams(World& world) {
  for (int round = 0; round < 2; ++round) {
    std::vector<Team> teams;
    for (int i = 0; i < 126; ++i) {
      teams.push_back(*world.team().split_strided({.count = world.size()}));
      require(teams.back().all_gather(i).back() == i, "it meets");
    }
    require(teams[100].all_gather(7).front() == 7, "an earlier one meets");
    bool is_refused = false;
    try {
      (void)world.team().split_strided({.count = world.size()});
    } catch (const Error& error) {
      is_refused = error.code() == ErrorCode::unsupported;
    }
    require(is_refused, "all are taken");
  }
}

TEST(Teams, are_as_many_as_the_launch_says) {
  launch({.ranks = 3, .teams_max = 129}, make_many_teams);
  launch_processes({.ranks = 2, .teams_max = 129}, make_many_teams);
  ASSERT_EQ(setenv("TRANSHIP_TEAMS", "129", 1), 0);
  launch(2, make_many_teams);
  for (const char* const wrong : {"3", "70000", "many", "80x"}) {
    ASSERT_EQ(setenv("TRANSHIP_TEAMS", wrong, 1), 0);
    EXPECT_THROW(launch(1, [](World&) {}), Error) << wrong;
  }
  unsetenv("TRANSHIP_TEAMS");
  EXPECT_THROW(launch({.ranks = 1, .teams_max = 3}, [](World&) {}), Error);
}

/// The status with which a child process ends that runs `f`.
template <class F>
int status_of(F&& f) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    f();
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(GlobalExits, end_all_ranks_with_one_status) {
  // One waits, one polls, one is at a barrier.
  const auto end_all = [](World& world) {
    const auto word = world.allocate<std::uint64_t>(1);
    world.barrier();
    if (world.rank() == 1) world.global_exit(41 + 256);
    if (world.rank() == 2)
      while (!world.context().test(word, Comparison::equal, 1)) {
      }
    if (world.rank() == 3) world.context().wait_until(word, Comparison::equal, 1);
    world.barrier();
  };
  EXPECT_EQ(status_of([&] { launch(4, end_all); }), 41);
  EXPECT_EQ(status_of([&] { simulate({.ranks = 4}, end_all); }), 41);
  for (const bool all_compute : {false, true}) {
    int status = -1;
    try {
      launch_processes(4, [&](World& world) {
        if (all_compute && world.rank() != 1)
          for (;;) pause();
        if (all_compute) world.global_exit(41);
        end_all(world);
      });
    } catch (const Error& error) {
      status = error.rank;
      EXPECT_NE(error.message().find("it has ended all ranks by global_exit(41)"), std::string::npos)
          << error.message();
    }
    EXPECT_EQ(status, 1);
  }
  // Ranks that leave meanwhile; the first status counts.
  EXPECT_NO_THROW(launch_processes(3, [](World& world) {
    if (world.rank() == 0) world.global_exit(0);
    if (world.rank() == 1) world.wait_until([&] { return world.has_ended(0); }, "rank 0");
    if (world.rank() == 1) world.global_exit(5);
  }));
}

class Worlds : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, Worlds, ::testing::Values(1, 2, 3, 4, 8, 16, 64), ::testing::PrintToStringParamName());

TEST_P(Worlds, run_each_rank_once) {
  std::vector<int> calls(static_cast<std::size_t>(GetParam()));
  launch(GetParam(), [&](World& world) {
    require(world.size() == GetParam(), "size");
    ++calls[static_cast<std::size_t>(world.rank())];
  });
  EXPECT_EQ(calls, std::vector<int>(static_cast<std::size_t>(GetParam()), 1));
}

TEST_P(Worlds, meet_at_barriers) {
  const int n = GetParam();
  std::vector<int> cells(static_cast<std::size_t>(n));  // plain memory: the barrier alone orders it
  launch(n, [&](World& world) {
    for (int round = 1; round <= 50; ++round) {
      cells[static_cast<std::size_t>(world.rank())] = round;
      world.barrier();
      require(std::count(cells.begin(), cells.end(), round) == n, "a rank passed before all had arrived");
      world.barrier();
    }
  });
}

TEST_P(Worlds, may_end_right_after_a_barrier) {
  for (int i = 0; i < 20; ++i) EXPECT_NO_THROW(launch(GetParam(), [](World& world) { world.barrier(); }));
}

TEST_P(Worlds, gather_in_rank_order) {
  launch(GetParam(), [](World& world) {
    for (int round = 0; round < 20; ++round) {
      // Sizes differ from round to round.
      std::vector<int> mine(static_cast<std::size_t>(round), 1000 * round + world.rank());
      std::vector<int> all(mine.size() * static_cast<std::size_t>(world.size()), -1);
      world.all_gather(mine.data(), mine.size() * sizeof(int), all.data());
      for (std::size_t i = 0; i < all.size(); ++i)
        require(all[i] == 1000 * round + static_cast<int>(i / mine.size()), "gathered value");
    }
    const auto squares = world.all_gather(world.rank() * world.rank());
    for (int r = 0; r < world.size(); ++r) require(squares[static_cast<std::size_t>(r)] == r * r, "gathered square");
  });
}

TEST_P(Worlds, pass_a_token_through_words) {
  launch(GetParam(), [](World& world) {
    const SharedFlags words = world.shared_flags(2, "token");
    require(words.count() == 2 && words.ranks() == world.size() && words.label() == std::string("token"), "words");
    require(words.load(world.rank(), 0) == 0, "words start at 0");
    const Rank next = (world.rank() + 1) % world.size();
    const Rank before = (world.rank() + world.size() - 1) % world.size();
    for (std::uint64_t lap = 1; lap <= 5; ++lap) {
      if (world.rank() == 0) words.store(next, 1, lap);
      world.wait(words, world.rank(), 1, lap, WaitNote("token", before));
      if (world.rank() != 0) words.store(next, 1, lap);
    }
  });
}

TEST_P(Worlds, count_and_choose_with_atomic_words) {
  const auto n = static_cast<std::uint64_t>(GetParam());
  std::atomic<int> winners = 0;
  launch(GetParam(), [&](World& world) {
    const SharedFlags words = world.shared_flags(3, "votes");
    const std::uint64_t before = words.fetch_add(0, 2, 1);
    require(before < n, "fetch_add");
    if (words.compare_exchange(0, 1, 0, 1)) ++winners;
    world.barrier();
    require(words.load(0, 2) == n && words.load(0, 1) == 1, "sums");
    for (int r = 1; r < world.size(); ++r) require(words.load(r, 2) == 0, "another rank's words");
  });
  EXPECT_EQ(winners, 1);
}

/// Ranks that meet, take memory, and tell their neighbours.
void be_one_of_many(World& world) {
  const auto word = world.allocate<int>(1);
  const Rank next = (world.rank() + 1) % world.size(), before = (world.rank() + world.size() - 1) % world.size();
  world.context().p(word, world.rank(), next);
  world.barrier();
  require(word[0] == before, "the word of the rank before");
  std::optional<Team> even = world.team().split_strided({.stride = 2, .count = (world.size() + 1) / 2});
  if (even) even->barrier();
}
/// A process of a sanitizer takes up to a third of a second to fork: its page tables are those of all tests before.
int many_ranks() {
#if defined(TRANSHIP_SANITIZED)
  return 32;
#else
  return std::getenv("TRANSHIP_TEST_LONG") ? 1000 : 200;
#endif
}
TEST(World, may_have_a_thousand_ranks_that_are_threads) {
  launch(LaunchOptions{.ranks = many_ranks()}, be_one_of_many);
}
TEST(World, may_have_a_thousand_ranks_that_are_processes) {
  launch_processes(many_ranks(), be_one_of_many);
}

TEST(World, words_outlive_the_ranks_that_made_them) {
  SharedFlags kept;
  launch(3, [&](World& world) {
    SharedFlags words = world.shared_flags(1, "kept");
    words.store(world.rank(), 0, 10 + static_cast<std::uint64_t>(world.rank()));
    if (world.rank() == 1) kept = words;
    words = SharedFlags();
    world.barrier();
  });
  for (Rank r = 0; r < 3; ++r) EXPECT_EQ(kept.load(r, 0), 10u + static_cast<std::uint64_t>(r));
}

TEST(World, words_lie_on_lines_of_their_own) {
  launch(2, [](World& world) {
    const SharedFlags words = world.shared_flags(4, "lines");
    const auto address = [&](Rank r, int i) { return reinterpret_cast<std::uintptr_t>(&words.at(r, i)); };
    for (Rank r : {0, 1})
      for (int i = 0; i < 4; ++i) require(address(r, i) % 64 == 0, "alignment");
    require(address(0, 1) - address(0, 0) >= 64 && address(1, 0) - address(0, 3) >= 64, "distance");
  });
}

TEST(World, threads_reach_each_other) {
  int values[4] = {};
  launch(4, [&](World& world) {
    const Rank next = (world.rank() + 1) % 4;
    require(world.peer_kind(next) == PeerKind::reachable, "kind");
    const auto addresses = world.all_gather(&values[world.rank()]);
    auto* theirs = static_cast<int*>(world.reach(next, addresses[static_cast<std::size_t>(next)]));
    *theirs = 100 + next;
    world.barrier();
    require(values[world.rank()] == 100 + world.rank(), "written by the neighbour");
  });
}

TEST(World, wait_until_looks_at_once_and_makes_progress) {
  launch(2, [](World& world) {
    int calls = 0;
    world.wait_until([&] { return ++calls == 1; }, "nothing");
    require(calls == 1, "a true predicate is called once");
    world.wait_until([&] { return ++calls == 1100; }, "progress of its own");
    require(calls == 1100, "the predicate is called until it is true");
  });
}

TEST(World, timeout_comes_from_options_or_environment) {
  launch(LaunchOptions{.ranks = 2, .timeout_ns = 5'000'000'000}, [](World& world) {
    require(world.timeout_ns() == 5'000'000'000, "from options");
    require(world.deadline().remaining_ns() <= 5'000'000'000, "deadline");
    world.set_timeout_ns(INT64_MAX);
    require(world.deadline().remaining_ns() == INT64_MAX, "never");
  });
  const auto with = [](const char* text) {
    setenv("TRANSHIP_TIMEOUT", text, 1);
    auto timeout_ns = attempt([] { return default_timeout_ns(); });
    unsetenv("TRANSHIP_TIMEOUT");
    return timeout_ns;
  };
  EXPECT_EQ(with("").value(), 60'000'000'000);
  EXPECT_EQ(with("2.5").value(), 2'500'000'000);
  EXPECT_EQ(with("off").value(), INT64_MAX);
  EXPECT_EQ(with("1e12").value(), INT64_MAX);
  for (const char* bad : {"soon", "3s", "-1", "0", "nan", "inf"}) {
    const auto refused = with(bad);
    ASSERT_FALSE(refused.ok()) << bad;
    EXPECT_EQ(refused.error().code(), ErrorCode::bad_text);
    EXPECT_NE(refused.error().message().find(bad), std::string::npos) << refused.error().message();
  }
}

void free_function(World& world) {
  world.barrier();
}

TEST(Launch, takes_any_callable) {
  launch(2, free_function);
  const auto constant = [](World& world) { world.barrier(); };
  launch(2, constant);
}

TEST(Launch, may_be_nested) {
  std::atomic<int> ran = 0;
  launch(2, [&](World& outer) {
    launch(3, [&](World& inner) {
      inner.barrier();
      ++ran;
    });
    outer.barrier();
  });
  EXPECT_EQ(ran, 6);
}

TEST(Backends, name_themselves_and_say_why_not) {
  const auto backends = available_backends();
  ASSERT_FALSE(backends.empty());
  for (const char* name : {"threads", "processes", "sim", "mpi"})
    EXPECT_TRUE(std::any_of(backends.begin(), backends.end(), [&](const Backend& b) {
      return b.name == name && b.state == Backend::State::present;
    })) << name;
  for (const Backend& backend : backends) EXPECT_FALSE(backend.note.empty()) << backend.name;
  EXPECT_TRUE(std::any_of(backends.begin(), backends.end(),
                          [](const Backend& b) { return b.name == "cuda" && b.state == Backend::State::absent; }));
}

int interrupts_until = 0;
void interrupt() {
  if (--interrupts_until == 0) throw std::runtime_error("interrupted");
}

TEST(Interrupt, ends_a_wait_and_a_loop_that_polls_and_fails_the_others) {
  for (const bool polls : {false, true}) {
    interrupts_until = 3;
    std::string other;
    try {
      launch({.ranks = 2, .timeout_ns = INT64_MAX}, [&](World& world) {
        const auto flag = world.allocate<std::uint64_t>(1);
        Context& rma = world.context();
        if (world.rank() == 0) world.set_interrupt_check(interrupt);
        try {
          if (world.rank() == 1)
            world.barrier();
          else if (polls)
            while (!rma.test(flag, Comparison::equal, 1)) {
            }
          else
            rma.wait_until(flag, Comparison::equal, 1);
        } catch (const Error& error) {
          other = error.message();
          throw;
        }
      });
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "interrupted");
    }
    EXPECT_EQ(interrupts_until, 0);
    EXPECT_NE(other.find("rank 0 failed: std::runtime_error: interrupted"), std::string::npos) << other;
  }
}

TEST(RankScope, is_a_world_of_one_that_begins_and_ends_by_calls) {
  RankScope scope = RankScope::join();
  EXPECT_EQ(scope.world().size(), 1);
  scope.world().barrier();
  {
    RankScope again = RankScope::join();  // worlds of one know nothing of each other
    again.world().barrier();
  }
  RankScope moved = std::move(scope);
  EXPECT_EQ(moved.world().rank(), 0);
  moved.finish();
  moved.finish();
  moved.fail(Error(ErrorCode::internal, "too late"));
  EXPECT_THROW(moved.world(), Error);
}

TEST(RankScope, that_goes_with_an_exception_has_failed) {
  Board board(1);
  const auto shared = SharedWorld::make({}, SharedWorld::Kind::threads);
  const auto make = [&] { return std::make_unique<ThreadsFabric>(shared, 0); };
  try {
    RankScope scope(shared, board, 0, default_timeout_ns(), make);
    EXPECT_EQ(board.line(0), "running");
    throw std::runtime_error("away");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(board.first_failed(), 0);
  EXPECT_NE(board.failure_of(0).find("rank 0 has left its world because an exception was thrown"), std::string::npos);
}

}  // namespace
}  // namespace tranship
