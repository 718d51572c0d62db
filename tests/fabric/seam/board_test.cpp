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
    void tell_at_end(Rank rank) noexcept override { tell(rank); }
    bool has_heard_end(Rank rank) const noexcept override { return there->finished(rank); }
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

TEST_F(TwoMachines, EndWithOneStatus) {
  boards[1].post_failed(3, ErrorCode::peer_lost, "gone");
  bring(1, 0);
  EXPECT_FALSE(boards[0].exit_status());
  // Rank 3 has failed before, and stands for the failure; the first status counts.
  boards[1].post_exit(2, 5);
  boards[1].post_exit(3, 6);
  links[1].told.clear();
  boards[1].pass_exit_on();
  bring(1, 0);
  EXPECT_EQ(boards[0].exit_status(), 5);
  EXPECT_EQ(boards[0].first_failed(), 3);
  boards[0].post_exit(0, 7);
  EXPECT_EQ(boards[0].exit_status(), 5);
}

TEST(ABoardOfSomeRanks, NumbersThemAnew) {
  Board whole(7);
  const Board odd(whole, {.first = 1, .stride = 2, .count = 3});
  Board upper(odd, {.first = 1, .stride = 1, .count = 2});  // ranks 3 and 5
  EXPECT_EQ(upper.ranks(), 2);
  WaitNote note("signal_wait", 1, {"halo.cpp", 12});
  note.flag_rank = 0;
  note.flag_index = 8;
  upper.post_wait(0, note, now_ns());
  EXPECT_NE(whole.line(3).find("rank 3, flag 8"), std::string::npos) << whole.line(3);
  EXPECT_NE(whole.line(3).find("rank 5 should raise it"), std::string::npos) << whole.line(3);
  EXPECT_NE(odd.line(1).find("rank 2 should raise it"), std::string::npos) << odd.line(1);
  EXPECT_NE(upper.line(0).find("rank 1 should raise it"), std::string::npos) << upper.line(0);
  EXPECT_EQ(upper.awaited_by(0), 1);
  note.raised_by = 0;
  upper.post_wait(1, note, now_ns());
  EXPECT_EQ(upper.circle_from(0), "0 waits on 1 waits on 0");
  EXPECT_EQ(whole.circle_from(3), "5 waits on 3 waits on 5");

  EXPECT_FALSE(upper.has_failed());
  whole.post_failed(6, ErrorCode::io, "of another team");
  EXPECT_TRUE(upper.has_failed());
  EXPECT_EQ(upper.first_failed(), -1);
  EXPECT_EQ(upper.first_failure(), "rank 6 of the whole world failed: of another team");
  EXPECT_EQ(whole.first_failure(), "rank 6 failed: of another team");

  Board other(4);
  Board pair(other, {.first = 3, .stride = 1, .count = 1});
  pair.post_failed(0, ErrorCode::timeout, "late");
  EXPECT_EQ(other.first_failed(), 3);
  EXPECT_EQ(pair.first_failed(), 0);
  EXPECT_EQ(pair.first_failure(), "rank 0 failed: late");
  EXPECT_TRUE(other.ended(3));
}

}  // namespace
}  // namespace tranship::test
