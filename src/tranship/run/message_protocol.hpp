// Private: MessageProtocol, how one message travels from its source to its target in one epoch. Three sources implement
// it: message_zero_copy.cpp (between arrays that both ranks reach), message_staged.cpp (through a staging buffer that
// both reach) and message_posted.cpp (to peers that are only messaged).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <tranship/run/exchange_message.hpp>

namespace tranship {

/// The state of a message in its epoch, as this rank sees it.
enum class MessageStatus : std::uint8_t {
  waiting,   ///< for its peer
  started,   ///< under way; its buffers are in use
  complete,  ///< this rank has nothing more to do with it in this epoch
  peer_left,
  peer_left_failing,  ///< the peer has left because it fails, and will say why
};
inline bool is_lost(MessageStatus status) {
  return status >= MessageStatus::peer_left;
}

/// One message in this rank's current epoch of it. The messages of an exchange are started together and complete in any
/// order.
struct RunningMessage {
  const Message* message = nullptr;
  std::uint64_t epoch = 0;
  std::uint64_t packed = 0;  // for a send: the last epoch for which its buffer was filled
  bool is_complete = true;
  /// For a posted send, while its buffer is in use.
  std::shared_ptr<const std::atomic<bool>> departure = {};
  WriteChoice choice = {};
};

/// How a rank spends its time, which decides which parts of a zero-copy message it copies.
struct ExchangePace {
  bool copies_for_peers = true;  // false: its sends are left to the targets, whose caches then hold the data
  bool has_time = false;         // true: this rank waits; false: it leaves to waiting peers what they can copy
};

/// Stateless; one object serves all messages of its kind. No call waits.
class MessageProtocol {
 public:
  virtual ~MessageProtocol() = default;
  /// For the source: moves what can be moved now. With two buffers, a message is complete when it is packed and the
  /// target has read the previous one.
  virtual MessageStatus send(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const = 0;
  /// For the target: moves what can be moved now.
  virtual MessageStatus receive(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const = 0;
  /// For the target: returns `complete` when receive() would complete the message now. Moves nothing.
  virtual MessageStatus look(const ExchangeLinks& links, const RunningMessage& running) const = 0;
  /// Tells the peer that this rank has left; afterwards the peer touches no memory of this rank for the message.
  virtual void leave(const ExchangeLinks& links, const Message& message, Leaving why) const noexcept = 0;
  /// The epoch that the peer is known to have entered; by its word, where this rank reaches it.
  virtual std::uint64_t epoch_of_peer(const ExchangeLinks& links, const Message& message) const {
    return links.words.load(message.peer,
                            message.peer == message.source ? ExchangeLinks::source_word : links.target_word);
  }

 protected:
  /// The status of a message whose claim, mailbox or signal says that the other side has left.
  static MessageStatus left(bool is_failing) {
    return is_failing ? MessageStatus::peer_left_failing : MessageStatus::peer_left;
  }
  /// The moves for the buffer of the epoch.
  static const MoveBundle& moves_of(const RunningMessage& running) {
    const Message& m = *running.message;
    return m.buffer_of(running.epoch) == 0 ? m.moves : m.other_moves;
  }
};

const MessageProtocol& zero_copy();
const MessageProtocol& staged();
const MessageProtocol& posted();

}  // namespace tranship
