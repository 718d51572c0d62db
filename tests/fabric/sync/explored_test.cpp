// The lock-free protocols under every schedule up to a bound, with canaries: broken variants that must be caught.
#include "support/explored.hpp"

#include <gtest/gtest.h>

#include <tranship/fabric/sync/barrier.hpp>
#include <tranship/fabric/sync/claim.hpp>

namespace tranship::test {
namespace {

// The explorer itself: known litmus tests.

/// Stores to one word each, then reads the other's: both may read 0 on real machines, for stores wait in a buffer.
struct StoreBuffering {
  static constexpr int fibers = 2;
  ExploredSync::Word x, y;
  std::uint64_t seen[2] = {1, 1};

  void run(int fiber) {
    (fiber == 0 ? x : y).store_release(1);
    seen[fiber] = (fiber == 0 ? y : x).load_acquire();
  }
  void check() { ExploredSync::check(seen[0] + seen[1] > 0); }
};

/// A value and a flag.
template <class Sync>
struct MessagePassing {
  static constexpr int fibers = 2;
  typename Sync::Word value, flag;
  std::uint64_t seen = 7;

  void run(int fiber) {
    if (fiber == 0) {
      value.store_relaxed(7);
      flag.store_release(1);
    } else if (flag.load_acquire() == 1) {
      seen = value.load_relaxed();
    }
  }
  void check() { Sync::check(seen == 7); }
};

/// One reader never sees a word go back.
struct Coherence {
  static constexpr int fibers = 2;
  ExploredSync::Word x;
  std::uint64_t first = 0, second = 0;

  void run(int fiber) {
    if (fiber == 0) {
      x.store_relaxed(1);
      x.store_relaxed(2);
    } else {
      first = x.load_relaxed();
      second = x.load_relaxed();
    }
  }
  void check() { ExploredSync::check(second >= first); }
};

struct Counting {
  static constexpr int fibers = 3;
  ExploredSync::Word x;
  std::uint64_t before[fibers] = {};

  void run(int fiber) { before[fiber] = x.fetch_add(1); }
  void check() {
    std::sort(before, before + fibers);
    for (std::uint64_t i = 0; i < fibers; ++i) ExploredSync::check(before[i] == i);
  }
};

/// Each waits for the other to go first.
struct Deadlock {
  static constexpr int fibers = 2;
  ExploredSync::Word x, y;

  void run(int fiber) {
    while ((fiber == 0 ? y : x).load_acquire() == 0) ExploredSync::pause();
    (fiber == 0 ? x : y).store_release(1);
  }
  void check() {}
};

TEST(Explorer, finds_store_buffering) {
  expect_caught<StoreBuffering>("check failed");
}
TEST(Explorer, finds_a_relaxed_flag) {
  expect_caught<MessagePassing<RelaxedStoreSync>>("check failed");
}
TEST(Explorer, finds_a_relaxed_reader) {
  expect_caught<MessagePassing<RelaxedLoadSync>>("check failed");
}
TEST(Explorer, trusts_release_and_acquire) {
  expect_right<MessagePassing<ExploredSync>>();
}
TEST(Explorer, never_reads_backward) {
  expect_right<Coherence>();
}
TEST(Explorer, counts_atomically) {
  expect_right<Counting>();
}
TEST(Explorer, finds_a_deadlock) {
  expect_caught<Deadlock>("deadlock");
}

// The barrier, used as all_gather uses it: one barrier per round, payload in two buffers in turn.

template <class Sync, int ranks, int buffers = 2>
struct BarrierRounds {
  static constexpr int fibers = ranks;
  typename Sync::Word arrivals[ranks];
  typename Sync::template Payload<int> cells[buffers][ranks];

  void run(int me) {
    FlagBarrier<Sync> barrier(arrivals, ranks, me);
    for (int round = 1; round <= 3; ++round) {
      auto& buffer = cells[round % buffers];
      buffer[me].write(round);
      barrier.arrive();
      while (!barrier.passed()) Sync::pause();
      for (auto& cell : buffer) Sync::check(cell.read() == round);
    }
  }
  void check() {}
};

/// Waits for all but one.
template <class Sync>
struct HastyBarrier {
  static constexpr int fibers = 3;
  typename Sync::Word arrivals[3];
  typename Sync::template Payload<int> cells[3];

