// Posted messages, for peers that are only messaged. The source packs into its outbox and puts into the inbox of the
// target with a signal; the target unpacks and returns the space in the inbox by a signal. Several can be under way at
// a time.
//
// Where two ranks post to each other, no signal goes back: a rank that posts for one epoch has finished the previous
// one, so it has read what its peer posted for that.
#include <algorithm>
#include <span>

#include <tranship/fabric/library_calls.hpp>
#include <tranship/run/message_protocol.hpp>

namespace tranship {
namespace {

class Posted final : public MessageProtocol {
 public:
  MessageStatus send(const ExchangeLinks& links, ExchangePace, RunningMessage& running) const override {
    const Message& m = *running.message;
    // The target may be as many epochs behind as there are buffers.
    const Signal back = signal_of(links, m);
    const std::uint64_t read = m.is_mutual ? epoch_before(signal_at(links, m.reply_here)) : back.epoch();
    if (running.packed < running.epoch) {
      if (back.has_left()) return left(back.left_failing());
      if (read + std::uint64_t(m.buffers) < running.epoch) return MessageStatus::waiting;
      moves_of(running).run();
      const std::span<const Line> packed(links.outbox_lines->data() + m.outbox_line, std::size_t(lines_of(m.bytes)));
      Context& rma = links.world.context();
      const detail::LibraryCalls in_library(rma);
      // Signals are counted, so the one of the previous epoch, which the target may not have read yet, must come first.
      if (m.buffers > 1) rma.fence();
      running.departure = in_library.put_signal(inbox_of(links, running), packed, links.outbox_lines,
                                                links.notices->signal(m.signal_there), 1, SignalOp::add, m.peer);
      running.packed = running.epoch;
    }
    if (running.departure && running.departure->load(std::memory_order_acquire)) running.departure.reset();
    if (!running.departure && read + 1 >= running.epoch) return MessageStatus::complete;
    return back.has_left() ? left(back.left_failing()) : MessageStatus::started;
  }
  MessageStatus receive(const ExchangeLinks& links, ExchangePace, RunningMessage& running) const override {
    const MessageStatus status = look(links, running);
    if (status != MessageStatus::complete) return status;
    Context& rma = links.world.context();
    const detail::LibraryCalls in_library(rma);
    rma.reads(inbox_of(links, running));
    moves_of(running).run();
    const Message& m = *running.message;
    if (!m.is_mutual) rma.signal(links.notices->signal(m.signal_there), 1, SignalOp::add, m.peer);
    return MessageStatus::complete;
  }
  MessageStatus look(const ExchangeLinks& links, const RunningMessage& running) const override {
    const Signal sent = signal_of(links, *running.message);
    if (sent.epoch() >= running.epoch) return MessageStatus::complete;
    return sent.has_left() ? left(sent.left_failing()) : MessageStatus::waiting;
  }
  /// Comes after everything that it has posted. Errors are dropped, because no caller could handle them.
  void leave(const ExchangeLinks& links, const Message& m, Leaving why) const noexcept override {
    try {
      Context& rma = links.world.context();
      const detail::LibraryCalls in_library(rma);
      rma.fence();
      rma.signal(links.notices->signal(m.signal_there), LeavingBits::bits_of(why), SignalOp::add, m.peer);
    } catch (...) {
    }
  }
  std::uint64_t epoch_of_peer(const ExchangeLinks& links, const Message& m) const override {
    return links.notices->signal(m.is_mutual ? m.reply_here : m.signal_here)[0] & posted_epochs;
  }

 private:
  /// The progress of the other side of a message.
  class Signal {
   public:
    explicit Signal(std::uint64_t word) : word_(word) {}
    std::uint64_t epoch() const { return word_ & posted_epochs; }
    bool has_left() const { return (word_ & LeavingBits::left_bit) != 0; }
    bool left_failing() const { return (word_ & LeavingBits::failing_bit) != 0; }

   private:
    std::uint64_t word_;
  };

  static Signal signal_at(const ExchangeLinks& links, std::uint64_t here) {
    return Signal(links.world.context().signal_seen(links.notices->signal(here)));
  }
  static Signal signal_of(const ExchangeLinks& links, const Message& m) { return signal_at(links, m.signal_here); }
  static std::uint64_t epoch_before(Signal signal) {
    return signal.epoch() - std::min<std::uint64_t>(signal.epoch(), 1);
  }
  static Symmetric<Line> inbox_of(const ExchangeLinks& links, const RunningMessage& running) {
    const Message& m = *running.message;
    const Index lines = lines_of(m.bytes);
    return links.notices->inbox(m.inbox_at + std::uint64_t(m.buffer_of(running.epoch) * lines) * sizeof(Line), lines);
  }
};

}  // namespace

const MessageProtocol& posted() {
  static const auto& protocol = *new Posted;
  return protocol;
}

}  // namespace tranship
