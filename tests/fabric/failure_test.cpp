// No silent hang: what waits say when they fail, and how the failure of one rank reaches the others.
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/board.hpp>
#include <tranship/fabric/launch.hpp>

namespace tranship {
namespace {

/// Runs `f` as `ranks` ranks: what each rank threw, and what launch() threw.
struct Failures {
  std::vector<std::optional<Error>> of_rank;
  std::optional<Error> thrown;

  template <class F>
  Failures(LaunchOptions options, F f) : of_rank(static_cast<std::size_t>(options.ranks)) {
    try {
      launch(options, [&](World& world) {
        try {
          f(world);
        } catch (const Error& error) {
          of_rank[static_cast<std::size_t>(world.rank())] = error;
          throw;
        }
      });
    } catch (const Error& error) {
      thrown = error;
    }
  }
};

::testing::AssertionResult says(const Error& error, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (error.message().find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "'" << part << "' is missing in: " << error.message();
  return ::testing::AssertionSuccess();
}

TEST(Timeout, names_who_waits_on_what_and_what_all_others_do) {
  unsigned line = 0;
  const Failures failures({.ranks = 4}, [&](World& world) {
    const Words words = world.words(3, "steps");
    if (world.rank() == 3) return;
    if (world.rank() == 0) {
      words.store(1, 2, 6);
      const auto settled = [&](Rank peer) { return world.activity_of(peer).rfind("waiting for a signal", 0) == 0; };
      world.wait_until([&] { return settled(1) && settled(2) && world.activity_of(3) == "finished"; }, "the others");
      world.set_timeout_ns(20'000'000);
      line = __LINE__ + 1;
      world.wait(words, 1, 2, 7, "step 7");
    } else {
      world.wait(words, 0, 0, static_cast<std::uint64_t>(world.rank()), "a signal of rank 0");
    }
  });
  ASSERT_TRUE(failures.thrown);
  const Error& error = *failures.thrown;
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_EQ(error.rank, 0);
  EXPECT_EQ(error.peer, 1);
  EXPECT_TRUE(
      says(error, {"rank 0 waited ", " s for step 7 (rank 1, flag 2 >= 7, sees 6; rank 1 should raise it)",
                   "; in a circle: 0 waits on 1 waits on 0",
                   "; rank 1 waiting for a signal of rank 0 (rank 0, flag 0 >= 1, sees 0; rank 0 should raise it) for ",
                   "; rank 2 waiting for a signal of rank 0 (rank 0, flag 0 >= 2, sees 0; rank 0 should raise it) for ",
                   "; rank 3 finished", "failure_test.cpp:" + std::to_string(line)}));
  // Who waited for rank 0 learns why it will not come.
  for (Rank r : {1, 2}) {
    ASSERT_TRUE(failures.of_rank[r]);
    EXPECT_EQ(failures.of_rank[r]->code(), ErrorCode::peer_lost);
    EXPECT_EQ(failures.of_rank[r]->peer, 0);
    EXPECT_TRUE(says(*failures.of_rank[r], {"rank 0 failed: rank 0 waited", "step 7"}));
  }
}

TEST(Timeout, of_a_barrier_names_the_rank_that_is_missing) {
  const Failures failures({.ranks = 3}, [](World& world) {
    world.barrier();
    if (world.rank() == 1) {
      world.wait_until([] { return false; }, "its own affairs");
    } else {
      if (world.rank() == 0) {
        world.wait_until([&] { return world.activity_of(1).rfind("waiting for its own", 0) == 0; }, "rank 1");
        world.set_timeout_ns(20'000'000);
      }
      world.barrier();
    }
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::timeout);
  EXPECT_TRUE(says(*failures.thrown, {"rank 0 waited", "barrier (rank 1, flag 0 >= 2, sees 1; rank 1 should raise it)",
                                      "rank 1 waiting for its own affairs for"}));
}

TEST(Timeout, takes_the_deadline_of_the_call) {
  const Failures failures({.ranks = 2}, [](World& world) {
    const Words words = world.words(1, "never");
    if (world.rank() == 0) world.wait(words, 0, 0, 1, "a word", Deadline::after_ns(1'000'000));
    if (world.rank() == 1) world.wait_until([] { return false; }, "company", Deadline::never());
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::timeout);
  EXPECT_EQ(failures.thrown->rank, 0);
}

TEST(Timeout, passed_deadlines_do_not_matter_to_what_is_there) {
  launch(1, [](World& world) {
    const Words words = world.words(1, "there");
    words.store(0, 0, 5);
    world.wait(words, 0, 0, 5, "a word", Deadline::after_ns(-1));
    int calls = 0;
    world.wait_until([&] { return ++calls == 2; }, "the second look", Deadline::after_ns(-1));
    EXPECT_EQ(calls, 2);
  });
}

class FailingWorlds : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Sizes, FailingWorlds, ::testing::Values(2, 3, 4, 8, 16, 64),
                         ::testing::PrintToStringParamName());

TEST_P(FailingWorlds, fail_with_the_name_of_the_rank_that_threw) {
  const int n = GetParam();
  const Rank culprit = n / 2;
  const Failures failures({.ranks = n}, [&](World& world) {
    world.barrier();
    if (world.rank() == culprit) throw Error(ErrorCode::bad_file, "part 7 is short: needs 64 bytes, has 12");
    world.barrier();
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::bad_file);
  EXPECT_EQ(failures.thrown->rank, culprit);
  EXPECT_EQ(failures.thrown->message(), "part 7 is short: needs 64 bytes, has 12");
  for (Rank r = 0; r < n; ++r) {
    if (r == culprit) continue;
    ASSERT_TRUE(failures.of_rank[r]) << r;
    EXPECT_EQ(failures.of_rank[r]->code(), ErrorCode::peer_lost);
    EXPECT_EQ(failures.of_rank[r]->rank, r);
    EXPECT_EQ(failures.of_rank[r]->peer, culprit);
    EXPECT_EQ(failures.of_rank[r]->message(),
              "rank " + std::to_string(culprit) + " failed: part 7 is short: needs 64 bytes, has 12");
  }
}

TEST_P(FailingWorlds, fail_when_a_rank_leaves_early) {
  const int n = GetParam();
  const Rank leaver = n - 1;
  const Failures failures({.ranks = n}, [&](World& world) {
    world.barrier();
    if (world.rank() != leaver) world.barrier();
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::peer_lost);
  EXPECT_EQ(failures.thrown->peer, leaver);
  EXPECT_TRUE(says(*failures.thrown, {"rank " + std::to_string(leaver) + " has finished, but rank ",
                                      "waits for barrier", ">= 2, sees 1", "failure_test.cpp:"}));
  for (Rank r = 0; r < leaver; ++r) EXPECT_TRUE(failures.of_rank[r]) << r;
  EXPECT_FALSE(failures.of_rank[leaver]);
}

TEST_P(FailingWorlds, say_on_every_rank_which_sizes_differ) {
  const int n = GetParam();
  const Failures failures({.ranks = n}, [&](World& world) {
    const char mine[16] = {};
    std::vector<char> all(16 * static_cast<std::size_t>(n));
    world.all_gather(mine, world.rank() == 1 ? 12 : 16, all.data());
  });
  for (Rank r = 0; r < n; ++r) {
    ASSERT_TRUE(failures.of_rank[r]) << r;
    EXPECT_EQ(failures.of_rank[r]->code(), ErrorCode::mismatch);
    EXPECT_TRUE(
        says(*failures.of_rank[r], {"collective call 1 differs: rank 0 makes all_gather of 16 bytes (failure_test.cpp:",
                                    "rank 1 all_gather of 12 bytes (failure_test.cpp:"}));
  }
}

TEST(Failing, words_name_both_counts) {
  const Failures failures({.ranks = 3}, [](World& world) { world.words(world.rank() == 2 ? 5 : 4, "flags"); });
  for (Rank r : {0, 1}) {
    EXPECT_EQ(failures.of_rank[r].value().code(), ErrorCode::mismatch);
    EXPECT_TRUE(
        says(*failures.of_rank[r], {"rank 0 makes words, 4 per rank (failure_test.cpp:", "rank 2 words, 5 per rank"}));
  }
  EXPECT_TRUE(says(failures.of_rank[2].value(),
                   {"rank 0 makes words, 4 per rank (failure_test.cpp:", "rank 2 words, 5 per rank"}));
}

TEST(Failing, collective_calls_out_of_step_do_not_hang) {
  const Failures failures({.ranks = 2}, [](World& world) {
    const double mine = 1;
    if (world.rank() == 0) world.words(1, "flags");
    if (world.rank() == 1) world.all_gather(mine);
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::mismatch);
}

TEST(Failing, misuse_is_refused_before_anything_happens) {
  for (int ranks : {0, -3}) {
    const auto refused = attempt([&] { launch(ranks, [](World&) { ADD_FAILURE() << "ran"; }); });
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code(), ErrorCode::invalid_use);
    EXPECT_TRUE(says(refused.error(), {"needs at least 1 rank", std::to_string(ranks)}));
  }
  launch(2, [](World& world) {
    const auto refused = [](auto call) {
      const auto result = attempt(call);
      return !result.ok() && result.error().code() == ErrorCode::invalid_use;
    };
    EXPECT_TRUE(refused([&] { return world.peer_kind(2); }));
    EXPECT_TRUE(refused([&] { return world.reach(-1, nullptr); }));
    EXPECT_TRUE(refused([&] { return world.activity_of(7); }));
    EXPECT_TRUE(refused([&] { return world.words(0, "none"); }));
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
  const Failures failures({.ranks = 3}, [](World& world) {
    if (world.rank() == 1) throw Error(ErrorCode::io, "disk gone");
    EXPECT_FALSE(attempt([&] { world.barrier(); }).ok());
  });
  ASSERT_TRUE(failures.thrown);
  EXPECT_EQ(failures.thrown->code(), ErrorCode::io);
  EXPECT_EQ(failures.thrown->rank, 1);
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
    const Words stop = world.words(1, "stop");
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
}  // namespace tranship
