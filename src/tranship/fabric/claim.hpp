// Claim: how the two ranks of one message agree, without a lock, on who copies it in each epoch, and when it is there.
//
// Each rank raises its `entered` word to e when its source is final and its ghosts may be overwritten. Once both sides
// have entered e, whichever comes first claims the message, copies straight from source to target, and marks it done.
// Both sides go on to e+1 only after done, so nobody enters it while its memory is still read or written.
//
//   state:  2e-2 (done with e-1)  --claim-->  2e-1 (somebody copies)  --complete-->  2e (done with e)
//
// Either side may leave for good, which adds a bit to the state: what is done stays done, nothing is claimed any more,
// and the other side sees left_before() instead of waiting for ever.
#pragma once

#include <cstdint>

#include <tranship/base/sync.hpp>

namespace tranship {

/// Why a rank leaves a message for good.
enum class Leaving : std::uint8_t {
  done,     ///< it has no more use for it
  failing,  ///< an exception is on its way out; its reason will be known when it has arrived
};

/// Raises a rank's `entered` word. Release: all that the rank wrote before is seen by whoever claims a message of
/// `epoch`.
template <class Word>
void enter_epoch(Word& entered, std::uint64_t epoch) {
  entered.store_release(epoch);
}

/// One message: two `entered` words and the word that it owns. Epochs count from 1; all words start at 0. Costs three
/// pointers; either side may hold its own copy.
template <class Sync>
class Claim {
 public:
  using Word = typename Sync::Word;

  Claim(Word& source_entered, Word& target_entered, Word& state)
      : source_entered_(&source_entered), target_entered_(&target_entered), state_(&state) {}

  /// Both sides have entered. Acquire: the source may be read and the target written by whoever then claims.
  bool ready(std::uint64_t epoch) const {
    return source_entered_->load_acquire() >= epoch && target_entered_->load_acquire() >= epoch;
  }
  /// True for one caller per epoch, which must copy and then call complete(). Only when ready(epoch). False for ever
  /// once somebody has left.
  bool try_claim(std::uint64_t epoch) { return state_->compare_exchange(2 * epoch - 2, 2 * epoch - 1); }
  /// Release: the copied bytes are seen by whoever sees done(epoch). A plain store, for nobody else writes the word of
  /// a claimed message.
  void complete(std::uint64_t epoch) { state_->store_release(2 * epoch); }
  /// Acquire: the bytes are there and the source may be written again.
  bool done(std::uint64_t epoch) const { return (state_->load_acquire() & ~(left_bit | failing_bit)) >= 2 * epoch; }

  /// After this nobody touches either side's memory for this message. Waits for a copy that has begun; the one that
  /// copies may not call it before complete().
  void leave(Leaving why = Leaving::done) {
    for (;;) {
      const std::uint64_t seen = state_->load_acquire();
      if (seen & left_bit) return;
      const bool being_copied = seen % 2 == 1;
      if (!being_copied && state_->compare_exchange(seen, seen | bits_of(why))) return;
      Sync::pause();
    }
  }
  /// Somebody has left, and the message of `epoch` was not done before: it never will be.
  bool left_before(std::uint64_t epoch) const {
    const std::uint64_t seen = state_->load_acquire();
    return (seen & left_bit) != 0 && (seen & ~(left_bit | failing_bit)) < 2 * epoch;
  }
  /// Whoever has left did so because it fails: it will say why.
  bool left_failing() const { return (state_->load_acquire() & failing_bit) != 0; }

 private:
  static constexpr std::uint64_t left_bit = std::uint64_t(1) << 63;
  static constexpr std::uint64_t failing_bit = std::uint64_t(1) << 62;
  static constexpr std::uint64_t bits_of(Leaving why) {
    return why == Leaving::failing ? left_bit | failing_bit : left_bit;
  }

  Word* source_entered_;
  Word* target_entered_;
  Word* state_;
};

}  // namespace tranship
