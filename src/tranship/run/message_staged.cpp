// Staged messages are eager: the source packs into a staging buffer at the target, guarded by a mailbox, and the target
// unpacks.
#include <tranship/fabric/sync/mailbox.hpp>
#include <tranship/run/message_protocol.hpp>

namespace tranship {
namespace {

class Staged final : public MessageProtocol {
 public:
  MessageStatus send(const ExchangeLinks& links, ExchangePace, RunningMessage& running) const override {
    if (running.packed < running.epoch) {
      Mailbox<RealSync> mailbox = box(*running.message, running.epoch);
      const std::uint64_t turn = running.message->turn_of(running.epoch);
      if (!mailbox.try_fill(turn))
        return mailbox.left_before(turn) ? left(mailbox.left_failing()) : MessageStatus::waiting;
      pack(links, running);
      mailbox.filled(turn);
      running.packed = running.epoch;
    }
    const Message& m = *running.message;
    if (m.buffers == 1 || running.epoch == 1) return MessageStatus::complete;
    const Mailbox<RealSync> before = box(m, running.epoch - 1);
    const bool has_left = before.has_left();  // read first: a target may read the buffer and then leave
    if (before.was_emptied(m.turn_of(running.epoch - 1))) return MessageStatus::complete;
    return has_left ? left(before.left_failing()) : MessageStatus::started;
  }
  MessageStatus receive(const ExchangeLinks& links, ExchangePace, RunningMessage& running) const override {
    const MessageStatus status = look(links, running);
    if (status != MessageStatus::complete) return status;
    moves_of(running).run();
    box(*running.message, running.epoch).emptied();
    return MessageStatus::complete;
  }
  MessageStatus look(const ExchangeLinks&, const RunningMessage& running) const override {
    const Mailbox<RealSync> mailbox = box(*running.message, running.epoch);
    const std::uint64_t turn = running.message->turn_of(running.epoch);
    if (mailbox.full(turn)) return MessageStatus::complete;
    return mailbox.left_before(turn) ? left(mailbox.left_failing()) : MessageStatus::waiting;
  }
  void leave(const ExchangeLinks& links, const Message& m, Leaving why) const noexcept override {
    for (int buffer = 0; buffer < m.buffers; ++buffer)
      Mailbox<RealSync>(*m.words[buffer]).leave(why, [&] { return links.world.has_ended(m.peer); });
  }

 private:
  static void pack(const ExchangeLinks& links, RunningMessage& running) {
    const Message& m = *running.message;
    if (m.packing.empty()) return moves_of(running).run();
    // While plain stores are believed to be fast, the packing moves write to the peer directly.
    WriteChoice& choice = running.choice;
    if (choice.stores == Stores::plain && choice.believed_bytes > 0) {
      choice.believed_bytes -= m.bytes;
      return moves_of(running).run();
    }
    m.packing.run();
    const std::byte* const packed = links.packed_lines.front().bytes;
    std::byte* const buffer = m.staging + Index(m.buffer_of(running.epoch)) * lines_of(m.bytes) * Index(sizeof(Line));
    constexpr double times_faster = 3;  // streamed data is read from memory, and the message is done only once it has
                                        // been read
    write_to_peer({.bytes = m.bytes, .times_faster = times_faster}, choice, [&](const WrittenPart& part) {
      write_row(buffer + part.begin, packed + part.begin, part.bytes, part.stores);
    });
  }
  static Mailbox<RealSync> box(const Message& m, std::uint64_t epoch) {
    return Mailbox<RealSync>(*m.words[m.buffer_of(epoch)]);
  }
};

}  // namespace

const MessageProtocol& staged() {
  static const auto& protocol = *new Staged;
  return protocol;
}

}  // namespace tranship
