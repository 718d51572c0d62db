// Private: Mailbox: the lock-free protocol by which a sender and a receiver share one buffer, epoch after epoch. The
// sender writes to the buffer as soon as the receiver has emptied it; the receiver reads it when it is full. Neither
// has to wait for the other to start its epoch.
//
//   state:  3e-3 (empty)  --try_fill-->  3e-2 (being filled)  --filled-->  3e-1 (full)  --emptied-->  3e (empty, e+1)
//
// Either side may leave for good, which adds a bit to the state: a full buffer can still be read, no buffer is filled
// any more, and the other side sees left_before() instead of waiting for ever.
#pragma once

#include <cstdint>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/sync/claim.hpp>

namespace tranship {

/// One message in one direction; epochs count from 1, and the word starts at 0. Either side may use a copy of its own.
template <class Sync>
class Mailbox : LeavingBits {
 public:
  using Word = typename Sync::Word;

  explicit Mailbox(Word& state) : state_(&state) {}

  // Calls of the sender.
  /// Returns true once per epoch, when the buffer is empty and neither side has left. Acquire: the receiver has
  /// finished reading.
  bool try_fill(std::uint64_t epoch) { return state_->compare_exchange(3 * epoch - 3, 3 * epoch - 2); }
  /// Release: a receiver that sees full(epoch) sees the bytes. A plain store suffices, since the other side does not
  /// write the word while the buffer is being filled.
  void filled(std::uint64_t epoch) { state_->store_release(3 * epoch - 1); }

  // Calls of the receiver.
  /// Returns true when the buffer holds the data of `epoch`, even if the sender has left since. Acquire.
  bool full(std::uint64_t epoch) const { return (state_->load_acquire() & ~(left_bit | failing_bit)) == 3 * epoch - 1; }
  /// Release: the sender may write to the buffer again. An addition keeps the bit of a sender that leaves.
  void emptied() { state_->fetch_add(1); }

  // Calls of both.
  /// After this call, the sender does not fill the buffer. The receiver waits for a filling in progress, unless the
  /// sender `has_ended()`; the sender must not call this while it fills.
  template <class Ended>
  void leave(Leaving why, Ended&& has_ended) {
    for (;;) {
      const std::uint64_t seen = state_->load_acquire();
      if (seen & left_bit) return;
      const bool being_filled = seen % 3 == 1;
      if ((!being_filled || has_ended()) && state_->compare_exchange(seen, seen | bits_of(why))) return;
      Sync::pause();
    }
  }
  void leave(Leaving why = Leaving::done) {
    leave(why, [] { return false; });
  }
  /// Returns true if a side has left before the buffer was filled for `epoch`; it never will be filled.
  bool left_before(std::uint64_t epoch) const {
    const std::uint64_t seen = state_->load_acquire();
    return (seen & left_bit) != 0 && (seen & ~(left_bit | failing_bit)) < 3 * epoch - 1;
  }
  /// Returns true if the receiver has read the data of `epoch`.
  bool was_emptied(std::uint64_t epoch) const {
    return (state_->load_acquire() & ~(left_bit | failing_bit)) >= 3 * epoch;
  }
  bool has_left() const { return (state_->load_acquire() & left_bit) != 0; }
  /// Returns true if the side that has left did so because it fails; its error will tell why.
  bool left_failing() const { return (state_->load_acquire() & failing_bit) != 0; }

 private:
  Word* state_;
};

}  // namespace tranship