  void run(int me) {
    FlagBarrier<Sync> barrier(arrivals, 2, me % 2);
    cells[me].write(1);
    barrier.arrive();
    while (!barrier.passed()) Sync::pause();
    for (auto& cell : cells) Sync::check(cell.read() == 1);
  }
  void check() {}
};

TEST(ExploredBarrier, is_right_for_2_ranks) {
  expect_right<BarrierRounds<ExploredSync, 2>>({.preemptions = 3, .stale_reads = 3});
}
TEST(ExploredBarrier, is_right_for_3_ranks) {
  expect_right<BarrierRounds<ExploredSync, 3>>({.preemptions = 1, .stale_reads = 1});
}
TEST(ExploredBarrier, is_right_on_threads) {
  expect_right_on_threads<BarrierRounds<ThreadedSync, 3>>(200);
}
TEST(ExploredBarrier, canary_relaxed_arrival) {
  expect_caught<BarrierRounds<RelaxedStoreSync, 2>>("race");
}
TEST(ExploredBarrier, canary_relaxed_look) {
  expect_caught<BarrierRounds<RelaxedLoadSync, 2>>("race");
}
TEST(ExploredBarrier, canary_one_buffer) {
  expect_caught<BarrierRounds<ExploredSync, 2, 1>>("check failed");
}
TEST(ExploredBarrier, canary_one_rank_forgotten) {
  expect_caught<HastyBarrier<ExploredSync>>("check failed");
}

// The claim protocol: two ranks, a message each way, whoever is ready copies, several epochs over the same memory.

enum class Mistake { none, enters_before_its_data_is_final, claims_without_asking, completes_before_copying };

template <class Sync, Mistake mistake = Mistake::none, int parts = 1>
struct ClaimEpochs {
  static constexpr int fibers = 2;
  static constexpr std::uint64_t epochs = 2;
  typename Sync::Word entered[2], state[2];
  typename Sync::template Payload<int> source[2][parts], ghost[2][parts];

  static int sent(int rank, int part, std::uint64_t epoch) { return 100 * static_cast<int>(epoch) + 10 * part + rank; }

