// Private: Mailbox, how a sender and a receiver share one buffer, epoch after epoch, without a lock. The sender writes
// into the buffer as soon as the receiver has emptied it; the receiver reads when it is full. Neither waits for the
// other to be ready.
//
//   state:  3e-3 (empty)  --try_fill-->  3e-2 (being filled)  --filled-->  3e-1 (full)  --emptied-->  3e (empty, e+1)
//
// Either side may leave for good, which adds a bit to the state: what was filled can still be read, nothing is filled
// any more, and the other side sees left_before() instead of waiting for ever.
#pragma once

#include <cstdint>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/sync/claim.hpp>

namespace tranship {

/// One message in one direction; epochs count from 1, the word starts at 0. Either side may hold its own copy.
template <class Sync>
class Mailbox : LeavingBits {
 public:
  using Word = typename Sync::Word;

  explicit Mailbox(Word& state) : state_(&state) {}

  // The sender.
  /// True once per epoch, when the buffer is empty and neither side has left. Acquire: the receiver has read what it
  /// held.
  bool try_fill(std::uint64_t epoch) { return state_->compare_exchange(3 * epoch - 3, 3 * epoch - 2); }
  /// Release: the bytes are seen by the receiver when it sees full(epoch). A plain store, for while the buffer is being
  /// filled the other side does not write the word.
  void filled(std::uint64_t epoch) { state_->store_release(3 * epoch - 1); }

  // The receiver.
  /// Acquire. Stays true when the sender leaves after it has filled the buffer.
  bool full(std::uint64_t epoch) const { return (state_->load_acquire() & ~(left_bit | failing_bit)) == 3 * epoch - 1; }
  /// Release: the sender may write into the buffer again. An addition, which keeps the bit of a sender that leaves.
  void emptied() { state_->fetch_add(1); }

  // Both.
  /// After this the sender does not fill the buffer. Called by the receiver, it waits for a filling that has begun,
  /// unless the sender `has_ended()`; the sender may not call it while it fills.
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
  /// A side has left, and the buffer was not filled for `epoch` before: it never will be.
  bool left_before(std::uint64_t epoch) const {
    const std::uint64_t seen = state_->load_acquire();
    return (seen & left_bit) != 0 && (seen & ~(left_bit | failing_bit)) < 3 * epoch - 1;
  }
  /// The receiver has read what the buffer was filled with for `epoch`.
  bool was_emptied(std::uint64_t epoch) const {
    return (state_->load_acquire() & ~(left_bit | failing_bit)) >= 3 * epoch;
  }
  bool has_left() const { return (state_->load_acquire() & left_bit) != 0; }
  /// The side that has left did so because it fails: it will say why.
  bool left_failing() const { return (state_->load_acquire() & failing_bit) != 0; }

 private:
  Word* state_;
};

}  // namespace tranship
