// Engines of ranks on two machines, whose messages arrive when the test says so.
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/seam/board.hpp>

namespace tranship::test {
namespace {

struct Message {
  Rank from;
  std::vector<std::byte> head, body;
};
using Mailboxes = std::vector<std::deque<Message>>;

class HeldWire final : public Wire {
 public:
  HeldWire(Mailboxes& boxes, Rank rank) : boxes_(boxes), rank_(rank) {}

  void send(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
            const std::shared_ptr<Lent>&) override {
    boxes_[std::size_t(peer)].push_back({rank_, {head.begin(), head.end()}, {body.begin(), body.end()}});
  }
  bool progress(Receiver& receiver) override {
    auto& mine = boxes_[std::size_t(rank_)];
    if (is_held || mine.empty()) return false;
    const Message message = std::move(mine.front());
    mine.pop_front();
    receiver.received(message.from, message.head, message.body);
    return true;
  }
  bool is_idle() const override { return true; }
  void wait(std::int64_t) override {}
  void wake() noexcept override {}

  bool is_held = false;

 private:
  Mailboxes& boxes_;
  Rank rank_;
};

// Ranks 0 and 2 share a machine, and its board; rank 1 is elsewhere.
TEST(HostsEngine, a_rank_has_finished_for_those_to_whom_all_has_come_that_it_has_sent) {
  constexpr int ranks = 3;
  std::vector<std::max_align_t> memory(Board::size_bytes(ranks) / sizeof(std::max_align_t) + 64);
  void* aligned = memory.data();
  std::size_t space = memory.size() * sizeof(std::max_align_t);
  ASSERT_NE(std::align(64, Board::size_bytes(ranks), aligned, space), nullptr);
  Board of_0(ranks, aligned), of_2(ranks, aligned), of_1(ranks);
  Mailboxes boxes(ranks);
  HeldWire wires[ranks] = {{boxes, 0}, {boxes, 1}, {boxes, 2}};
  std::byte heap[64] = {};
  constexpr auto by_caller = HostsEngine::Serving::by_caller;
  HostsEngine engine_0(wires[0], of_0, 0, {.first = 0, .stride = 2, .count = 2}, heap, by_caller);
  HostsEngine engine_1(wires[1], of_1, 1, {.first = 1, .count = 1}, heap, by_caller);
  HostsEngine engine_2(wires[2], of_2, 2, {.first = 0, .stride = 2, .count = 2}, heap, by_caller);
  const HostsEngine::Key meeting{.slot = 0, .number = 1};

  wires[0].is_held = true;
  const std::byte said{7};
  engine_1.bring(0, meeting, std::span(&said, 1));
  of_1.post_finished(1);
  while (engine_2.progress()) {
  }
  EXPECT_TRUE(of_2.finished(1));
  EXPECT_EQ(of_0.line(1), "finished") << "the machine knows it";
  EXPECT_FALSE(of_0.finished(1) || of_0.ended(1)) << "what it has brought to rank 0 has not come";
  wires[0].is_held = false;
  while (engine_0.progress()) {
  }
  EXPECT_TRUE(of_0.finished(1) && of_0.ended(1));
  EXPECT_TRUE(engine_0.take(1, meeting).has_value());

  of_0.post_finished(0);
  of_2.post_finished(2);
  while (engine_1.progress()) {
  }
}

}  // namespace
}  // namespace tranship::test
