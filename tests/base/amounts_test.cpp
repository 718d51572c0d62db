// Numbers and nouns as people read them.
#include <gtest/gtest.h>

#include <tranship/base/amounts.hpp>

namespace tranship::test {
namespace {

TEST(Amounts, one_is_singular) {
  EXPECT_EQ(amount(1, "rank"), "1 rank");
  EXPECT_EQ(amount(0, "rank"), "0 ranks");
  EXPECT_EQ(amount(-1, "cell"), "-1 cells");
  EXPECT_EQ(amount(4096, "entry", "entries"), "4096 entries");
  EXPECT_EQ(amount(1, "entry", "entries"), "1 entry");
  EXPECT_EQ(counted(1, "launch", "launches"), "1 launch");
  EXPECT_EQ(counted(1234567, "launch", "launches"), "1,234,567 launches");
}

TEST(Amounts, articles_follow_the_first_letter) {
  EXPECT_EQ(with_article("allreduce"), "an allreduce");
  EXPECT_EQ(with_article("overlap"), "an overlap");
  EXPECT_EQ(with_article("reducescatter"), "a reducescatter");
}

}  // namespace
}  // namespace tranship::test