  void run(int me) {
    const int peer = 1 - me;
    // Message m goes from rank m to the other one.
    Claim<Sync> claims[2] = {{entered[0], entered[1], state[0], parts}, {entered[1], entered[0], state[1], parts}};
    for (std::uint64_t epoch = 1; epoch <= epochs; ++epoch) {
      if (mistake == Mistake::enters_before_its_data_is_final) enter_epoch(entered[me], epoch);
      for (int part = 0; part < parts; ++part) source[me][part].write(sent(me, part, epoch));
      if (mistake != Mistake::enters_before_its_data_is_final) enter_epoch(entered[me], epoch);
      for (;;) {
        for (int m : {me, peer}) progress(claims[m], m, epoch);
        if (claims[0].done(epoch) && claims[1].done(epoch)) break;
        Sync::pause();
      }
      for (int part = 0; part < parts; ++part) Sync::check(ghost[me][part].read() == sent(peer, part, epoch));
    }
  }
  void progress(Claim<Sync>& claim, int message, std::uint64_t epoch) {
    if (mistake != Mistake::claims_without_asking && !claim.ready(epoch)) return;
    // One part a turn: the other rank may have the next one.
    const int part = claim.try_claim(epoch);
    if (part < 0) return;
    if (mistake == Mistake::completes_before_copying) claim.complete();
    ghost[1 - message][part].write(source[message][part].read());
    if (mistake != Mistake::completes_before_copying) claim.complete();
  }
  void check() {}
};

TEST(ExploredClaim, is_right) {
  expect_right<ClaimEpochs<ExploredSync>>({.preemptions = 3, .stale_reads = 1});
}
TEST(ExploredClaim, is_right_in_parts) {
  expect_right<ClaimEpochs<ExploredSync, Mistake::none, 2>>({.preemptions = 2, .stale_reads = 1});
  expect_right<ClaimEpochs<ExploredSync, Mistake::none, 3>>({.preemptions = 2, .stale_reads = 0});
}
TEST(ExploredClaim, is_right_on_threads) {
  expect_right_on_threads<ClaimEpochs<ThreadedSync>>(200);
  expect_right_on_threads<ClaimEpochs<ThreadedSync, Mistake::none, 3>>(200);
}
TEST(ExploredClaim, canaries_in_parts) {
  expect_caught<ClaimEpochs<RelaxedStoreSync, Mistake::none, 2>>("race");
  expect_caught<ClaimEpochs<RelaxedLoadSync, Mistake::none, 2>>("race");
  expect_caught<ClaimEpochs<TornExchangeSync, Mistake::none, 2>>("race");
  expect_caught<ClaimEpochs<ExploredSync, Mistake::completes_before_copying, 2>>("race");
}
TEST(ExploredClaim, canary_relaxed_stores) {
  expect_caught<ClaimEpochs<RelaxedStoreSync>>("race");
}
TEST(ExploredClaim, canary_relaxed_loads) {
  expect_caught<ClaimEpochs<RelaxedLoadSync>>("race");
}
TEST(ExploredClaim, canary_torn_exchange) {
  expect_caught<ClaimEpochs<TornExchangeSync>>("race");
}
TEST(ExploredClaim, canary_early_entry) {
  expect_caught<ClaimEpochs<ExploredSync, Mistake::enters_before_its_data_is_final>>("race");
}
TEST(ExploredClaim, canary_unasked_claim) {
  expect_caught<ClaimEpochs<ExploredSync, Mistake::claims_without_asking>>("check failed");
}
TEST(ExploredClaim, canary_early_completion) {
  expect_caught<ClaimEpochs<ExploredSync, Mistake::completes_before_copying>>("race");
}

// Leaving: whoever leaves may free its memory, and the other one is never left waiting.

/// Leaves in the middle of a copy.
template <class Sync>
struct ImpatientClaim : Claim<Sync> {
  ImpatientClaim(typename Sync::Word& source, typename Sync::Word& target, typename Sync::Word& state)
      : Claim<Sync>(source, target, state), word(&state) {}
  using Claim<Sync>::left_bit;
  using Claim<Sync>::is_being_copied;
  void leave() { word->fetch_add(left_bit); }
  typename Sync::Word* word;
};
/// Looks, then stores: a claim may come in between.
template <class Sync>
struct CarelessClaim : ImpatientClaim<Sync> {
  using ImpatientClaim<Sync>::ImpatientClaim;
  void leave() {
    std::uint64_t seen;
    while (this->is_being_copied(seen = this->word->load_acquire())) Sync::pause();
    this->word->store_release(seen | this->left_bit);
  }
};
/// Forgets what was done.
template <class Sync>
struct ForgetfulClaim : ImpatientClaim<Sync> {
  using ImpatientClaim<Sync>::ImpatientClaim;
  void leave() {
    for (;;) {
      const std::uint64_t seen = this->word->load_acquire();
      if (seen & this->left_bit) return;
      if (!this->is_being_copied(seen) && this->word->compare_exchange(seen, this->left_bit)) return;
      Sync::pause();
    }
  }
};
/// Says nothing, as long as no copy is under way.
template <class Sync>
struct SilentClaim : ImpatientClaim<Sync> {
  using ImpatientClaim<Sync>::ImpatientClaim;
  void leave() {
    while (this->is_being_copied(this->word->load_acquire())) Sync::pause();
  }
};

constexpr int claim_epochs = 2;
constexpr int never = 2 * claim_epochs;

/// A message each way. Rank r leaves after `steps` half epochs: an even number means before it enters the next epoch,
/// an odd one in flight. All leave at the end.
template <class Sync, template <class> class Protocol, int steps0, int steps1 = never>
struct ClaimsLeft {
  static constexpr int fibers = 2;
  static constexpr int freed = -1;
  typename Sync::Word entered[2], state[2];
  typename Sync::template Payload<int> source[2], ghost[2];
  int done_epochs[2] = {};

