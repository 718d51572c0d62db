// Private: Claim: the lock-free protocol by which the two ranks of one message agree which of them copies which part in
// each epoch, and when all parts have arrived.
//
// Each rank raises its `entered` word to e when its source is final and its ghosts may be overwritten. Once both sides
// have entered e, either side may claim a part of the message, copy it straight from source to target, and mark it
// done; both copy if both have time. Both sides go on to e+1 only after all parts are done, so neither enters it while
// its memory is still read or written.
//
//   state (epoch, parts claimed, parts done), of P parts:
//   (e-1, P, P)  --claim-->  (e, 1, 0)  --claim-->  (e, 2, 0)  --complete-->  (e, 2, 1)  ...  (e, P, P)
//
// Either side may leave for good, which adds a bit to the state: parts that are done stay done, no part is claimed any
// more, and the other side sees left_before() instead of waiting for ever.
#pragma once

#include <cstdint>

#include <tranship/base/sync.hpp>

namespace tranship {

/// Why a rank leaves a message for good.
enum class Leaving : std::uint8_t {
  done,     ///< it no longer needs the message
  failing,  ///< an exception is propagating; its text becomes known when it arrives
};

/// The bits that leaving adds to a word whose lower bits count.
struct LeavingBits {
  static constexpr std::uint64_t left_bit = std::uint64_t(1) << 63;
  static constexpr std::uint64_t failing_bit = std::uint64_t(1) << 62;
  static constexpr std::uint64_t bits_of(Leaving why) {
    return why == Leaving::failing ? left_bit | failing_bit : left_bit;
  }
};

/// Raises a rank's `entered` word. Release: a side that claims parts of the message of `epoch` sees everything that the
/// rank wrote before.
template <class Word>
void enter_epoch(Word& entered, std::uint64_t epoch) {
  entered.store_release(epoch);
}

/// The maximum number of parts of one message.
inline constexpr int claim_parts_max = (1 << 12) - 1;

/// One message: two `entered` words and a state word. Epochs count from 1; all words start at 0. Holds three pointers;
/// either side may use a copy of its own, made with the same number of parts.
template <class Sync>
class Claim : protected LeavingBits {
 public:
  using Word = typename Sync::Word;

  /// `parts` is 1 to claim_parts_max.
  Claim(Word& source_entered, Word& target_entered, Word& state, int parts = 1)
      : source_entered_(&source_entered), target_entered_(&target_entered), state_(&state), parts_(parts) {}

  /// Returns true when both sides have entered. Acquire: the side that then claims may read the source and write the
  /// target.
  bool ready(std::uint64_t epoch) const {
    return source_entered_->load_acquire() >= epoch && target_entered_->load_acquire() >= epoch;
  }
  /// Returns a part that the caller must copy and then complete(); each part is given out once per epoch. Returns -1
  /// when none is left, and always once a side has left. Requires ready(epoch).
  int try_claim(std::uint64_t epoch) {
    for (;;) {
      const std::uint64_t seen = state_->load_acquire();
      if (seen & left_bit) return -1;
      const bool begun = epoch_of(seen) == epoch;
      const std::uint64_t claimed = begun ? claimed_of(seen) : 0;
      if (epoch_of(seen) > epoch || claimed == static_cast<std::uint64_t>(parts_)) return -1;
      const std::uint64_t next = begun ? seen + one_claimed : epoch * one_epoch + one_claimed;
      if (state_->compare_exchange(seen, next)) return static_cast<int>(claimed);
    }
  }
  /// Release: a side that sees done(epoch) sees the copied bytes.
  void complete() { state_->fetch_add(one_done); }
  /// Acquire: the bytes have arrived and the source may be written again.
  bool done(std::uint64_t epoch) const { return is_done(state_->load_acquire(), epoch); }

  /// After this call, neither side touches the other's memory for this message. Waits for copies in progress, unless
  /// the other side `has_ended()` and so does not continue them. A side that copies must complete() before it calls
  /// this.
  template <class Ended>
  void leave(Leaving why, Ended&& has_ended) {
    for (;;) {
      const std::uint64_t seen = state_->load_acquire();
      if (seen & left_bit) return;
      if ((!is_being_copied(seen) || has_ended()) && state_->compare_exchange(seen, seen | bits_of(why))) return;
      Sync::pause();
    }
  }
  void leave(Leaving why = Leaving::done) {
    leave(why, [] { return false; });
  }
  /// Returns true if a side has left before the message of `epoch` was done; it never will be done.
  bool left_before(std::uint64_t epoch) const {
    const std::uint64_t seen = state_->load_acquire();
    return (seen & left_bit) != 0 && !is_done(seen, epoch);
  }
  /// Returns true if the side that has left did so because it fails; its error will tell why.
  bool left_failing() const { return (state_->load_acquire() & failing_bit) != 0; }

 protected:
  static constexpr std::uint64_t one_done = 1;
  static constexpr std::uint64_t one_claimed = std::uint64_t(1) << 12;
  static constexpr std::uint64_t one_epoch = std::uint64_t(1) << 24;

  static constexpr std::uint64_t done_of(std::uint64_t seen) { return seen % one_claimed; }
  static constexpr std::uint64_t claimed_of(std::uint64_t seen) { return seen % one_epoch / one_claimed; }
  static constexpr std::uint64_t epoch_of(std::uint64_t seen) { return seen % failing_bit / one_epoch; }
  static constexpr bool is_being_copied(std::uint64_t seen) { return claimed_of(seen) != done_of(seen); }
  bool is_done(std::uint64_t seen, std::uint64_t epoch) const {
    return epoch_of(seen) > epoch || (epoch_of(seen) == epoch && done_of(seen) == static_cast<std::uint64_t>(parts_));
  }

 private:
  Word* source_entered_;
  Word* target_entered_;
  Word* state_;
  int parts_;
};

}  // namespace tranship
