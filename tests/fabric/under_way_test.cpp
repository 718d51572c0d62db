// What a rank has started moves on in its waits and polls, in sub-worlds, too, until it leaves the list.
#include <atomic>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/fabric/under_way.hpp>

#include "support/ranks.hpp"

namespace tranship::test {
namespace {

struct Counted final : UnderWay::Item {
  int waits = 0, polls = 0, moves_left = 1 << 30;
  UnderWay* within = nullptr;

  ~Counted() { leave(); }

  void move_on(Meanwhile meanwhile) override {
    ++(meanwhile == Meanwhile::waits ? waits : polls);
    if (within) within->move_all(meanwhile);
    if (--moves_left == 0) leave();
  }
  std::shared_ptr<void> kept() override { return nullptr; }
};

TEST(UnderWay, moves_all_or_one_in_turn) {
  UnderWay list;
  list.move_all(Meanwhile::waits);
  std::optional<Counted> a(std::in_place), b(std::in_place), c(std::in_place);
  for (auto* item : {&a, &b, &c}) list.join(**item);
  list.join(*b);  // it is there already
  list.move_all(Meanwhile::waits);
  EXPECT_EQ(a->waits + b->waits + c->waits, 3);
  for (int i = 0; i < 4; ++i) list.move_one(Meanwhile::polls, *a);
  EXPECT_TRUE(a->polls == 0 && b->polls == 2 && c->polls == 2);
  b->moves_left = 1;
  list.move_all(Meanwhile::waits);
  list.move_all(Meanwhile::waits);
  EXPECT_EQ(b->waits, 2);
  a.reset();
  list.move_all(Meanwhile::waits);
  EXPECT_EQ(c->waits, 4);
  list.move_one(Meanwhile::waits, *c);
  EXPECT_EQ(c->waits, 4);
  c->moves_left = 1;
  list.move_one(Meanwhile::waits, *b);
  list.move_one(Meanwhile::waits, *b);
  EXPECT_EQ(c->waits, 5);
}

TEST(UnderWay, moves_nothing_from_within_and_may_go_before_its_items) {
  Counted a, b;
  {
    UnderWay list;
    a.within = &list;
    list.join(a);
    list.join(b);
    list.move_all(Meanwhile::waits);
    EXPECT_TRUE(a.waits == 1 && b.waits == 1);
  }
  UnderWay other;
  other.join(b);
  other.move_all(Meanwhile::polls);
  EXPECT_TRUE(a.polls == 0 && b.polls == 1);
}

// As a collector of garbage may, another thread destroys what the rank moves meanwhile.
TEST(UnderWay, items_are_destroyed_by_another_thread) {
  UnderWay list;
  std::atomic<bool> is_over = false;
  std::vector<std::unique_ptr<Counted>> items;
  for (int i = 0; i < 2000; ++i) list.join(*items.emplace_back(std::make_unique<Counted>()));
  std::thread other([&] {
    while (!items.empty()) items.pop_back();
    is_over = true;
  });
  while (!is_over) list.move_all(Meanwhile::waits);
  other.join();
  Counted last;
  list.join(last);
  list.move_all(Meanwhile::polls);
  EXPECT_EQ(last.polls, 1);
}

class UnderWayOn : public OnRanks {};
INSTANTIATE_TEST_SUITE_P(On, UnderWayOn,
                         ::testing::Combine(::testing::Values(On::threads, On::messaged, On::sub),
                                            ::testing::Values(2)),
                         OnRanks::name);

TEST_P(UnderWayOn, every_wait_moves_it_on) {
  run([](World& world) {
    Counted item;
    SubWorld sub(world.team());
    world.under_way().join(item);
    const auto flags = world.shared_flags(1, "test");
    // The last rank to come may find the barrier open; so the wait is one for what the item does itself.
    for (World* waits : {&world, &sub.world()}) {
      const int before = item.waits;
      waits->wait_until([&] { return item.waits > before; }, WaitNote("the item"));
    }
    const int before = item.polls;
    WaitNote note("polls");
    while (item.polls == before) (void)sub.world().look(note);
    world.barrier();
  });
}

}  // namespace
}  // namespace tranship::test
