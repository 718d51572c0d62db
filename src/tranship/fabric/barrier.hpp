// FlagBarrier: the barrier of ranks that share memory. One word per rank counts its arrivals; a rank has passed when it
// has seen all others. Words only grow, so a fast rank that arrives at the next barrier disturbs nobody; and a rank
// that waits always knows for whom.
//
// One phase: between two cores this costs one cache line each way, where a counter with a release flag costs two trips.
#pragma once

#include <cstdint>

#include <tranship/base/index.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {

template <class Sync>
class FlagBarrier {
 public:
  using Word = typename Sync::Word;

  /// `arrivals` points at one word per rank, all 0, shared by all ranks; each rank has a FlagBarrier of its own.
  FlagBarrier(Word* arrivals, int ranks, Rank me) : arrivals_(arrivals), ranks_(ranks), me_(me) {}

  /// Release: what this rank wrote before is seen by all that pass.
  void arrive() {
    arrivals_[me_].store_release(++epoch_);
    seen_count_ = 1;
  }
  /// Acquire. Goes on where the last call stopped, so a barrier reads each word of a rank that has arrived once.
  bool passed() {
    while (seen_count_ < ranks_ && arrivals_[missing()].load_acquire() >= epoch_) ++seen_count_;
    return seen_count_ == ranks_;
  }
  /// The rank that passed() waits for. Each rank begins at its right neighbour, which spreads the readers of a word.
  Rank missing() const { return (me_ + seen_count_) % ranks_; }

  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t arrivals_of(Rank rank) const { return arrivals_[rank].load_relaxed(); }

 private:
  Word* arrivals_;
  int ranks_;
  Rank me_;
  int seen_count_ = 1;
  std::uint64_t epoch_ = 0;
};

}  // namespace tranship
