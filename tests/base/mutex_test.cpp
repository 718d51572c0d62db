#include <latch>
#include <mutex>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/mutex.hpp>

namespace tranship {
namespace {

TEST(Mutex, one_thread_at_a_time_has_it) {
  constexpr int threads = 4, turns = 20'000;
  Mutex mutex;
  int inside = 0, count = 0, crowds = 0;
  {
    std::vector<std::jthread> team;
    for (int t = 0; t < threads; ++t)
      team.emplace_back([&] {
        for (int i = 0; i < turns; ++i) {
          const std::lock_guard lock(mutex);
          crowds += ++inside != 1;
          // Others come while it is taken.
          if (i % 100 == 0) std::this_thread::yield();
          ++count;
          --inside;
        }
      });
  }
  EXPECT_EQ(count, threads * turns);
  EXPECT_EQ(crowds, 0);
}

TEST(Mutex, all_who_wait_get_it_when_it_is_free) {
  Mutex mutex;
  int entered = 0;
  {
    std::unique_lock lock(mutex);
    EXPECT_FALSE(std::unique_lock(mutex, std::try_to_lock));
    std::latch about_to_wait(3);
    std::vector<std::jthread> team;
    for (int t = 0; t < 3; ++t)
      team.emplace_back([&] {
        about_to_wait.count_down();
        const std::lock_guard mine(mutex);
        ++entered;
      });
    about_to_wait.wait();
    EXPECT_EQ(entered, 0);
    lock.unlock();
  }
  EXPECT_EQ(entered, 3);
  EXPECT_TRUE(std::unique_lock(mutex, std::try_to_lock));
}

}  // namespace
}  // namespace tranship
