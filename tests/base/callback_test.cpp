#include <memory>
#include <string>

#include <gtest/gtest.h>

#include <tranship/base/callback.hpp>

namespace tranship::test {
namespace {

int twice(int n) {
  return 2 * n;
}

TEST(Callback, owns_what_it_was_made_of) {
  std::weak_ptr<std::string> seen;
  Callback<std::string(int)> call;
  {
    auto text = std::make_shared<std::string>("a text that lives on the heap");
    seen = text;
    call = [text = std::move(text)](int n) { return *text + std::to_string(n); };
  }
  ASSERT_FALSE(seen.expired());
  EXPECT_EQ(call(3), "a text that lives on the heap3");
  const Callback<std::string(int)> copy = call;
  call = nullptr;
  EXPECT_FALSE(call);
  EXPECT_EQ(copy(4), "a text that lives on the heap4");
}

TEST(Callback, takes_anything_that_can_be_called) {
  EXPECT_FALSE(Callback<int(int)>());
  EXPECT_EQ(Callback<int(int)>(twice)(4), 8);
  EXPECT_EQ(Callback<int(int)>(&twice)(4), 8);
  EXPECT_EQ(Callback<long(short)>(twice)(4), 8);
  int calls = 0;
  auto count = [&calls] { return ++calls; };
  const Callback<int()> lvalue = count;
  EXPECT_EQ(lvalue(), 1);
  const Callback<void()> without_result = lvalue;
  without_result();
  EXPECT_EQ(calls, 2);
  Callback<int()> once = [held = std::make_unique<int>(5)] { return *held; };
  EXPECT_EQ(once(), 5);
}

TEST(Callback, copies_share_the_state) {
  Callback<int()> call = [n = 0]() mutable { return ++n; };
  const Callback<int()> copy = call;
  EXPECT_EQ(call(), 1);
  EXPECT_EQ(copy(), 2);
}

}  // namespace
}  // namespace tranship::test
