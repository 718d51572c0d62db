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

TEST(Fibers, that_never_began_are_let_go) {
  bool ran = false;
  {
    Fiber fiber([&] { ran = true; });
  }
  EXPECT_FALSE(ran);
}

}  // namespace
}  // namespace tranship
