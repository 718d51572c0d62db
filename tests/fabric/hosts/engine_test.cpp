// Engines of ranks on two machines, whose messages arrive when the test says so, and the thread that serves them.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/hosts/engine.hpp>
#include <tranship/fabric/seam/board.hpp>

namespace tranship::test {
namespace {

struct Message {
  Rank from;
  std::vector<std::byte> head, body;
};
struct Mailboxes {
  explicit Mailboxes(int ranks) : of_rank(std::size_t(ranks)) {}
  std::mutex mutex;
  std::vector<std::deque<Message>> of_rank;
};

class HeldWire final : public Wire {
 public:
  HeldWire(Mailboxes& boxes, Rank rank) : boxes_(boxes), rank_(rank) {}

  void send(Rank peer, std::span<const std::byte> head, std::span<const std::byte> body,
            const std::shared_ptr<Lent>&) override {
    const std::lock_guard lock(boxes_.mutex);
    boxes_.of_rank[std::size_t(peer)].push_back({rank_, {head.begin(), head.end()}, {body.begin(), body.end()}});
  }
  bool progress(Receiver& receiver) override {
    const std::optional<Message> message = next();
    if (message) receiver.received(message->from, message->head, message->body);
    return message.has_value();
  }
  bool is_idle() const override { return true; }
  void wait(std::int64_t) override { std::this_thread::yield(); }
  void wake() noexcept override {}

  bool is_held = false;

 private:
  std::optional<Message> next() {
    const std::lock_guard lock(boxes_.mutex);
    auto& mine = boxes_.of_rank[std::size_t(rank_)];
    if (is_held || mine.empty()) return std::nullopt;
    Message message = std::move(mine.front());
    mine.pop_front();
    return message;
  }

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

/// A world of two machines, of which this process has both ranks: the second one serves nobody by itself.
struct Pair {
  explicit Pair(HostsEngine::Serving serving)
      : first(wires[0], boards[0], 0, {.first = 0, .count = 1}, reinterpret_cast<std::byte*>(&heap), serving),
        second(wires[1], boards[1], 1, {.first = 1, .count = 1}, reinterpret_cast<std::byte*>(&heap),
               HostsEngine::Serving::by_caller) {}

  /// Whether the first rank, which makes no call, has what the second one puts within ten seconds.
  bool first_gets(std::uint64_t value) {
    second.put({.peer = 0, .offset_bytes = 0}, row_of(1, 8), 8, &value, nullptr);
    const Deadline deadline = Deadline::after_ns(10'000'000'000);
    while (std::atomic_ref(heap).load() != value && !deadline.passed()) std::this_thread::yield();
    return std::atomic_ref(heap).load() == value;
  }
  void end() {
    boards[0].post_finished(0);
    boards[1].post_finished(1);
    while (!(boards[0].ended(1) && boards[1].ended(0))) {
      first.progress();
      second.progress();
    }
  }

  Mailboxes boxes{2};
  HeldWire wires[2] = {{boxes, 0}, {boxes, 1}};
  Board boards[2] = {Board(2), Board(2)};
  alignas(8) std::uint64_t heap = 0;
  HostsEngine first, second;
};

std::ptrdiff_t threads_of_process() {
  using Entries = std::filesystem::directory_iterator;
  return std::distance(Entries("/proc/self/task"), Entries());
}

TEST(HostsServer, one_thread_serves_all_worlds_of_a_process) {
  constexpr auto by_thread = HostsEngine::Serving::by_thread;
  std::thread([] {}).join();  // a sanitizer begins a thread of its own with the first one
  const std::ptrdiff_t before = threads_of_process();
  for (int round = 0; round < 3; ++round) {
    auto a = std::make_unique<Pair>(by_thread), b = std::make_unique<Pair>(by_thread);
    EXPECT_EQ(threads_of_process(), before + 1);
    EXPECT_TRUE(a->first_gets(1) && b->first_gets(2) && a->first_gets(3));
    a->end();
    a.reset();  // the one that the thread has served first
    EXPECT_TRUE(b->first_gets(4));
    auto c = std::make_unique<Pair>(by_thread);
    EXPECT_TRUE(c->first_gets(5) && b->first_gets(6));
    EXPECT_EQ(threads_of_process(), before + 1);
    b->end();
    b.reset();
    c->end();
    c.reset();
    const Deadline deadline = Deadline::after_ns(10'000'000'000);
    while (threads_of_process() > before && !deadline.passed()) std::this_thread::yield();
    EXPECT_EQ(threads_of_process(), before) << "the last world has ended";
  }
}

}  // namespace
}  // namespace tranship::test
