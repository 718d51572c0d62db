// The words for a wait of a device's kernel that has given up.
#include <algorithm>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <tranship/fabric/lanes/lost_wait.hpp>

namespace tranship {
namespace {

WaitRecord record_of_a_wait() {
  WaitRecord record = {};
  record.state = WaitRecord::complete;
  record.offset_bytes = 640;
  record.wanted = 3;
  record.seen = 2;
  record.waited_ns = 1'500'000'000;
  record.rank = 1;
  record.block = 7;
  record.raised_by = -1;
  record.line = 12;
  record.comparison = Comparison::greater_equal;
  std::strcpy(record.call, "signal_wait");
  std::strcpy(record.file, "/somewhere/halo.cu");
  return record;
}

TEST(LostWait, NamesRankBlockCallAndWhatWasSeen) {
  const Error error = lost_wait(record_of_a_wait());
  EXPECT_EQ(error.code(), ErrorCode::timeout);
  EXPECT_EQ(error.message(),
            "rank 1 waited 1.5 s in block 7 of a kernel for signal_wait (rank 1, flag 640 >= 3, sees 2) (from "
            "halo.cu:12)");
  EXPECT_EQ(error.rank, 1);
  EXPECT_EQ(error.peer, -1);
}

TEST(LostWait, NamesTheRankThatShouldHaveRaisedTheWord) {
  WaitRecord record = record_of_a_wait();
  record.raised_by = 4;
  const Error error = lost_wait(record);
  EXPECT_NE(error.message().find("rank 4 should raise it"), std::string::npos) << error.message();
  EXPECT_EQ(error.peer, 4);
}

TEST(LostWait, ShowsSignedWordsAsSuch) {
  WaitRecord record = record_of_a_wait();
  record.is_signed = true;
  record.seen = ~0ull;
  EXPECT_NE(lost_wait(record).message().find("sees -1"), std::string::npos) << lost_wait(record).message();
}

TEST(LostWait, ReadsTextsThatHaveNoEnd) {
  WaitRecord record = record_of_a_wait();
  std::fill(std::begin(record.call), std::end(record.call), 'c');
  std::fill(std::begin(record.file), std::end(record.file), 'f');
  EXPECT_NE(lost_wait(record).message().find(std::string(WaitRecord::call_max, 'c')), std::string::npos);
}

TEST(LostWait, IsThereOnceTheRecordIsComplete) {
  WaitRecord record = {};
  EXPECT_FALSE(has_lost_wait(record));
  record = record_of_a_wait();
  EXPECT_TRUE(has_lost_wait(record));
}

}  // namespace
}  // namespace tranship
