// The loops are run by two threads: by hand, and by one who moves nothing.
#include <thread>
#include <vector>

#include <contest/one_sided.hpp>
#include <gtest/gtest.h>

namespace contest {
namespace {

constexpr Transfer transfers[] = {Transfer::put,     Transfer::put_quiet, Transfer::put_along,
                                  Transfer::get,     Transfer::add,       Transfer::fetch_add,
                                  Transfer::message, Transfer::signal,    Transfer::barrier};

Work work_of(Transfer transfer, std::int64_t bytes) {
  Work work;
  work.task = Task::one_sided;
  work.ranks = 2;
  work.transfer = transfer;
  work.bytes = bytes;
  work.repeats = 5;
  return work;
}

/// What both ranks found wrong after a write, a spoil and a run.
template <class Link>
std::int64_t wrong_after(const Work& work) {
  const WindowLayout layout = layout_of(work);
  Memory memories[2] = {memory(layout.size), memory(layout.size)};
  const std::vector<Word*> windows = {reinterpret_cast<Word*>(memories[0].get()),
                                      reinterpret_cast<Word*>(memories[1].get())};
  Barrier barrier;
  std::int64_t wrong[2] = {};
  const auto play = [&](int rank) {
    OneSidedMethod<Link> method(work, rank, "", windows, rank);
    for (int op = 1; op <= 3; ++op) {
      method.write(op);
      method.spoil();
      pass(barrier, 2);
      method.run();
      pass(barrier, 2);
      wrong[rank] += method.count_wrong(op);
      pass(barrier, 2);
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  return wrong[0] + wrong[1];
}

TEST(OneSided, ByHandIsRight) {
  for (const Transfer transfer : transfers)
    for (const std::int64_t bytes : {8, 48, 56, 64, 4096})
      EXPECT_EQ(wrong_after<ByHand>(work_of(transfer, bytes)), 0) << int(transfer) << ", " << bytes << " bytes";
}

TEST(OneSided, ASignalLiesInTheLineOfWhatFitsBesideIt) {
  for (const std::int64_t bytes : {8, 48, 56}) EXPECT_EQ(layout_of(work_of(Transfer::message, bytes)).signal, 7);
  EXPECT_EQ(layout_of(work_of(Transfer::message, 64)).signal, 8);
  EXPECT_EQ(layout_of(work_of(Transfer::message, 72)).signal, 16);
  EXPECT_EQ(layout_of(work_of(Transfer::put_along, 16)).signal, 16);
}

/// Moves nothing, but says so in time.
class Careless : public ByHand {
 public:
  using ByHand::ByHand;
  void p(Word) {}
  void put(std::int64_t, const Word*) {}
  Word g() const { return 0; }
  void get(Word*) const {}
  void add(Word) {}
  Word fetch_add(Word) { return 0; }
  void send(const Word*, Word turn) { signal(turn); }
};

TEST(OneSided, WhoMovesNothingIsWrong) {
  for (const Transfer transfer : transfers) {
    if (transfer == Transfer::signal || transfer == Transfer::barrier) continue;
    for (const std::int64_t bytes : {8, 48})
      EXPECT_GT(wrong_after<Careless>(work_of(transfer, bytes)), 0) << int(transfer) << ", " << bytes << " bytes";
  }
}

struct OnlySends {
  OnlySends(const WindowLayout&, int) {}
  Word* window() const { return nullptr; }
  void send(const Word*, Word) {}
  void receive(Word) {}
};

TEST(OneSided, ALinkPlaysWhatItCan) {
  Work work = work_of(Transfer::put, 8);
  EXPECT_TRUE(can<ByHand>(work));
  EXPECT_FALSE(can<OnlySends>(work));
  work.repeats = 1;  // one put is a message
  EXPECT_TRUE(can<OnlySends>(work));
  EXPECT_FALSE(can<OnlySends>(work_of(Transfer::get, 8)));
  EXPECT_FALSE(can<OnlySends>(work_of(Transfer::barrier, 8)));
  EXPECT_TRUE(can<OnlySends>(work_of(Transfer::message, 8)));
}

}  // namespace
}  // namespace contest
