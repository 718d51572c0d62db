// Boards of several machines: what ranks elsewhere do is shown here as it is there, and ends come by themselves.
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/seam/board.hpp>

namespace tranship::test {
namespace {

/// Two machines of two ranks each, joined by hand.
class TwoMachines : public ::testing::Test {
 protected:
  class Link final : public BoardLink {
   public:
    void tell(Rank rank) noexcept override { told.push_back(rank); }
    void ask(Rank rank) noexcept override {
      ++asked;
      here->show(rank, there->entry_of(rank));
    }
    Board* here = nullptr;
    Board* there = nullptr;
    std::vector<Rank> told;
    int asked = 0;
  };

  TwoMachines() {
    for (int m : {0, 1}) {
      links[m].here = &boards[m];
      links[m].there = &boards[1 - m];
      boards[m].connect({.first = 2 * m, .count = 2}, links[m]);
      for (const Rank rank : {2 * m, 2 * m + 1}) boards[m].post_running(rank);
    }
  }
  void bring(int from, int to) {
    for (const Rank rank : std::exchange(links[from].told, {})) boards[to].show(rank, boards[from].entry_of(rank));
  }

  Board boards[2] = {Board(4), Board(4)};
  Link links[2];
};

TEST_F(TwoMachines, TellEachOtherWhoHasBegunFinishedAndFailed) {
  EXPECT_EQ(links[0].told, (std::vector<Rank>{0, 1}));
  EXPECT_FALSE(boards[0].joined(2));
  bring(1, 0);
  EXPECT_TRUE(boards[0].joined(2));
  boards[1].post_failed(3, ErrorCode::io, "disk gone");
  boards[1].post_finished(2);
  EXPECT_EQ(boards[0].first_failed(), -1);
  bring(1, 0);
  EXPECT_EQ(boards[0].first_failed(), 3);
  EXPECT_EQ(boards[0].failure_code_of(3), ErrorCode::io);
  EXPECT_EQ(boards[0].line(3), "failed: disk gone");
  EXPECT_TRUE(boards[0].finished(2));
  EXPECT_TRUE(links[0].told == (std::vector<Rank>{0, 1})) << "what is shown of others is not told back";
}

TEST_F(TwoMachines, ShowWaitsOfOthersWhenTheyAreAskedFor) {
  WaitNote note("signal_wait", 0, {"far/halo.cpp", 12});
  note.flag_rank = 2;
  note.flag_index = 8;
  note.wants<std::int64_t>(Comparison::less, -3);
  note.sees<std::int64_t>(-1);
  boards[1].post_wait(2, note, now_ns() - 2'000'000'000);
  const std::string line = boards[0].line(2);
  EXPECT_EQ(line.find("waiting for signal_wait (rank 2, flag 8 < -3, sees -1; rank 0 should raise it) for 2"), 0U)
      << line;
  EXPECT_NE(line.find("(from halo.cpp:12)"), std::string::npos) << line;
  EXPECT_EQ(boards[0].awaited_by(2), 0);
  boards[1].post_running(2);
  boards[1].post_call(2, CallKind::barrier, 7);
  EXPECT_EQ(boards[0].line(2), "running in barrier (collective call 7)");
  EXPECT_EQ(links[0].asked, 3);
  EXPECT_EQ(boards[1].line(2), "running in barrier (collective call 7)");
  EXPECT_EQ(links[1].asked, 0);
}

TEST_F(TwoMachines, AnEndThatIsShownStays) {
  const Board::Entry old = boards[1].entry_of(2);
  boards[1].post_failed(2, ErrorCode::io, std::string(2000, 'x'));
  bring(1, 0);
  boards[0].show(2, old);
  EXPECT_EQ(boards[0].line(2), "failed: " + std::string(1007, 'x'));
  EXPECT_TRUE(boards[0].ended(2));
}

}  // namespace
}  // namespace tranship::test
