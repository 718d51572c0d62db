#include "tranship/run/exchange_courier.hpp"

#include <span>

#include <tranship/fabric/sync/claim.hpp>
#include <tranship/fabric/sync/mailbox.hpp>

namespace tranship {
namespace {

template <class Protocol>
Passage left_of(const Protocol& protocol) {
  return protocol.left_failing() ? Passage::left_failing : Passage::left;
}

class Claiming final : public Courier {
 public:
  Passage send(Journey& journey, Message& m) const override {
    return journey.only_targets_move ? look(claim(journey, m), m.epoch) : copy(journey, m);
  }
  Passage take(Journey& journey, Message& m) const override { return copy(journey, m); }
  void leave(Journey& journey, const Message& m, Leaving why) const noexcept override {
    claim(journey, m).leave(why, [&] { return journey.world.has_ended(m.peer); });
  }

 private:
  static Claim<RealSync> claim(const Journey& journey, const Message& m) {
    const SharedFlags& words = journey.words;
    return {words.at(m.source, Journey::source_word), words.at(m.target, journey.target_word), *m.word,
            m.moves.parts()};
  }
  static Passage look(const Claim<RealSync>& c, std::uint64_t epoch) {
    if (c.done(epoch)) return Passage::done;
    return c.left_before(epoch) ? left_of(c) : Passage::waiting;
  }
  static Passage copy(Journey& journey, Message& m) {
    Claim<RealSync> c = claim(journey, m);
    const std::uint64_t epoch = m.epoch;
    if (const Passage seen = look(c, epoch); seen != Passage::waiting || !c.ready(epoch)) return seen;
    if (journey.are_apart() && !journey.has_time && peer_waits(journey, m)) return Passage::waiting;
    for (int part = c.try_claim(epoch); part >= 0; part = c.try_claim(epoch)) {
      m.moves.run_part(part);
      c.complete();
      journey.world.has_acted();
    }
    return c.done(epoch) ? Passage::done : Passage::waiting;
  }
  /// It looks at the message until that is done, or until it says that it does not wait any more.
  static bool peer_waits(const Journey& journey, const Message& m) {
    const int word = m.peer == m.source ? Journey::source_waits_word : Journey::target_waits_word;
    return journey.words.at(m.peer, word).load_acquire() == m.epoch;
  }
};

class Mailing final : public Courier {
 public:
  Passage send([[maybe_unused]] Journey& journey, Message& m) const override {
    Mailbox<RealSync> mailbox(*m.word);
    if (!mailbox.try_fill(m.epoch)) return mailbox.left_before(m.epoch) ? left_of(mailbox) : Passage::waiting;
    m.moves.run();
    mailbox.filled(m.epoch);
    return Passage::done;
  }
  Passage take([[maybe_unused]] Journey& journey, Message& m) const override {
    Mailbox<RealSync> mailbox(*m.word);
    if (!mailbox.full(m.epoch)) return mailbox.left_before(m.epoch) ? left_of(mailbox) : Passage::waiting;
    m.moves.run();
    mailbox.emptied();
    return Passage::done;
  }
  void leave(Journey& journey, const Message& m, Leaving why) const noexcept override {
    Mailbox<RealSync>(*m.word).leave(why, [&] { return journey.world.has_ended(m.peer); });
  }
};

class Posting final : public Courier {
 public:
  Passage send(Journey& journey, Message& m) const override {
    // What the receiver has read; it may be one epoch behind.
    const Seen read = seen(journey, m);
    if (read.has_left()) return left_of(read);
    if (read.epoch() + 1 < m.epoch) return Passage::waiting;
    m.moves.run();
    const std::span packed(journey.outbox_lines.data() + m.outbox_line, std::size_t(lines_of(m.bytes)));
    const Posts& posts = *journey.posts;
    journey.world.context().put_signal(inbox_of(posts, m), packed, posts.signal(m.signal_there), 1, SignalOp::add,
                                       m.peer);
    return Passage::done;
  }
  Passage take(Journey& journey, Message& m) const override {
    const Seen sent = seen(journey, m);
    if (sent.epoch() < m.epoch) return sent.has_left() ? left_of(sent) : Passage::waiting;
    Context& rma = journey.world.context();
    rma.reads(inbox_of(*journey.posts, m));
    m.moves.run();
    rma.signal(journey.posts->signal(m.signal_there), 1, SignalOp::add, m.peer);
    return Passage::done;
  }
  /// After what it has posted. There is no caller to hear of an error.
  void leave(Journey& journey, const Message& m, Leaving why) const noexcept override {
    try {
      Context& rma = journey.world.context();
      rma.fence();
      rma.signal(journey.posts->signal(m.signal_there), LeavingBits::bits_of(why), SignalOp::add, m.peer);
    } catch (...) {
    }
  }
  std::uint64_t epoch_of_peer(const Journey& journey, const Message& m) const override {
    return journey.posts->signal(m.signal_here)[0] & Posts::epochs;
  }

 private:
  /// What one side of a message has seen of the other.
  class Seen {
   public:
    explicit Seen(std::uint64_t word) : word_(word) {}
    std::uint64_t epoch() const { return word_ & Posts::epochs; }
    bool has_left() const { return (word_ & LeavingBits::left_bit) != 0; }
    bool left_failing() const { return (word_ & LeavingBits::failing_bit) != 0; }

   private:
    std::uint64_t word_;
  };

  static Seen seen(Journey& journey, const Message& m) {
    return Seen(journey.world.context().signal_fetch(journey.posts->signal(m.signal_here)));
  }
  static Symmetric<Line> inbox_of(const Posts& posts, const Message& m) {
    return posts.inbox.slice(m.inbox_line, lines_of(m.bytes));
  }
};

}  // namespace

std::uint64_t Courier::epoch_of_peer(const Journey& journey, const Message& m) const {
  return journey.words.load(m.peer, m.peer == m.source ? Journey::source_word : journey.target_word);
}

const Courier& claiming_courier() noexcept {
  static const Claiming courier;
  return courier;
}
const Courier& mailing_courier() noexcept {
  static const Mailing courier;
  return courier;
}
const Courier& posting_courier() noexcept {
  static const Posting courier;
  return courier;
}

}  // namespace tranship
