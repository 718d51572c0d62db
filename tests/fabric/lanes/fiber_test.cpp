#include <cstddef>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/lanes/fiber.hpp>
#include <tranship/memory/buffer.hpp>

namespace tranship {
namespace {

TEST(Fibers, take_turns) {
  std::string trace;
  std::vector<Fiber> fibers;
  for (char name : {'a', 'b', 'c'})
    fibers.emplace_back([&trace, name] {
      for (int i = 0; i < 3; ++i) {
        trace += name;
        Fiber::suspend();
      }
    });
  while (!fibers.back().ended())
    for (Fiber& fiber : fibers) fiber.resume();
  EXPECT_EQ(trace, "abcabcabc");
  EXPECT_EQ(Fiber::current(), nullptr);
}

TEST(Fibers, nest) {
  std::string trace;
  Fiber outer([&] {
    Fiber inner([&] {
      trace += "i";
      Fiber::suspend();
      trace += "j";
    });
    inner.resume();
    trace += "o";
    Fiber::suspend();
    inner.resume();
    trace += "p";
  });
  outer.resume();
  trace += "-";
  outer.resume();
  EXPECT_EQ(trace, "io-jp");
  EXPECT_TRUE(outer.ended());
}

const void* here() {
  return __builtin_frame_address(0);
}

TEST(Fibers, run_on_the_stacks_of_ended_ones) {
  const auto place_of = [](std::size_t stack_bytes) {
    const void* place = nullptr;
    Fiber fiber([&] { place = here(); }, stack_bytes);
    fiber.resume();
    EXPECT_TRUE(fiber.ended());
    return place;
  };
  const void* const first = place_of(Fiber::default_stack_bytes);
  const void* const larger = place_of(4 * Fiber::default_stack_bytes);
  EXPECT_NE(first, larger);
  EXPECT_EQ(place_of(Fiber::default_stack_bytes), first);
  EXPECT_EQ(place_of(4 * Fiber::default_stack_bytes), larger);

  std::set<const void*> places;
  std::vector<Fiber> fibers;
  for (int i = 0; i < 3; ++i)
    fibers.emplace_back([&] {
      places.insert(here());
      Fiber::suspend();
      places.insert(here());
    });
  for (int turn = 0; turn < 2; ++turn)
    for (Fiber& fiber : fibers) fiber.resume();
  EXPECT_EQ(places.size(), 3u) << "each has one of its own as long as it lives";
}

int depth_reached(int depth) {
  volatile char frame[1024] = {};
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? frame[0] : depth_reached(depth - 1) + frame[0];
}

TEST(FibersDeathTest, end_the_process_where_a_stack_used_again_is_too_small) {
  Fiber([] {}).resume();
  EXPECT_DEATH(Fiber([] { depth_reached(1 << 20); }).resume(), "");
}

TEST(Fibers, have_exceptions_of_their_own) {
  std::vector<std::string> caught;
  std::vector<Fiber> fibers;
  for (int i = 0; i < 3; ++i)
    fibers.emplace_back([&caught, i] {
      for (int k = 0; k < 3; ++k) try {
          throw std::runtime_error(std::to_string(10 * i + k));
        } catch (const std::exception&) {
          Fiber::suspend();  // while others throw and catch
          try {
            throw;
          } catch (const std::exception& error) {
            caught.push_back(error.what());
          }
        }
    });
  for (int round = 0; round < 4; ++round)
    for (Fiber& fiber : fibers) fiber.resume();
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "10", "20", "1", "11", "21", "2", "12", "22"}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
}

TEST(Fibers, have_scopes_of_their_own) {
  const Offload outside(Device::fake(7));
  std::vector<Fiber> fibers;
  for (int i = 0; i < 2; ++i)
    fibers.emplace_back([i] {
      EXPECT_EQ(current_device(), Device::fake(7));
      const Offload within(Device::fake(i));
      Fiber::suspend();
      EXPECT_EQ(current_device(), Device::fake(i));
    });
  for (int round = 0; round < 2; ++round)
    for (Fiber& fiber : fibers) {
      fiber.resume();
      EXPECT_EQ(current_device(), Device::fake(7));
    }
}

TEST(Fibers, that_never_began_are_released) {
  bool ran = false;
  {
    Fiber fiber([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tranship
