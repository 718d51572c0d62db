// Private: Message, one message of an exchange with all that is needed to move it, and ExchangeLinks, what the messages
// of an exchange share. Set-up makes them (exchange_setup.hpp), and no run changes them. The state of a message is in
// RunningMessage (message_protocol.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sync/claim.hpp>
#include <tranship/fabric/sync/shared_flags.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/lower/move_bundle.hpp>
#include <tranship/run/exchange_notices.hpp>

namespace tranship {

class MessageProtocol;

/// The part of a message that goes from one slot to another. It has its own list of moves where several arrays share
/// the slot.
struct MessagePart {
  int source_slot = -1;  // -1: all slots of one array each, together
  int target_slot = -1;
  int arrays = 1;
  Index bytes = 0;  // of each array

  friend bool operator<(const MessagePart& a, const MessagePart& b) {
    return std::tie(a.source_slot, a.target_slot) < std::tie(b.source_slot, b.target_slot);
  }
};

/// Everything that goes from one rank to another in one run of an exchange, as seen by one of the two ranks.
struct Message {
  Rank source = -1;
  Rank target = -1;
  Rank peer = -1;
  Index bytes = 0;
  std::vector<MessagePart> parts;    // sorted alike on both ends, so it is also their order in a staging buffer
  const ArrayCard* cards = nullptr;  // the peer's, as of the set-up
  bool is_posted = false;            // the peer is only messaged
  bool is_exposed = false;           // this rank reaches all of the peer's arrays
  bool is_staged = false;
  bool is_mutual = false;         // posted, like the message in the other direction: each of the two is the only sign
                                  // that the peer has read the previous one
  RealSync::Word* words[2] = {};  // by buffer; null until the ranks have agreed, and for posted messages
  RealSync::Word* staging_word = nullptr;     // holds the address of the target's buffers
  const MessageProtocol* protocol = nullptr;  // null until it is known how the message travels
  /// For a posted message: the signals of this rank and of the peer and the target's inbox, each as a place in its
  /// owner's notices, and the place in the source's outbox.
  std::uint64_t signal_here = 0;
  std::uint64_t signal_there = 0;
  std::uint64_t inbox_at = 0;
  Index outbox_line = 0;
  /// For a mutual send: the signal of the message from the peer.
  std::uint64_t reply_here = 0;
  /// Its staging buffer as this rank addresses it: at the target, or in this rank's outbox. A second buffer follows.
  std::byte* staging = nullptr;
  /// Number of staging buffers, which take turns. With two, the next epoch can be packed while the target reads the
  /// previous one, so start() packs without waiting.
  int buffers = 1;
  /// Direct: from source array to target array. Staged: into (at the source) or out of (at the target) the staging
  /// buffer.
  MoveBundle moves;
  MoveBundle other_moves;  // for the second buffer, where there are two
  /// For a message that is packed first: into this rank's own memory, from which whole lines are written to the staging
  /// buffer with the faster kind of stores.
  MoveBundle packing;

  int buffer_of(std::uint64_t epoch) const { return buffers == 1 ? 0 : int(epoch % 2); }
  /// The number of an epoch among those that use its buffer, from 1 on.
  std::uint64_t turn_of(std::uint64_t epoch) const { return buffers == 1 ? epoch : (epoch + 1) / 2; }
};

inline const char* way_of(const Message& m) {
  return m.is_posted ? "posted" : m.is_staged ? "staged" : "direct";
}

/// Signals of posted messages count epochs, and a side that leaves adds a bit. Their memory is symmetric, so a put that
/// comes late does no harm.
constexpr std::uint64_t posted_epochs = LeavingBits::failing_bit - 1;

/// The words and buffers that the messages of one exchange share.
struct ExchangeLinks {
  World& world;
  /// The word with the epoch that a rank's targets have entered. With Halves::apart it is another word than that of the
  /// sources.
  int target_word = source_word;
  /// Only targets move, in their own order: for sums and other combinations.
  bool only_targets_move = false;
  int buffers = 1;  ///< of each message between ranks that reach each other
  /// Per rank: the epochs that it has entered, then the words of every message that it receives through shared memory.
  SharedFlags words = {};
  std::optional<Notices> notices = {};
  /// For posted messages. The transport may hold it for longer than the exchange exists.
  std::shared_ptr<std::vector<Line>> outbox_lines = std::make_shared<std::vector<Line>>();
  std::vector<Line> packed_lines = {};  // of messages that are packed first, one at a time

  static constexpr int source_word = 0;
  static constexpr int apart_word = 1;
  /// With Halves::apart: the epochs that the rank waits for with its sends and with its receives.
  static constexpr int source_waits_word = 2;
  static constexpr int target_waits_word = 3;
  /// The last epoch in which the rank has received everything. Sources read this word and not those by which parts are
  /// claimed, which stay in the cache of the claiming target.
  static constexpr int taken_word = 4;
  static constexpr int first_message_word = 5;

  /// A word for each buffer, and one for the address of the first buffer.
  int words_per_message() const { return buffers + 1; }
  bool are_apart() const { return target_word != source_word; }
};

}  // namespace tranship
