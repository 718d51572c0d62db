// Private: MessageProtocol, how one message gets from its source to its target in one epoch. There are three, each in a
// source of its own: message_zero_copy.cpp (zero-copy, between arrays that both ranks reach), message_staged.cpp (by a
// staging buffer that both ranks reach) and message_posted.cpp (to peers that are only messaged).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <tranship/run/exchange_message.hpp>

namespace tranship {

/// The state of a message in its epoch, as this rank sees it.
enum class MessageStatus : std::uint8_t {
  waiting,   ///< for its peer
  started,   ///< on its way; its buffers are in use
  complete,  ///< this rank has no more to do with it in this epoch
  peer_left,
  peer_left_failing,  ///< the peer has left because it fails, and will say why
};
inline bool is_lost(MessageStatus status) {
  return status >= MessageStatus::peer_left;
}

/// One message in the epoch that the rank is in with it. The messages of an exchange are started together and complete
/// in any order.
struct RunningMessage {
  const Message* message = nullptr;
  std::uint64_t epoch = 0;
  std::uint64_t packed = 0;  // the last epoch for which its buffer was filled, of a send
  bool is_complete = true;
  /// Of a posted send, as long as its buffer is in use.
  std::shared_ptr<const std::atomic<bool>> departure = {};
  WriteChoice choice = {};
};

/// How a rank spends its time, which decides which parts of a zero-copy message it copies.
struct ExchangePace {
  bool copies_for_peers = true;  // else its sends are left to the targets, which then have them in their caches
  bool has_time = false;         // this rank waits; else it leaves to peers that wait what they can copy
};

/// Has no state of its own; one object serves all messages of its kind. No call waits.
class MessageProtocol {
 public:
  virtual ~MessageProtocol() = default;
  /// As the source: moves what can be moved now. With two buffers, a message is complete when it is packed and the
  /// target has read the one before.
  virtual MessageStatus send(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const = 0;
  /// As the target: moves what can be moved now.
  virtual MessageStatus receive(const ExchangeLinks& links, ExchangePace pace, RunningMessage& running) const = 0;
  /// As the target: `complete` where receive() would complete the message now. Moves nothing.
  virtual MessageStatus look(const ExchangeLinks& links, const RunningMessage& running) const = 0;
  /// After this the peer touches no memory of this rank for the message, and is told that this rank has left.
  virtual void leave(const ExchangeLinks& links, const Message& message, Leaving why) const noexcept = 0;
  /// The epoch that the peer is known to have entered: by its word, where that is reached.
  virtual std::uint64_t epoch_of_peer(const ExchangeLinks& links, const Message& message) const {
    return links.words.load(message.peer,
                            message.peer == message.source ? ExchangeLinks::source_word : links.target_word);
  }

 protected:
  /// The status of a message whose claim, mailbox or signal says that the other side has left.
  static MessageStatus left(bool is_failing) {
    return is_failing ? MessageStatus::peer_left_failing : MessageStatus::peer_left;
  }
  /// By the buffer of the epoch.
  static const MoveBundle& moves_of(const RunningMessage& running) {
    const Message& m = *running.message;
    return m.buffer_of(running.epoch) == 0 ? m.moves : m.other_moves;
  }
};

const MessageProtocol& zero_copy();
const MessageProtocol& staged();
const MessageProtocol& posted();

}  // namespace tranship
