// Private: Message, one message of an exchange with all that it takes to move it, and what the messages of an exchange
// share. Set-up makes them (exchange_setup.hpp); no run changes them. Where a message stands is in RunningMessage.
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

/// The part of a message that goes from one slot to another: it has a list of moves of its own where several arrays
/// share the slot.
struct MessagePart {
  int source_slot = -1;  // -1: all slots that are one array each, together
  int target_slot = -1;
  int arrays = 1;
  Index bytes = 0;  // of each array

  friend bool operator<(const MessagePart& a, const MessagePart& b) {
    return std::tie(a.source_slot, a.target_slot) < std::tie(b.source_slot, b.target_slot);
  }
};

/// All that goes from one rank to another in one run of an exchange, as one of the two ranks sees it.
struct Message {
  Rank source = -1;
  Rank target = -1;
  Rank peer = -1;
  Index bytes = 0;
  std::vector<MessagePart> parts;    // in their order, which both ends share: so they lie in a staging buffer
  const ArrayCard* cards = nullptr;  // the peer's, as they were at the set-up
  bool is_posted = false;            // the peer is only messaged
  bool is_exposed = false;           // this rank reaches all of the peer's arrays
  bool is_staged = false;
  bool is_mutual = false;         // posted, as the one that goes the other way: each says that the peer has read the
                                  // one before, and nothing else does
  RealSync::Word* words[2] = {};  // by buffer; none before the ranks have agreed, and none of posted messages
  RealSync::Word* staging_word = nullptr;     // where its target says where its buffers are
  const MessageProtocol* protocol = nullptr;  // none until it is known how the message travels
  /// Where it is posted: the signals of this rank and of the peer, and the target's inbox, each in the notices of its
  /// owner, and its place in the source's outbox.
  std::uint64_t signal_here = 0;
  std::uint64_t signal_there = 0;
  std::uint64_t inbox_at = 0;
  Index outbox_line = 0;
  /// Of a mutual send: the signal of the message from the peer.
  std::uint64_t reply_here = 0;
  /// Its staging buffer as this rank addresses it: at the target, or in this rank's outbox. A second buffer follows.
  std::byte* staging = nullptr;
  /// Staging buffers, which take turns. With two of them the next epoch can be packed while the target reads the one
  /// before, so that a rank packs in start() without waiting.
  int buffers = 1;
  /// Direct: source array to target array. Staged: to (source) or from (target) the staging buffer.
  MoveBundle moves;
  MoveBundle other_moves;  // by the second buffer, where there are two
  /// Where it is packed first: to this rank's own memory, from which whole lines are written to the staging
  /// buffer, by the kind of stores that is faster there.
  MoveBundle packing;

  int buffer_of(std::uint64_t epoch) const { return buffers == 1 ? 0 : int(epoch % 2); }
  /// The number of an epoch among those that use its buffer, from 1 on.
  std::uint64_t turn_of(std::uint64_t epoch) const { return buffers == 1 ? epoch : (epoch + 1) / 2; }
};

inline const char* way_of(const Message& m) {
  return m.is_posted ? "posted" : m.is_staged ? "staged" : "direct";
}

/// Signals of posted messages count epochs; a side that leaves adds a bit. As their memory is symmetric, a put that
/// comes late does no harm.
constexpr std::uint64_t posted_epochs = LeavingBits::failing_bit - 1;

/// The words and buffers by which the messages of one exchange travel.
struct ExchangeLinks {
  World& world;
  /// The word of each rank with the epoch that its targets have entered: where sends and receives are run apart,
  /// another word than that of its sources.
  int target_word = source_word;
  /// Targets alone move, in their own order: sums and other combinations.
  bool only_targets_move = false;
  int buffers = 1;  ///< of each message between ranks that reach each other
  /// Per rank: the epochs that it has entered, then those of every message that it receives from memory that it shares.
  SharedFlags words = {};
  std::optional<Notices> notices = {};
  /// Of posted messages. What carries them may have it for longer than the exchange.
  std::shared_ptr<std::vector<Line>> outbox_lines = std::make_shared<std::vector<Line>>();
  std::vector<Line> packed_lines = {};  // of messages that are packed first, one message at a time

  static constexpr int source_word = 0;
  static constexpr int apart_word = 1;
  /// The epochs that the rank waits for with its sends and with its receives, where these are run apart.
  static constexpr int source_waits_word = 2;
  static constexpr int target_waits_word = 3;
  /// The last epoch in which the rank has received all. Sources look there, and not at the words by which parts are
  /// claimed: those stay in the cache of the target that claims.
  static constexpr int taken_word = 4;
  static constexpr int first_message_word = 5;

  /// One for each buffer, and the address of the first buffer.
  int words_per_message() const { return buffers + 1; }
  bool are_apart() const { return target_word != source_word; }
};

}  // namespace tranship
