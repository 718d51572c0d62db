#include "tranship/run/exchange_progress.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/polls.hpp>

namespace tranship {

void ExchangeProgress::open() {
  const auto open = [](Half& half, const std::vector<Message>& messages) {
    for (const Message& m : messages) half.messages.push_back({.message = &m});
  };
  open(sends_, messages_.sends);
  open(receives_, messages_.receives);
}

// States.

bool ExchangeProgress::in_flight(Side side) const {
  return (has_sends(side) && sends_.in_flight) || (has_receives(side) && receives_.in_flight);
}
bool ExchangeProgress::is_complete(Side side) const {
  return (!has_sends(side) || is_complete(sends_)) && (!has_receives(side) || is_complete(receives_));
}
bool ExchangeProgress::is_complete(const Half& half) const {
  return half.is_complete && (messages_.own.bytes == 0 || own_epoch_ >= half.epoch || !half.in_flight);
}
bool ExchangeProgress::has_left(Side side) const {
  return (has_sends(side) && sends_.has_left) || (has_receives(side) && receives_.has_left);
}
bool ExchangeProgress::peer_has_ended(Side side) const {
  return (has_sends(side) && sends_.peer_has_ended) || (has_receives(side) && receives_.peer_has_ended);
}

void ExchangeProgress::start(Side side) {
  vain_looks_ = 0;
  if (has_sends(side)) begin(sends_);
  if (has_receives(side)) begin(receives_);
  if (has_receives(side)) messages_.fills_before.run();
  if (has_sends(side)) enter(ExchangeLinks::source_word, sends_.epoch);
  if (has_receives(side) && messages_.links.are_apart()) enter(messages_.links.target_word, receives_.epoch);
  detail::Polls(terms_.world).end_row();
  if (!terms_.is_snapshot()) return advance();
  // A buffer of every message is free, because the last finish() has seen that the target had read it.
  messages_.own_packing.run();
  messages_.fills_packing.run();
  receives_.is_complete = false;
  send_all();
}
void ExchangeProgress::begin(Half& half) {
  ++half.epoch;
  half.in_flight = true;
  for (RunningMessage& running : half.messages) {
    running.is_complete = false;
    running.epoch = half.epoch;
  }
}
void ExchangeProgress::enter(int word, std::uint64_t epoch) {
  enter_epoch(messages_.links.words.at(rank(), word), epoch);
}

void ExchangeProgress::end(Side side) {
  if (has_receives(side) && receives_.in_flight) {
    messages_.fills_unpacking.run();
    messages_.fills_after.run();
    receives_.in_flight = false;
  }
  if (has_sends(side)) sends_.in_flight = false;
}

// Progress.

/// First comes work that only this rank can do. Then this rank copies what it receives, which brings the data into its
/// own caches. It copies for others only after it has looked in vain for a while.
void ExchangeProgress::advance() {
  const ExchangeLinks& links = messages_.links;
  bool all_sent = !sends_.in_flight || send_those(true);
  const bool departing = is_departing();
  receives_.is_complete = true;
  if (links.only_targets_move) {
    if (receives_.in_flight) receives_.is_complete = !departing && receive_in_order();
  } else {
    if (!departing) move_own();  // needs no peer, and others arrive meanwhile
    if (receives_.in_flight) receives_.is_complete = receive_all(departing);
  }
  if (receives_.is_complete) {
    vain_looks_ = std::min(vain_looks_ + 1, patience);
    if (!receives_.has_left) tell_taken();
  }
  pace_.copies_for_peers = links.are_apart() || vain_looks_ == patience;
  if (sends_.in_flight) all_sent &= send_those(false);
  sends_.is_complete = all_sent;
  if (has_left_own()) {
    lose_own(sends_);
    lose_own(receives_);
  }
}

void ExchangeProgress::advance_aside() {
  if (!terms_.is_snapshot())
    advance();
  else if (sends_.in_flight)
    send_all();
}

bool ExchangeProgress::advance_in_test(Side side) {
  if (terms_.is_snapshot() && !is_all_here()) return false;
  advance();
  return is_complete(side);
}

bool ExchangeProgress::send_all() {
  bool all_sent = true;
  for (RunningMessage& running : sends_.messages)
    all_sent &= running.is_complete ||
                advance(sends_, running, running.message->protocol->send(messages_.links, pace_, running));
  return sends_.is_complete = all_sent;
}
bool ExchangeProgress::send_those(bool staged) {
  bool all_sent = true;
  for (RunningMessage& running : sends_.messages)
    if (running.message->is_staged == staged)
      all_sent &= running.is_complete ||
                  advance(sends_, running, running.message->protocol->send(messages_.links, pace_, running));
  return all_sent;
}
/// Returns true while a long post leaves. It leaves only as fast as this rank drives it, so this rank copies nothing
/// meanwhile that would keep peers waiting.
bool ExchangeProgress::is_departing() const {
  return !messages_.links.outbox_lines->empty() &&
         std::any_of(sends_.messages.begin(), sends_.messages.end(),
                     [](const RunningMessage& running) { return running.departure != nullptr; });
}
/// Each rank begins after its own number, so that ranks do not all read from the same peer.
bool ExchangeProgress::receive_all(bool departing) {
  const std::size_t count = receives_.messages.size(), first = messages_.first_taken;
  bool all = true;
  for (std::size_t i = 0; i < count; ++i) {
    RunningMessage& running = receives_.messages[first + i < count ? first + i : first + i - count];
    const bool has_to_wait = departing && running.message->is_posted;
    all &= running.is_complete ||
           (!has_to_wait &&
            advance(receives_, running, running.message->protocol->receive(messages_.links, pace_, running)));
  }
  return all;
}
/// Sums are made in the order of the sources, with this rank in its place among them, whichever message comes first.
bool ExchangeProgress::receive_in_order() {
  for (RunningMessage& running : receives_.messages) {
    if (running.message->source > rank()) move_own();
    if (!running.is_complete &&
        !advance(receives_, running, running.message->protocol->receive(messages_.links, pace_, running)))
      return false;
  }
  move_own();
  return true;
}
/// Returns true when everything that a snapshot waits for has arrived. Copies none of it.
bool ExchangeProgress::is_all_here() {
  bool all = send_all();
  for (const RunningMessage& running : receives_.messages) {
    if (running.is_complete) continue;
    const MessageStatus status = running.message->protocol->look(messages_.links, running);
    all &= status == MessageStatus::complete;
    if (is_lost(status)) lose(receives_, *running.message, status);
  }
  return all;
}

/// Moves the rank's own cells once its sends and its receives are in the same epoch.
void ExchangeProgress::move_own() {
  const std::uint64_t both = std::min(sends_.epoch, receives_.epoch);
  if (own_epoch_ >= both || has_left_own()) return;
  own_epoch_ = both;
  messages_.own.moves.run();
}
void ExchangeProgress::tell_taken() {
  if (receives_.messages.empty() || taken_ == receives_.epoch) return;
  taken_ = receives_.epoch;
  messages_.links.words.at(rank(), ExchangeLinks::taken_word).store_release(taken_);
}

/// Returns true when the message is complete.
bool ExchangeProgress::advance(Half& half, RunningMessage& running, MessageStatus status) {
  if (status <= MessageStatus::started) return false;
  if (status != MessageStatus::complete) {
    lose(half, *running.message, status);
    return false;
  }
  detail::Polls(terms_.world).end_row();
  if (observer_) observer_->message_complete(*running.message);
  return running.is_complete = true;
}

// Peers that leave.

/// A rank that fails leaves while it unwinds, and its reason becomes known a moment later, so waiting ranks can report
/// it. They wait for it only five seconds (a busy machine may need as long to unwind), and at most a quarter of their
/// own timeout, because the other rank may catch the exception and go on.
void ExchangeProgress::lose(Half& half, const Message& m, MessageStatus status) {
  if (half.lost) return;
  half.lost = &m;
  half.peer_fails = status == MessageStatus::peer_left_failing;
  constexpr std::int64_t longest_ns = 5'000'000'000;
  half.reason_due = Deadline::after_ns(std::min(longest_ns, terms_.world.timeout_ns() / 4));
}
/// A message to itself never comes when this rank has left one side.
void ExchangeProgress::lose_own(Half& half) {
  if (half.in_flight && messages_.own.bytes > 0 && own_epoch_ < half.epoch)
    lose(half, messages_.own, MessageStatus::peer_left);
}
void ExchangeProgress::check_lost(Side side) {
  if (has_sends(side)) check_lost(sends_);
  if (has_receives(side)) check_lost(receives_);
}
void ExchangeProgress::check_lost_for_good(Side side) {
  if (has_sends(side) && sends_.lost) fail_for_lost(sends_);
  if (has_receives(side) && receives_.lost) fail_for_lost(receives_);
}
void ExchangeProgress::check_lost(Half& half) const {
  if (!half.lost) return;
  terms_.world.check_failed();
  if (!half.peer_fails || terms_.world.has_passed(half.reason_due)) fail_for_lost(half);
}
void ExchangeProgress::fail_for_lost(Half& half) const {
  const Message* lost = half.lost;
  Error error = make_error(ErrorCode::peer_lost,
                           "rank {} has left the exchange before its message {} -> {} of epoch {} was done (rank {})",
                           lost->peer, lost->source, lost->target, half.epoch, rank());
  error.rank = rank();
  error.peer = lost->peer;
  half.peer_has_ended = !half.peer_fails && (&half == &sends_ || !was_started(*lost));
  throw error;
}
/// Returns true when the source of a lost message had started the epoch, so that data it had announced is lost, too.
bool ExchangeProgress::was_started(const Message& m) const {
  const std::uint64_t started =
      &m == &messages_.own ? sends_.epoch : messages_.links.words.load(m.source, ExchangeLinks::source_word);
  return started >= receives_.epoch;
}

void ExchangeProgress::leave(Side side, Leaving why) noexcept {
  if (has_receives(side)) leave(receives_, messages_.receives, why);
  if (has_sends(side)) leave(sends_, messages_.sends, why);
}
void ExchangeProgress::leave(Half& half, const std::vector<Message>& messages, Leaving why) noexcept {
  if (half.has_left) return;
  half.has_left = true;
  half.in_flight = false;
  half.is_complete = true;
  for (const Message& m : messages)
    if (m.protocol) m.protocol->leave(messages_.links, m, why);
  for (RunningMessage& running : half.messages) running.is_complete = true;
}

// Waits.

void ExchangeProgress::name_missing(Side side, WaitNote& note) const {
  const ExchangeLinks& links = messages_.links;
  if (has_receives(side) && name_missing(receives_, ExchangeLinks::source_word, note)) return;
  if (has_sends(side) && name_missing(sends_, links.target_word, note)) return;
  if (messages_.own.bytes == 0 || !links.are_apart()) return;
  note.raised_by = note.flag_rank = rank();
  note.flag_index = has_receives(side) ? ExchangeLinks::source_word : links.target_word;
  note.wanted = own_epoch_ + 1;
  note.seen = own_epoch_;
}
bool ExchangeProgress::name_missing(const Half& half, int word, WaitNote& note) const {
  for (const RunningMessage& running : half.messages) {
    if (running.is_complete) continue;
    const Message& m = *running.message;
    note.raised_by = note.flag_rank = m.peer;
    note.flag_index = word;
    note.wanted = running.epoch;
    note.seen = m.protocol->epoch_of_peer(messages_.links, m);
    return true;
  }
  return false;
}
const Message* ExchangeProgress::missing_post() const {
  for (const Half* half : {&receives_, &sends_})
    for (const RunningMessage& running : half->messages)
      if (running.message->is_posted && !running.is_complete) return running.message;
  return nullptr;
}
void ExchangeProgress::tell_waiting(Side side, std::uint64_t sends, std::uint64_t receives) const {
  const SharedFlags& words = messages_.links.words;
  if (has_sends(side)) words.at(rank(), ExchangeLinks::source_waits_word).store_release(sends);
  if (has_receives(side)) words.at(rank(), ExchangeLinks::target_waits_word).store_release(receives);
}

}  // namespace tranship
