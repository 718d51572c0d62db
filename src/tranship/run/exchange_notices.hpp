// Private: Notices, the facts that ranks of an exchange need of each other, kept in symmetric memory where peers look
// them up. The amount that a rank stores and reads grows with its own number of peers.
//
// Each rank lays out its own block. All ranks reserve the size of the largest one, and each takes memory for its own
// part:
//
//   | header | cards of its arrays | an entry for each peer, ascending | signals of messages | inboxes |
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <tranship/fabric/context.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

/// Staging buffers begin on cache lines of their own.
struct alignas(64) Line {
  std::byte bytes[64];
};
inline Index lines_of(Index bytes) {
  return ceil_divide(bytes, sizeof(Line));
}

/// One of a rank's arrays, as its peers see it.
struct ArrayCard {
  SlotLayout layout;
  std::byte* data = nullptr;
  bool is_exposed = false;  // to peers that can reach it
};

class Notices {
 public:
  /// The messages between a rank and a peer. For a peer that is only messaged it has two signals: for the message that
  /// the rank receives and, one line further, for the one that it sends.
  struct Entry {
    Rank peer = -1;
    std::int32_t receive = -1;  ///< index among the messages that it receives
    Index bytes_in = 0;
    Index bytes_out = 0;
    std::uint64_t signal = 0;  ///< offset of the two signals in its block
    std::uint64_t inbox = 0;   ///< offset in its block of the inbox for that peer
  };
  struct Found {
    std::vector<ArrayCard> cards;
    Entry entry;  ///< that rank's entry for this one; `peer` is -1 where it has none
  };

  /// For a rank with `cards` arrays.
  explicit Notices(std::size_t cards) : cards_(cards) {}

  /// Adds an entry; call by ascending peer. A peer that is only messaged needs `inbox_bytes` for its messages.
  void add(const Entry& entry, bool is_messaged, Index inbox_bytes);
  Index entries() const noexcept { return Index(entries_.size()); }
  std::size_t size_bytes() const noexcept { return inboxes_at() + std::size_t(inbox_lines_) * sizeof(Line); }

  /// Maxima over all ranks.
  struct Largest {
    std::size_t size_bytes = 0;
    Index entries = 0;
  };
  /// Collective. Afterwards every rank can find the notices of every other.
  void publish(World& world, std::span<const ArrayCard> cards, const Largest& largest, CallSite where);

  Found find(Rank peer) const;
  /// This rank's entry for one of its peers.
  const Entry& entry(Rank peer) const;
  Symmetric<std::uint64_t> signal(std::uint64_t at) const {
    return Symmetric<std::uint64_t>::at(reinterpret_cast<std::uint64_t*>(block_.local() + at), 1);
  }
  Symmetric<Line> inbox(std::uint64_t at, Index lines) const {
    return Symmetric<Line>::at(reinterpret_cast<Line*>(block_.local() + at), lines);
  }

 private:
  struct alignas(64) Header {
    Index entries = 0;
  };
  /// Lists of up to this length are read as a whole; longer ones are searched.
  static constexpr Index read_whole_max = 32;

  std::size_t entries_at() const noexcept { return sizeof(Header) + cards_ * sizeof(ArrayCard); }
  std::size_t signals_at() const noexcept;
  std::size_t inboxes_at() const noexcept { return signals_at() + std::size_t(messaged_) * 2 * sizeof(Line); }
  /// Bytes that find() reads of any rank.
  std::size_t read_bytes() const noexcept {
    return entries_at() + std::size_t(std::min(entries_max_, read_whole_max)) * sizeof(Entry);
  }
  Entry* own_entries() const noexcept { return reinterpret_cast<Entry*>(block_.local() + entries_at()); }
  Entry entry_of(Rank peer, Index number) const;
  Symmetric<Entry> entry_at(Index number, Index count) const {
    return Symmetric<Entry>::at(own_entries() + number, count);
  }

  std::size_t cards_;
  std::vector<Entry> entries_;  // until publish(), places count from the first signal and the first inbox
  std::vector<bool> is_messaged_;
  Index messaged_ = 0;
  Index inbox_lines_ = 0;
  Index entries_max_ = 0;
  Context* context_ = nullptr;
  SymmetricArray<std::byte> block_;
};

}  // namespace tranship
