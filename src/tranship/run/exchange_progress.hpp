// Private: ExchangeProgress, the state of an exchange's messages, and the place where they make progress. It never
// waits, and knows no calls; exchange_runner.hpp has these.
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

/// A half is all sends or all receives of a rank. It is started as a whole, and its messages complete one by one, in
/// any order.
class ExchangeProgress {
 public:
  using Side = Exchange::Side;

  ExchangeProgress(const ExchangeTerms& terms, const ExchangeMessages& messages) : terms_(terms), messages_(messages) {}

  /// Call once, after set-up.
  void open();

  /// Returns true when started and not ended.
  bool in_flight(Side side) const;
  /// Returns true when nothing of the side is in flight, or all its messages are complete, including this rank's own.
  bool is_complete(Side side) const;
  /// Returns true when all messages to and from other ranks are complete.
  bool needs_no_peer() const { return sends_.is_complete && receives_.is_complete; }
  bool has_left(Side side) const;
  std::uint64_t epoch(Side side) const { return has_sends(side) ? sends_.epoch : receives_.epoch; }

  /// Enters the next epoch: makes the fills that precede it, tells the peers, and packs all sends of a snapshot.
  void start(Side side);
  /// Moves what can be moved now.
  void advance();
  /// Moves what can be moved while the rank does something else. For a snapshot it touches no target.
  void advance_aside();
  /// Moves what can be moved in a test(). For a snapshot it touches no target until everything has arrived. Returns
  /// true when `side` is complete.
  bool advance_in_test(Side side);
  /// Ends a complete run: makes the fills that follow it.
  void end(Side side);
  /// Leaves for good: afterwards no peer touches this rank's memory for the side, and no peer waits for it for ever.
  void leave(Side side, Leaving why) noexcept;

  /// Throws `peer_lost` when a peer has left before its message was complete. When the peer left because of an
  /// exception, it throws only once the reason is known or overdue.
  void check_lost(Side side);
  /// Like check_lost(), without waiting for a reason.
  void check_lost_for_good(Side side);
  bool peer_has_ended(Side side) const;
  /// Writes the name of one missing rank into the note.
  void name_missing(Side side, WaitNote& note) const;
  /// A posted message that is not complete, or null.
  const Message* missing_post() const;

  /// Set while this rank waits; peers may then leave to it what it can copy.
  void set_has_time(bool has_time) { pace_.has_time = has_time; }
  /// Tells peers for which epochs of a side this rank waits; `forget_waiting` revokes that.
  void tell_waiting(Side side) { tell_waiting(side, sends_.epoch, receives_.epoch); }
  void forget_waiting(Side side) { tell_waiting(side, 0, 0); }

  /// Sets the observer of messages that complete; null: none.
  void set_observer(ExchangeObserver* observer) { observer_ = observer; }

 private:
  struct Half {
    std::vector<RunningMessage> messages;
    std::uint64_t epoch = 0;
    bool in_flight = false;
    bool is_complete = true;                  // all messages to or from other ranks
    const Message* lost = nullptr;            // the first message whose peer has left
    bool peer_fails = false;                  // the peer failed, and may still say why
    Deadline reason_due = Deadline::never();  // when the reason is overdue
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
  /// Number of looks in vain, some microseconds, after which a rank that has received everything copies for others.
  static constexpr int patience = 64;
  int vain_looks_ = 0;
  std::uint64_t taken_ = 0;  // the last epoch in this rank's taken word
  ExchangeObserver* observer_ = nullptr;
};

}  // namespace tranship
