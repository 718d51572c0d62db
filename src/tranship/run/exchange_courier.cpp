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
    if (journey.words.load(m.target, Journey::taken_word) >= m.epoch) return Passage::done;
    if (!journey.copies_for_peers) return Passage::waiting;
    return journey.only_targets_move ? look(claim(journey, m), m.epoch) : copy(journey, m);
  }
  Passage take(Journey& journey, Message& m) const override { return copy(journey, m); }
  Passage look(Journey& journey, const Message& m) const override {
    const Claim<RealSync> c = claim(journey, m);
    const Passage seen = look(c, m.epoch);
    return seen == Passage::waiting && c.ready(m.epoch) ? Passage::done : seen;
  }
  void leave(Journey& journey, const Message& m, Leaving why) const noexcept override {
    claim(journey, m).leave(why, [&] { return journey.world.has_ended(m.peer); });
  }

 private:
  static Claim<RealSync> claim(const Journey& journey, const Message& m) {
    const SharedFlags& words = journey.words;
    return {words.at(m.source, Journey::source_word), words.at(m.target, journey.target_word), *m.words[0],
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

MoveBundle& moves_of(const Journey& journey, Message& m) {
  return journey.buffer_of(m.epoch) == 0 ? m.moves : m.other_moves;
}

class Mailing final : public Courier {
 public:
  Passage send(Journey& journey, Message& m) const override {
    if (m.packed < m.epoch) {
      Mailbox<RealSync> mailbox = box(journey, m, m.epoch);
      const std::uint64_t turn = journey.turn_of(m.epoch);
      if (!mailbox.try_fill(turn)) return mailbox.left_before(turn) ? left_of(mailbox) : Passage::waiting;
      pack(journey, m);
      mailbox.filled(turn);
      m.packed = m.epoch;
    }
    if (journey.buffers == 1 || m.epoch == 1) return Passage::done;
    const Mailbox<RealSync> before = box(journey, m, m.epoch - 1);
    const bool has_left = before.has_left();  // looked at first: a target may read and then leave
    if (before.was_emptied(journey.turn_of(m.epoch - 1))) return Passage::done;
    return has_left ? left_of(before) : Passage::waiting;
  }
  Passage take(Journey& journey, Message& m) const override {
    const Passage seen = look(journey, m);
    if (seen != Passage::done) return seen;
    moves_of(journey, m).run();
    box(journey, m, m.epoch).emptied();
    return Passage::done;
  }
  Passage look(Journey& journey, const Message& m) const override {
    const Mailbox<RealSync> mailbox = box(journey, m, m.epoch);
    const std::uint64_t turn = journey.turn_of(m.epoch);
    if (mailbox.full(turn)) return Passage::done;
    return mailbox.left_before(turn) ? left_of(mailbox) : Passage::waiting;
  }
  void leave(Journey& journey, const Message& m, Leaving why) const noexcept override {
    for (int buffer = 0; buffer < journey.buffers; ++buffer)
      Mailbox<RealSync>(*m.words[buffer]).leave(why, [&] { return journey.world.has_ended(m.peer); });
  }

 private:
  static void pack(Journey& journey, Message& m) {
    if (m.packing.empty()) return moves_of(journey, m).run();
    // While plain stores are believed to be fast, those that pack go to the peer themselves.
    if (m.choice.stores == Stores::plain && m.choice.believed_bytes > 0) {
      m.choice.believed_bytes -= m.bytes;
      return moves_of(journey, m).run();
    }
    m.packing.run();
    const std::byte* const packed = journey.packed_lines.front().bytes;
    std::byte* const buffer = m.inbox + Index(journey.buffer_of(m.epoch)) * lines_of(m.bytes) * Index(sizeof(Line));
    constexpr double times_faster = 3;  // what is streamed is read from memory, and this is over once it has been read
    write_to_peer({.bytes = m.bytes, .times_faster = times_faster}, m.choice, [&](const WrittenPart& part) {
      write_row(buffer + part.begin, packed + part.begin, part.bytes, part.stores);
    });
  }
  static Mailbox<RealSync> box(const Journey& journey, const Message& m, std::uint64_t epoch) {
    return Mailbox<RealSync>(*m.words[journey.buffer_of(epoch)]);
  }
};

class Posting final : public Courier {
 public:
  Passage send(Journey& journey, Message& m) const override {
    // What the receiver has read; it may be as many epochs behind as there are buffers.
    const Seen read = seen(journey, m);
    if (m.packed < m.epoch) {
      if (read.has_left()) return left_of(read);
      if (read.epoch() + std::uint64_t(journey.buffers) < m.epoch) return Passage::waiting;
      moves_of(journey, m).run();
      const std::span packed(journey.outbox_lines.data() + m.outbox_line, std::size_t(lines_of(m.bytes)));
      Context& rma = journey.world.context();
      // Signals are counted: that of the epoch before, which the target may not have read, must come first.
      if (journey.buffers > 1) rma.fence();
      rma.put_signal(inbox_of(journey, m), packed, journey.posts->signal(m.signal_there), 1, SignalOp::add, m.peer);
      m.packed = m.epoch;
    }
    if (read.epoch() + 1 >= m.epoch) return Passage::done;
    return read.has_left() ? left_of(read) : Passage::waiting;
  }
  Passage take(Journey& journey, Message& m) const override {
    const Passage sent = look(journey, m);
    if (sent != Passage::done) return sent;
    Context& rma = journey.world.context();
    rma.reads(inbox_of(journey, m));
    moves_of(journey, m).run();
    rma.signal(journey.posts->signal(m.signal_there), 1, SignalOp::add, m.peer);
    return Passage::done;
  }
  Passage look(Journey& journey, const Message& m) const override {
    const Seen sent = seen(journey, m);
    if (sent.epoch() >= m.epoch) return Passage::done;
    return sent.has_left() ? left_of(sent) : Passage::waiting;
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
    return Seen(journey.world.context().signal_seen(journey.posts->signal(m.signal_here)));
  }
  static Symmetric<Line> inbox_of(const Journey& journey, const Message& m) {
    const Index lines = lines_of(m.bytes);
    return journey.posts->inbox.slice(m.inbox_line + journey.buffer_of(m.epoch) * lines, lines);
  }
};

}  // namespace

std::uint64_t Courier::epoch_of_peer(const Journey& journey, const Message& m) const {
  return journey.words.load(m.peer, m.peer == m.source ? Journey::source_word : journey.target_word);
}

const Courier& claiming_courier() {
  static const auto& courier = *new Claiming;
  return courier;
}
const Courier& mailing_courier() {
  static const auto& courier = *new Mailing;
  return courier;
}
const Courier& posting_courier() {
  static const auto& courier = *new Posting;
  return courier;
}

}  // namespace tranship