  void run(int me) {
    const int peer = 1 - me, steps = me == 0 ? steps0 : steps1;
    Protocol<Sync> claims[2] = {{entered[0], entered[1], state[0]}, {entered[1], entered[0], state[1]}};
    for (int epoch = 1; epoch <= claim_epochs && steps > 2 * epoch - 2; ++epoch) {
      source[me].write(10 * epoch + me);
      enter_epoch(entered[me], epoch);
      bool lost = false;
      for (;;) {
        for (int m : {me, peer})
          if (claims[m].ready(epoch) && claims[m].try_claim(epoch) >= 0) {
            ghost[1 - m].write(source[m].read());
            claims[m].complete();
          }
        if (claims[0].done(epoch) && claims[1].done(epoch)) break;
        lost = claims[0].left_before(epoch) || claims[1].left_before(epoch);
        if (lost || steps == 2 * epoch - 1) break;
        Sync::pause();
      }
      if (lost || steps == 2 * epoch - 1) break;
      Sync::check(ghost[me].read() == 10 * epoch + peer);
      done_epochs[me] = epoch;
    }
    for (auto& claim : claims) claim.leave();
    // Whoever touches this rank's memory after this is in a race.
    source[me].write(freed);
    ghost[me].write(freed);
  }
  void check() {
    // What the one that left saw done, the other one saw done.
    if (steps1 == never) Sync::check(done_epochs[1] >= done_epochs[0]);
    if (steps0 == never) Sync::check(done_epochs[0] >= done_epochs[1]);
  }
};

template <int... steps>
void expect_right_whenever_one_leaves() {
  (expect_right<ClaimsLeft<ExploredSync, Claim, steps>>(
       {.preemptions = 2, .stale_reads = 1, .runs = runs_max_of_many()}),
   ...);
  (expect_right<ClaimsLeft<ExploredSync, Claim, never, steps>>(
       {.preemptions = 2, .stale_reads = 1, .runs = runs_max_of_many()}),
   ...);
}
template <int... steps>
void expect_right_whenever_both_leave() {
  (expect_right<ClaimsLeft<ExploredSync, Claim, steps / 4, steps % 4>>(
       {.preemptions = 2, .stale_reads = 1, .runs = runs_max_of_many()}),
   ...);
}

TEST(LeftClaim, is_right_whenever_one_leaves) {
  expect_right_whenever_one_leaves<0, 1, 2, 3, never>();
}
TEST(LeftClaim, is_right_whenever_both_leave) {
  expect_right_whenever_both_leave<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>();
}
TEST(LeftClaim, is_right_on_threads) {
  expect_right_on_threads<ClaimsLeft<ThreadedSync, Claim, 1>>(100);
  expect_right_on_threads<ClaimsLeft<ThreadedSync, Claim, 2>>(100);
  expect_right_on_threads<ClaimsLeft<ThreadedSync, Claim, 3, 3>>(100);
}
TEST(LeftClaim, canary_leaving_a_copy_under_way) {
  expect_caught<ClaimsLeft<ExploredSync, ImpatientClaim, 1>>("race");
}
TEST(LeftClaim, canary_leaving_without_exchange) {
  expect_caught<ClaimsLeft<ExploredSync, CarelessClaim, 1>>("race");
}
TEST(LeftClaim, canary_torn_exchange) {
  expect_caught<ClaimsLeft<TornExchangeSync, Claim, 1>>("race");
}
TEST(LeftClaim, canary_forgetting_what_was_done) {
  expect_caught<ClaimsLeft<ExploredSync, ForgetfulClaim, 2>>("check failed");
}
TEST(LeftClaim, canary_leaving_without_a_word) {
  expect_caught<ClaimsLeft<ExploredSync, SilentClaim, 2>>("deadlock");
}

}  // namespace
}  // namespace tranship::test
