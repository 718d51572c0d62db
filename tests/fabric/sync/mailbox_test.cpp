// The mailbox under every schedule up to a bound, left at any moment by either side, with canaries.
#include <gtest/gtest.h>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/sync/claim.hpp>
#include <tranship/fabric/sync/mailbox.hpp>

#include "support/explored.hpp"

namespace tranship::test::mailbox_test {
namespace {

constexpr std::uint64_t left_bit = std::uint64_t(1) << 63;
constexpr int epochs = 3;

/// A mailbox whose word a broken variant can reach.
template <class Sync>
struct OpenMailbox : Mailbox<Sync> {
  explicit OpenMailbox(typename Sync::Word& state) : Mailbox<Sync>(state), word(&state) {}
  typename Sync::Word* word;
};
/// Does not wait for a filling that has begun.
template <class Sync>
struct ImpatientMailbox : OpenMailbox<Sync> {
  using OpenMailbox<Sync>::OpenMailbox;
  void leave() { this->word->fetch_add(left_bit); }
};
/// Looks, then stores: a filling may begin in between.
template <class Sync>
struct CarelessMailbox : OpenMailbox<Sync> {
  using OpenMailbox<Sync>::OpenMailbox;
  void leave() {
    std::uint64_t seen;
    while ((seen = this->word->load_acquire()) % 3 == 1) Sync::pause();
    this->word->store_release(seen | left_bit);
  }
};
/// Forgets that the buffer is full.
template <class Sync>
struct ForgetfulMailbox : OpenMailbox<Sync> {
  using OpenMailbox<Sync>::OpenMailbox;
  void leave() {
    for (;;) {
      const std::uint64_t seen = this->word->load_acquire();
      if (seen & left_bit) return;
      if (seen % 3 != 1 && this->word->compare_exchange(seen, left_bit)) return;
      Sync::pause();
    }
  }
};
/// Empties by a plain store, which wipes out that the sender has left.
template <class Sync>
struct WipingMailbox : OpenMailbox<Sync> {
  using OpenMailbox<Sync>::OpenMailbox;
  void emptied() { this->word->store_release((this->word->load_acquire() & ~left_bit) + 1); }
};
/// Raises the flag before the last write.
template <class Sync>
struct HastyMailbox : OpenMailbox<Sync> {
  using OpenMailbox<Sync>::OpenMailbox;
  static constexpr bool fills_early = true;
};

/// The sender leaves after `fills` messages, the receiver after `reads`; both leave in the end at the latest.
template <class Sync, template <class> class Protocol = Mailbox, int fills = epochs, int reads = epochs>
struct Mail {
  static constexpr int fibers = 2;
  static constexpr int freed = -1;
  typename Sync::Word state;
  typename Sync::template Payload<int> buffer[2];
  int sent = 0, received = 0;

