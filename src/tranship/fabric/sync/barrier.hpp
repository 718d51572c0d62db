// Private: FlagBarrier: the barrier of ranks that share memory. One word per rank counts its arrivals; a rank has
// passed when it has seen all others arrive. Words only grow, so a fast rank that arrives at the next barrier disturbs
// no other rank, and a waiting rank always knows which rank it waits for.
//
// There is one phase: between two cores it costs one cache line each way, where a counter with a release flag costs two
// round trips. Besides the count, a word carries a 16-bit fingerprint of the call, which must be the same on all ranks.
// A rank that is one barrier ahead has already compared ours with its own, so its new fingerprint need not be compared.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tranship/base/index.hpp>
#include <tranship/base/sync.hpp>

namespace tranship {

template <class Sync>
class FlagBarrier {
 public:
  using Word = typename Sync::Word;

  /// The word of rank r is `arrivals[r * stride]`, or `arrivals[places[r] * stride]` if `places` is given, which must
  /// outlive this object. All words start at 0 and are shared by all ranks. Each rank has a FlagBarrier of its own.
  FlagBarrier(Word* arrivals, int ranks, Rank me, std::ptrdiff_t stride = 1, const Rank* places = nullptr)
      : arrivals_(arrivals), stride_(stride), places_(places), ranks_(ranks), me_(me) {}

  /// Continues where another FlagBarrier over these words has stopped. Call it before the first arrival.
  void begin_at(std::uint64_t epoch) { epoch_ = epoch; }

  /// Release: a rank that passes sees everything that this rank wrote before.
  void arrive(std::uint16_t fingerprint = 0) {
    fingerprint_ = fingerprint;
    word(me_).store_release(++epoch_ << 16 | fingerprint);
    seen_count_ = 1;
    differs_ = false;
  }
  /// Returns true when all ranks have arrived. Acquire. Continues where the last call stopped, so a barrier reads the
  /// word of an arrived rank once.
  bool passed() {
    for (; seen_count_ < ranks_; ++seen_count_) {
      const std::uint64_t seen = word(missing()).load_acquire();
      if (seen >> 16 < epoch_) return false;
      if (seen >> 16 == epoch_ && static_cast<std::uint16_t>(seen) != fingerprint_) differs_ = true;
    }
    return true;
  }
  /// Returns true, after passed(), if some rank has arrived with another fingerprint.
  bool differs() const { return differs_; }
  /// Returns the rank that passed() waits for. Each rank begins at its right neighbour, which spreads the readers of a
  /// word.
  Rank missing() const {
    const Rank neighbour = me_ + seen_count_;
    return neighbour < ranks_ ? neighbour : neighbour - ranks_;
  }

  std::uint64_t epoch() const { return epoch_; }
  std::uint64_t arrivals_of(Rank rank) const { return word(rank).load_relaxed() >> 16; }

 private:
  Word& word(Rank rank) const { return arrivals_[(places_ ? places_[rank] : rank) * stride_]; }

  Word* arrivals_;
  std::ptrdiff_t stride_;
  const Rank* places_;
  int ranks_;
  Rank me_;
  int seen_count_ = 1;
  std::uint16_t fingerprint_ = 0;
  bool differs_ = false;
  std::uint64_t epoch_ = 0;
};

}  // namespace tranship
