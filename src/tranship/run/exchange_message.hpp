// Private: the messages of an exchange, and what all of them share.
#pragma once

#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/sync/claim.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/kernels/host/peer_writes.hpp>
#include <tranship/lower/move_bundle.hpp>

namespace tranship {

class Courier;

/// What a rank tells its peers of one of its arrays.
struct ArrayCard {
  SlotLayout layout;
  std::byte* data = nullptr;
  bool is_exposed = false;  // to peers that can reach it
};

/// A message that a rank expects: how much, and where the sender puts it, which is nowhere when it goes straight to the
/// array. Each rank keeps a list of them, by source, in which the senders look; the place in the list is also the place
/// of the message's word.
struct Arrival {
  Rank source = -1;
  Index bytes = 0;
  std::byte* staging = nullptr;
};

/// What of a message goes from one slot to another: a list of moves of its own where several arrays share it.
struct Strand {
  int source_slot = -1;  // of slots that are one array each: none, for all of them together
  int target_slot = -1;
  int arrays = 1;
  Index bytes = 0;  // of each array

  friend bool operator<(const Strand& a, const Strand& b) {
    return std::tie(a.source_slot, a.target_slot) < std::tie(b.source_slot, b.target_slot);
  }
};

/// What goes from one rank to another in one exchange, as far as this rank is concerned.
struct Message {
  Rank source = -1;
  Rank target = -1;
  Rank peer = -1;
  Index bytes = 0;
  std::vector<Strand> strands;        // in their order, which both ends share: so they lie in a staging buffer
  const ArrayCard* cards = nullptr;   // the peer's
  std::vector<ArrayCard> cards_kept;  // where arrays are bound again later: those of the set-up
  bool is_posted = false;             // the peer is only messaged
  bool is_exposed = false;            // whether this rank reaches all of the peer's arrays
  RealSync::Word* words[2] = {};      // by buffer; none until the ranks have agreed, and of what is posted
  bool staged = false;
  const Courier* courier = nullptr;  // none until it is known whether the message is staged
  /// Of what is posted: the signals of this rank and of the peer, and where it lies in the target's inbox and
  /// the source's outbox.
  Index signal_here = 0;
  Index signal_there = 0;
  Index inbox_line = 0;
  Index outbox_line = 0;
  /// Direct: source array to target array. Staged: to (source) or from (target) the staging buffer.
  MoveBundle moves;
  MoveBundle other_moves;  // by the second buffer, where there are two
  /// Of a message that is packed first: to this rank's own memory, from which whole lines are written to the first
  /// buffer or the one behind it, by the kind of stores that is faster there.
  MoveBundle packing;
  std::byte* inbox = nullptr;
  WriteChoice choice = {};
  std::uint64_t epoch = 0;   // that this rank is in with it
  std::uint64_t packed = 0;  // the last epoch for which its buffer was filled, of what is sent
  bool done = true;          // of that epoch
  std::int64_t done_ns = 0;  // where runs are recorded
};

inline const char* way_of(const Message& m) {
  return m.is_posted ? "posted" : m.staged ? "staged" : "direct";
}

/// Staging buffers begin on cache lines of their own.
struct alignas(64) Line {
  std::byte bytes[64];
};
inline Index lines_of(Index bytes) {
  return ceil_divide(bytes, sizeof(Line));
}

/// How messages go to peers that are only messaged: packed here, put into the inbox of the target with a signal,
/// unpacked there, and the place in the inbox is given back by a signal. Signals count epochs; a side that leaves adds
/// a bit. The memory is symmetric, so a put that comes late does no harm.
struct Posts {
  struct Card {
    Rank peer = -1;
    Index bytes = 0;
    Index inbox_line = 0;
  };
  static constexpr std::uint64_t epochs = LeavingBits::failing_bit - 1;
  static constexpr Index words_per_signal = 8;  // a line of its own

  Index receives_max = 0;
  SymmetricArray<Line> inbox;
  SymmetricArray<Card> incoming, outgoing;  // by message, as the rank itself lists them
  SymmetricArray<std::uint64_t> signals;    // of what it receives, then of what it sends

  Symmetric<std::uint64_t> signal(Index message) const { return signals.slice(message * words_per_signal, 1); }
};

/// What the messages of one exchange share.
struct Journey {
  World& world;
  /// Of each rank, the word of the epoch that its targets have entered: where sends and receives are run apart another
  /// one than that of its sources.
  int target_word = source_word;
  /// Per rank: the epochs that it has entered, then one word for every arrival.
  SharedFlags words = {};
  std::optional<Posts> posts = {};      // where any messages are posted, between whichever ranks
  std::vector<Line> outbox_lines = {};  // of what is posted
  std::vector<Line> packed_lines = {};  // of what is packed first, one message at a time
  bool only_targets_move = false;       // in their own order: combinations
  bool copies_for_peers = true;         // else what it sends is left to the targets, which then have it in their caches
  bool has_time = false;                // this rank waits; else it leaves to peers that wait what they can copy
  /// Staging buffers of a message, which take turns. With two of them the next epoch can be packed while the target
  /// reads the one before, so that a rank packs in start() without waiting.
  int buffers = 1;

  static constexpr int source_word = 0;
  static constexpr int apart_word = 1;
  /// The epochs that the rank waits for with what it sends and with what it receives, where these are run apart.
  static constexpr int source_waits_word = 2;
  static constexpr int target_waits_word = 3;
  /// The last epoch in which the rank has received all. Sources look there, and not at the words by which parts are
  /// claimed: those stay in the cache of the target that claims.
  static constexpr int taken_word = 4;
  static constexpr int first_message_word = 5;

  bool are_apart() const { return target_word != source_word; }
  int buffer_of(std::uint64_t epoch) const { return buffers == 1 ? 0 : int(epoch % 2); }
  /// The number of an epoch among those that use its buffer, from 1 on.
  std::uint64_t turn_of(std::uint64_t epoch) const { return buffers == 1 ? epoch : (epoch + 1) / 2; }
};

}  // namespace tranship