  void run(int fiber) {
    Protocol<Sync> mailbox(state);
    if (fiber == 0)
      send(mailbox);
    else
      receive(mailbox);
  }
  void send(Protocol<Sync>& mailbox) {
    for (int epoch = 1; epoch <= fills; ++epoch) {
      while (!mailbox.try_fill(epoch)) {
        if (mailbox.left_before(epoch)) return mailbox.leave();
        Sync::pause();
      }
      buffer[0].write(epoch);
      if constexpr (requires { mailbox.fills_early; }) mailbox.filled(epoch);
      buffer[1].write(-epoch);
      if constexpr (!requires { mailbox.fills_early; }) mailbox.filled(epoch);
      sent = epoch;
    }
    mailbox.leave();
  }
  void receive(Protocol<Sync>& mailbox) {
    for (int epoch = 1; epoch <= reads; ++epoch) {
      bool lost = false;
      while (!mailbox.full(epoch) && !(lost = mailbox.left_before(epoch))) Sync::pause();
      if (lost) break;
      Sync::check(buffer[0].read() == epoch && buffer[1].read() == -epoch);
      mailbox.emptied();
      received = epoch;
    }
    mailbox.leave();
    for (auto& half : buffer) half.write(freed);  // a write of the sender after this is a race
  }
  void check() {
    Sync::check(received <= sent && sent <= received + 1);
    // What was filled is read, also when the sender has left since.
    if (reads == epochs) Sync::check(received == fills && sent == fills);
  }
};

template <int... fills>
void expect_right_whenever_the_sender_leaves() {
  (expect_right<Mail<ExploredSync, Mailbox, fills>>({.preemptions = 3, .stale_reads = 2, .runs = runs_max_of_many()}),
   ...);
}
template <int... reads>
void expect_right_whenever_the_receiver_leaves() {
  (expect_right<Mail<ExploredSync, Mailbox, epochs, reads>>(
       {.preemptions = 3, .stale_reads = 2, .runs = runs_max_of_many()}),
   ...);
}
template <int... both>
void expect_right_whenever_both_leave() {
  (expect_right<Mail<ExploredSync, Mailbox, both / epochs, both % epochs>>(
       {.preemptions = 3, .stale_reads = 1, .runs = runs_max_of_many()}),
   ...);
}

TEST(ExploredMailbox, is_right) {
  expect_right<Mail<ExploredSync>>({.preemptions = 3, .stale_reads = 2});
}
TEST(ExploredMailbox, is_right_whenever_the_sender_leaves) {
  expect_right_whenever_the_sender_leaves<0, 1, 2>();
}
TEST(ExploredMailbox, is_right_whenever_the_receiver_leaves) {
  expect_right_whenever_the_receiver_leaves<0, 1, 2>();
}
TEST(ExploredMailbox, is_right_whenever_both_leave) {
  expect_right_whenever_both_leave<0, 1, 2, 3, 4, 5, 6, 7, 8>();
}
TEST(ExploredMailbox, is_right_on_threads) {
  expect_right_on_threads<Mail<ThreadedSync>>(100);
  expect_right_on_threads<Mail<ThreadedSync, Mailbox, 1>>(100);
  expect_right_on_threads<Mail<ThreadedSync, Mailbox, epochs, 1>>(100);
}
TEST(ExploredMailbox, canary_filled_before_the_last_write) {
  expect_caught<Mail<ExploredSync, HastyMailbox>>("race");
}
TEST(ExploredMailbox, canary_relaxed_stores) {
  expect_caught<Mail<RelaxedStoreSync>>("race");
}
TEST(ExploredMailbox, canary_relaxed_loads) {
  expect_caught<Mail<RelaxedLoadSync>>("race");
}
TEST(ExploredMailbox, canary_leaving_a_filling_under_way) {
  expect_caught<Mail<ExploredSync, ImpatientMailbox, epochs, 1>>("race");
}
TEST(Mailbox, says_which_epochs_were_emptied_also_when_a_side_has_left) {
  RealSync::Word word{};
  Mailbox<RealSync> sender(word), receiver(word);
  for (std::uint64_t epoch = 1; epoch < 4; ++epoch) {
    ASSERT_TRUE(sender.try_fill(epoch));
    EXPECT_FALSE(sender.was_emptied(epoch));
    sender.filled(epoch);
    EXPECT_FALSE(sender.was_emptied(epoch));
    ASSERT_TRUE(receiver.full(epoch));
    receiver.emptied();
    EXPECT_TRUE(sender.was_emptied(epoch));
    EXPECT_FALSE(sender.was_emptied(epoch + 1));
  }
  EXPECT_FALSE(sender.has_left());
  receiver.leave();
  EXPECT_TRUE(sender.has_left());
  EXPECT_TRUE(sender.was_emptied(3));
  EXPECT_FALSE(sender.was_emptied(4));
}

TEST(Mailbox, is_left_though_who_filled_it_has_ended) {
  RealSync::Word word{};
  Mailbox<RealSync> mailbox(word);
  ASSERT_TRUE(mailbox.try_fill(1));
  int looks = 0;
  mailbox.leave(Leaving::done, [&] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
  EXPECT_TRUE(mailbox.left_before(1));
}

TEST(Claim, is_left_though_who_copied_has_ended) {
  RealSync::Word entered{}, word{};
  Claim<RealSync> claim(entered, entered, word, 2);
  ASSERT_EQ(claim.try_claim(1), 0);
  int looks = 0;
  claim.leave(Leaving::failing, [&] { return ++looks == 3; });
  EXPECT_EQ(looks, 3);
  EXPECT_TRUE(claim.left_before(1));
  EXPECT_TRUE(claim.left_failing());
  EXPECT_EQ(claim.try_claim(1), -1);
}

TEST(ExploredMailbox, canary_leaving_without_exchange) {
  expect_caught<Mail<ExploredSync, CarelessMailbox, epochs, 1>>("race");
}
TEST(ExploredMailbox, canary_torn_exchange) {
  expect_caught<Mail<TornExchangeSync, Mailbox, epochs, 1>>("race");
}
TEST(ExploredMailbox, canary_forgetting_that_it_is_full) {
  expect_caught<Mail<ExploredSync, ForgetfulMailbox, 1>>("check failed");
}
TEST(ExploredMailbox, canary_wiping_out_that_the_sender_left) {
  expect_caught<Mail<ExploredSync, WipingMailbox, 1>>("deadlock");
}

}  // namespace
}  // namespace tranship::test::mailbox_test
