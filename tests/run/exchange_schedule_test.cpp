// Which messages Schedule::automatic stages.
#include <gtest/gtest.h>

#include <tranship/kernels/host/host_move.hpp>
#include <tranship/run/exchange_schedule.hpp>

namespace tranship {
namespace {

bool is_staged_of(Index run_bytes, Index count) {
  return is_staged(Schedule::automatic, {.bytes = run_bytes * count, .count = count});
}

TEST(AutomaticSchedule, StagesShortRunsWhoseLinesFitNearTheSender) {
  EXPECT_TRUE(is_staged_of(8, 1000));
  EXPECT_TRUE(is_staged_of(24, 1000)) << "three doubles";
  EXPECT_FALSE(is_staged_of(32, 1000));
  EXPECT_FALSE(is_staged_of(8, 127)) << "less than 1 KiB";
  EXPECT_TRUE(is_staged_of(8, 128));
  const Index lines_max = 8 * private_cache_bytes() / 64;
  EXPECT_TRUE(is_staged_of(8, lines_max));
  EXPECT_FALSE(is_staged_of(8, lines_max + 1));
}

TEST(AutomaticSchedule, OthersDoAsTheySay) {
  for (const Index count : {1, 1'000'000}) {
    EXPECT_TRUE(is_staged(Schedule::staged, {.bytes = 64 * count, .count = count}));
    EXPECT_FALSE(is_staged(Schedule::direct, {.bytes = 8 * count, .count = count}));
  }
}

}  // namespace
}  // namespace tranship
