// Numbers, durations, tables and progress as people read them.
#include <gtest/gtest.h>

#include <tranship/cli/arguments.hpp>
#include <tranship/cli/console.hpp>
#include <tranship/cli/progress_line.hpp>

namespace tranship::cli {
namespace {

TEST(Console, GroupsDigits) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(-123456), "-123,456");
  EXPECT_EQ(grouped(INT64_MAX), "9,223,372,036,854,775,807");
}

TEST(Console, ScalesBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1024), "1.0 KiB");
  EXPECT_EQ(human_bytes(277264), "270.8 KiB");
  EXPECT_EQ(human_bytes((1 << 20) - 1), "1.0 MiB");
  EXPECT_EQ(human_bytes(INT64_MAX), "8.0 EiB");
}

TEST(Console, ScalesDurations) {
  EXPECT_EQ(human_duration(850), "850 ns");
  EXPECT_EQ(human_duration(3'100'000), "3.1 ms");
  EXPECT_EQ(human_duration(12'000'000'000), "12.0 s");
  EXPECT_EQ(human_duration(200'000'000'000), "3 min 20 s");
  EXPECT_EQ(human_duration(7'500'000'000'000), "2 h 5 min");
}

TEST(Console, CountsOneAndMany) {
  EXPECT_EQ(counted(1, "part"), "1 part");
  EXPECT_EQ(counted(0, "part"), "0 parts");
  EXPECT_EQ(counted(1200, "part"), "1,200 parts");
}

TEST(Console, KeepsControlCharactersFromTheTerminal) {
  EXPECT_EQ(printable("a\nb\x1b[2Jc\x7f"), "a?b?[2Jc?");
  EXPECT_EQ(printable("h\xc3\xb6he"), "h\xc3\xb6he");
  EXPECT_EQ(printable("a\u202eb\u2066c\u200bd\ufeffe\u00adf\u0085g\u2028h\U000e0041"), "a?b?c?d?e?f?g?h?");
  const std::string seen = "\u00a0\u00e9\u2027\u202f\u20ac\ufffd\U0001f600";
  EXPECT_EQ(printable(seen), seen);
  for (const char* broken : {"\xe2\x80", "\x80\xae", "\xc2", "\xff\xfe", "\xe2(", "\xf0\x9f\x98"})
    EXPECT_EQ(printable(broken), broken) << "names of files may be any bytes";
}

TEST(Console, AlignsTables) {
  TextTable table({{"rank", Align::right}, {"place"}, {"cells", Align::right}});
  table.add({"0", "0,0", "12"});
  table.add({"10", "1,0 copy 1", "1,234"});
  EXPECT_EQ(table.text(),
            "  rank  place       cells\n"
            "     0  0,0            12\n"
            "    10  1,0 copy 1  1,234\n");
}

TEST(Progress, SaysRateAndTimeOnceThereIsOne) {
  const ReshardProgress none{.bytes_done = 0, .bytes_total = 4096, .parts_done = 0, .parts_total = 2};
  EXPECT_EQ(progress_text(none, 1'000'000'000), "  0%  0 B of 4.0 KiB, 0 of 2 parts");
  const ReshardProgress some{.bytes_done = 1024, .bytes_total = 4096, .parts_done = 0, .parts_total = 2};
  EXPECT_EQ(progress_text(some, 2'000'000'000), " 25%  1.0 KiB of 4.0 KiB, 0 of 2 parts  512 B/s  6.0 s left");
  const ReshardProgress all{.bytes_done = 4096, .bytes_total = 4096, .parts_done = 1, .parts_total = 2};
  EXPECT_EQ(progress_text(all, 2'000'000'000), "100%  4.0 KiB of 4.0 KiB, 1 of 2 parts  finishing");
  const ReshardProgress empty{.bytes_done = 0, .bytes_total = 0, .parts_done = 1, .parts_total = 1};
  EXPECT_EQ(progress_text(empty, 1), "100%  0 B of 0 B, 1 of 1 part  finishing");
  // What an earlier run has done says nothing about the rate of this one.
  const ReshardProgress resumed{.bytes_done = 3072, .bytes_total = 4096, .parts_done = 0, .parts_total = 2};
  EXPECT_EQ(progress_text(resumed, 2'000'000'000, 2048), " 75%  3.0 KiB of 4.0 KiB, 0 of 2 parts  512 B/s  2.0 s left");
}

TEST(ProgressBar, TakesTheRoomThatThereIs) {
  const ReshardProgress half{.bytes_done = 2048, .bytes_total = 4096, .parts_done = 0, .parts_total = 2};
  const std::string text = progress_text(half, 0);
  EXPECT_EQ(progress_bar(half, 0, 0, 200), "[" + std::string(20, '=') + std::string(20, ' ') + "] " + text);
  const int columns = static_cast<int>(text.size()) + 3 + 10;
  EXPECT_EQ(progress_bar(half, 0, 0, columns), "[=====     ] " + text);
  EXPECT_EQ(progress_bar(half, 0, 0, columns - 3), text) << "no room for a bar that says something";
  EXPECT_EQ(progress_bar(half, 0, 0, 10), text.substr(0, 10));
  EXPECT_EQ(progress_bar(half, 0, 0, 0), "");
}

TEST(Arguments, ReadNumbers) {
  EXPECT_EQ(numbers_argument("--depth", "2", 3), Indices({2, 2, 2}));
  EXPECT_EQ(numbers_argument("--depth", "2,0,1", 3), Indices({2, 0, 1}));
  for (const char* wrong : {"", ",", "1,", "x", "1,2", "-1", "1 ", "1,2,3,4,5,6,7,8,9"})
    EXPECT_THROW(numbers_argument("--depth", wrong, 3), UsageError) << wrong;
}

}  // namespace
}  // namespace tranship::cli
