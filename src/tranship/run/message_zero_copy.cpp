// Zero-copy messages go straight from array to array: both ranks claim parts of a message and copy them.
#include <tranship/fabric/polls.hpp>
#include <tranship/fabric/sync/claim.hpp>
#include <tranship/run/message_protocol.hpp>

namespace tranship {
namespace {

class ZeroCopy final : public MessageProtocol {
 public:
  MessageStatus send(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const override {
    const Message& m = *running.message;
    if (links.words.load(m.target, ExchangeLinks::taken_word) >= running.epoch) return MessageStatus::complete;
    if (!pace.copies_for_peers) return MessageStatus::waiting;
    return links.only_targets_move ? seen(claim(links, m), running.epoch) : copy(links, pace, running);
  }
  MessageStatus receive(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const override {
    return copy(links, pace, running);
  }
  MessageStatus look(const ExchangeLinks& links, const RunningMessage& running) const override {
    const Claim<RealSync> c = claim(links, *running.message);
    const MessageStatus status = seen(c, running.epoch);
    return status == MessageStatus::waiting && c.ready(running.epoch) ? MessageStatus::complete : status;
  }
  void leave(const ExchangeLinks& links, const Message& m, Leaving why) const noexcept override {
    claim(links, m).leave(why, [&] { return links.world.has_ended(m.peer); });
  }

 private:
  static Claim<RealSync> claim(const ExchangeLinks& links, const Message& m) {
    return {links.words.at(m.source, ExchangeLinks::source_word), links.words.at(m.target, links.target_word),
            *m.words[0], m.moves.parts()};
  }
  static MessageStatus seen(const Claim<RealSync>& c, std::uint64_t epoch) {
    if (c.done(epoch)) return MessageStatus::complete;
    return c.left_before(epoch) ? left(c.left_failing()) : MessageStatus::waiting;
  }
  static MessageStatus copy(const ExchangeLinks& links, ExchangePace pace, const RunningMessage& running) {
    const Message& m = *running.message;
    Claim<RealSync> c = claim(links, m);
    const std::uint64_t epoch = running.epoch;
    if (const MessageStatus status = seen(c, epoch); status != MessageStatus::waiting || !c.ready(epoch)) return status;
    if (links.are_apart() && !pace.has_time && peer_waits(links, running)) return MessageStatus::waiting;
    for (int part = c.try_claim(epoch); part >= 0; part = c.try_claim(epoch)) {
      m.moves.run_part(part);
      c.complete();
      detail::Polls(links.world).end_row();
    }
    return c.done(epoch) ? MessageStatus::complete : MessageStatus::started;
  }
  /// Returns true when the peer waits. It then looks at the message until that is complete, or until it revokes its
  /// word.
  static bool peer_waits(const ExchangeLinks& links, const RunningMessage& running) {
    const Message& m = *running.message;
    const int word = m.peer == m.source ? ExchangeLinks::source_waits_word : ExchangeLinks::target_waits_word;
    return links.words.at(m.peer, word).load_acquire() == running.epoch;
  }
};

}  // namespace

const MessageProtocol& zero_copy() {
  static const auto& protocol = *new ZeroCopy;
  return protocol;
}

}  // namespace tranship
