// Private: ExchangeProgress, where the messages of an exchange stand, and how they get on. It never waits, and knows no
// calls: exchange_runner.hpp has these.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/seam/wait_note.hpp>
#include <tranship/run/exchange.hpp>
#include <tranship/run/exchange_messages.hpp>
#include <tranship/run/exchange_observer.hpp>
#include <tranship/run/message_protocol.hpp>

namespace tranship {

inline bool has_sends(Exchange::Side side) {
  return side != Exchange::Side::receives;
}
inline bool has_receives(Exchange::Side side) {
  return side != Exchange::Side::sends;
}

/// A half, all sends or all receives of a rank, is started as a whole; then its messages complete one by one, in any
/// order.
class ExchangeProgress {
 public:
  using Side = Exchange::Side;

  ExchangeProgress(const ExchangeTerms& terms, const ExchangeMessages& messages) : terms_(terms), messages_(messages) {}

  /// After set-up, once.
  void open();

  /// Started, and not ended.
  bool in_flight(Side side) const;
  /// Nothing of the side is in flight, or all its messages are complete, also that from this rank to itself.
  bool is_complete(Side side) const;
  /// All messages to and from others are complete.
  bool needs_no_peer() const { return sends_.is_complete && receives_.is_complete; }
  bool has_left(Side side) const;
  std::uint64_t epoch(Side side) const { return has_sends(side) ? sends_.epoch : receives_.epoch; }

  /// The next epoch: fills what comes before it, says to the peers that this rank has entered it, and of a snapshot
  /// packs all sends.
  void start(Side side);
  /// Moves what can be moved now.
  void advance();
  /// Moves what can be moved while the rank does something else: of a snapshot, that touches no target.
  void advance_aside();
  /// Moves what can be moved in a test(): of a snapshot, that touches no target before all is there. Returns true when
  /// `side` is complete.
  bool advance_in_test(Side side);
  /// All is complete: fills what comes after it.
  void end(Side side);
  /// After this no peer touches this rank's memory for the side, and none waits for it for ever.
  void leave(Side side, Leaving why) noexcept;

  /// Throws `peer_lost` when a peer has left before its message was complete: of a peer that an exception has made
  /// leave, once its reason is known or overdue.
  void check_lost(Side side);
  /// The same, and does not wait for a reason any more.
  void check_lost_for_good(Side side);
  bool peer_has_ended(Side side) const;
  /// Names one rank that is missing.
  void name_missing(Side side, WaitNote& note) const;
  /// A posted message that is not complete, or nullptr.
  const Message* missing_post() const;

  /// While this rank waits, its peers may leave to it what it can copy.
  void set_has_time(bool has_time) { pace_.has_time = has_time; }
  /// Says to peers for which epochs of a side this rank waits; `forget_waiting` takes that back.
  void tell_waiting(Side side) { tell_waiting(side, sends_.epoch, receives_.epoch); }
  void forget_waiting(Side side) { tell_waiting(side, 0, 0); }

  /// Is told of messages that complete; nullptr: nothing is.
  void set_observer(ExchangeObserver* observer) { observer_ = observer; }

 private:
  struct Half {
    std::vector<RunningMessage> messages;
    std::uint64_t epoch = 0;
    bool in_flight = false;
    bool is_complete = true;                  // all its messages to or from others
    const Message* lost = nullptr;            // the first message whose peer has left
    bool peer_fails = false;                  // and may say why
    Deadline reason_due = Deadline::never();  // until when it should have
    bool peer_has_ended = false;              // a call has thrown for that
    bool has_left = false;                    // for good
  };

  Rank rank() const { return terms_.rank(); }
  void begin(Half& half);
  void enter(int word, std::uint64_t epoch);
  bool is_complete(const Half& half) const;
  bool send_all();
  bool send_those(bool staged);
  bool is_departing() const;
  bool receive_all(bool departing);
  bool receive_in_order();
  bool is_all_here();
  void move_own();
  void tell_taken();
  bool advance(Half& half, RunningMessage& running, MessageStatus status);
  void lose(Half& half, const Message& m, MessageStatus status);
  void lose_own(Half& half);
  void check_lost(Half& half) const;
  [[noreturn]] void fail_for_lost(Half& half) const;
  bool was_started(const Message& m) const;
  void leave(Half& half, const std::vector<Message>& messages, Leaving why) noexcept;
  bool has_left_own() const { return sends_.has_left || receives_.has_left; }
  bool name_missing(const Half& half, int word, WaitNote& note) const;
  void tell_waiting(Side side, std::uint64_t sends, std::uint64_t receives) const;

  const ExchangeTerms& terms_;
  const ExchangeMessages& messages_;
  Half sends_, receives_;
  std::uint64_t own_epoch_ = 0;
  ExchangePace pace_;
  /// Looks in vain, of a rank that has received all, before it copies for others: some microseconds.
  static constexpr int patience = 64;
  int vain_looks_ = 0;
  std::uint64_t taken_ = 0;  // the last epoch that the taken word of this rank has said
  ExchangeObserver* observer_ = nullptr;
};

}  // namespace tranship
