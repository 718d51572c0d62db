// Checks of lock-free protocols by the explorer: a protocol is right in every schedule and on real threads, and a
// canary is caught.
#pragma once

#include <gtest/gtest.h>

#include <tranship/fabric/launch.hpp>

#include "support/explorer.hpp"
#include "support/thinned.hpp"

namespace tranship::test {

// Sanitizers make a switch of fibers expensive. They look at the explorer itself; whether the protocols are right is
// for the other builds to say, of brief runs in most schedules.
inline bool explores_all() {
  return !is_sanitized && !is_brief();
}
inline long runs_max() {
  return is_sanitized ? 3000 : is_brief() ? 100'000 : 2'000'000;
}
inline long runs_max_of_many() {
  return is_sanitized ? 200 : is_brief() ? 10'000 : runs_max();
}

struct Bounds {
  int preemptions = 2;
  int stale_reads = 2;
  /// Use runs_max_of_many() for a scenario that is one of many.
  long runs = runs_max();
};

template <class Scenario>
Exploration explored(Bounds bounds) {
  return Explorer::explore<Scenario>(
      {.preemptions_max = bounds.preemptions, .stale_reads_max = bounds.stale_reads, .runs_max = bounds.runs});
}

template <class Scenario>
void expect_right(Bounds bounds = {}) {
  const Exploration result = explored<Scenario>(bounds);
  EXPECT_FALSE(result.failure) << *result.failure << " in run " << result.runs;
  EXPECT_TRUE(result.complete || !explores_all()) << "stopped after " << result.runs << " runs";
  EXPECT_GT(result.runs, 1);
  ::testing::Test::RecordProperty("runs", static_cast<int>(result.runs));
}

template <class Scenario>
void expect_caught(const char* how) {
  const Exploration result = explored<Scenario>({});
  ASSERT_TRUE(result.failure) << "not caught in " << result.runs << " runs";
  EXPECT_NE(result.failure->find(how), std::string::npos) << *result.failure;
}

template <class Scenario>
void expect_right_on_threads(int times) {
  for (int i = 0; i < times; ++i) {
    Scenario scenario;
    launch(Scenario::fibers, [&](World& world) { scenario.run(world.rank()); });
    scenario.check();
  }
}

}  // namespace tranship::test
