// Private: Claim, how the two ranks of one message agree, without a lock, on who copies what of it in each epoch, and
// when it is there.
//
// Each rank raises its `entered` word to e when its source is final and its ghosts may be overwritten. Once both sides
// have entered e, a side that has time claims a part of the message, copies it straight from source to target, and
// marks it done; so both copy when both have time. Both sides go on to e+1 only after all parts are done, so neither
// enters it while its memory is still read or written.
//
//   state (epoch, parts claimed, parts done), of P parts:
//   (e-1, P, P)  --claim-->  (e, 1, 0)  --claim-->  (e, 2, 0)  --complete-->  (e, 2, 1)  ...  (e, P, P)
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

/// What leaving adds to a word that counts in the bits below.
struct LeavingBits {
  static constexpr std::uint64_t left_bit = std::uint64_t(1) << 63;
  static constexpr std::uint64_t failing_bit = std::uint64_t(1) << 62;
  static constexpr std::uint64_t bits_of(Leaving why) {
    return why == Leaving::failing ? left_bit | failing_bit : left_bit;
  }
};

/// Raises a rank's `entered` word. Release: all that the rank wrote before is seen by the side that claims a message of
/// `epoch`.
template <class Word>
void enter_epoch(Word& entered, std::uint64_t epoch) {
  entered.store_release(epoch);
}

/// Parts that one message has at most.
inline constexpr int claim_parts_max = (1 << 12) - 1;

/// One message: two `entered` words and the word that it owns. Epochs count from 1; all words start at 0. Costs three
/// pointers; either side may hold its own copy, made with the same number of parts.
template <class Sync>
class Claim : protected LeavingBits {
 public:
  using Word = typename Sync::Word;

  /// 1 to claim_parts_max parts.
  Claim(Word& source_entered, Word& target_entered, Word& state, int parts = 1)
      : source_entered_(&source_entered), target_entered_(&target_entered), state_(&state), parts_(parts) {}

  /// Both sides have entered. Acquire: the source may be read and the target written by the side that then claims.
  bool ready(std::uint64_t epoch) const {
    return source_entered_->load_acquire() >= epoch && target_entered_->load_acquire() >= epoch;
  }
  /// A part that the caller must copy and then complete(); each is given out once per epoch. -1 when none is left, and
  /// for ever once a side has left. Only when ready(epoch).
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
  /// Release: the copied bytes are seen by a side that sees done(epoch).
  void complete() { state_->fetch_add(one_done); }
  /// Acquire: the bytes are there and the source may be written again.
  bool done(std::uint64_t epoch) const { return is_done(state_->load_acquire(), epoch); }

  /// After this neither side touches the other's memory for this message. Waits for copies that have begun, unless the
  /// other side `has_ended()`, which then does not go on with them; one that copies may not call it before complete().
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
  /// A side has left, and the message of `epoch` was not done before: it never will be.
  bool left_before(std::uint64_t epoch) const {
    const std::uint64_t seen = state_->load_acquire();
    return (seen & left_bit) != 0 && !is_done(seen, epoch);
  }
  /// The side that has left did so because it fails: it will say why.
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
