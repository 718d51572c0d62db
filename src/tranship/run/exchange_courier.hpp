// Private: couriers: how one message gets from its source to its target in one epoch. There are three ways: claimed
// parts of a direct copy, a mailbox in memory that both ranks reach, and posts to peers that are only messaged.
#pragma once

#include <cstdint>

#include <tranship/run/exchange_message.hpp>

namespace tranship {

/// What has become of a message in this epoch, as this rank sees it.
enum class Passage : std::uint8_t {
  waiting,
  done,
  left,          ///< the peer has left before the message was done: it never will be
  left_failing,  ///< the same, and the peer will say why
};

/// Has no state of its own; one object serves all messages of its kind.
class Courier {
 public:
  virtual ~Courier() = default;
  /// As the source: moves what can be moved now. With two buffers, a message is done when it is packed and the target
  /// has read the one before.
  virtual Passage send(Journey& journey, Message& message) const = 0;
  /// As the target.
  virtual Passage take(Journey& journey, Message& message) const = 0;
  /// As the target: `done` where the message could be taken now. Moves nothing.
  virtual Passage look(Journey& journey, const Message& message) const = 0;
  /// After this the peer touches no memory of this rank for the message, and is told that this rank has left.
  virtual void leave(Journey& journey, const Message& message, Leaving why) const noexcept = 0;
  /// The epoch that the peer is known to have entered: by its word, where that is reached.
  virtual std::uint64_t epoch_of_peer(const Journey& journey, const Message& message) const;
};

/// Straight from array to array: both sides claim parts and copy them.
const Courier& claiming_courier();
/// Packed into a buffer of the target, and unpacked there.
const Courier& mailing_courier();
/// Packed here, put into the inbox of the target with a signal, and unpacked there.
const Courier& posting_courier();

}  // namespace tranship
