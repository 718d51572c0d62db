// Private: SharedWorld: what the ranks of one machine share: a board, words and places by which they meet, and their
// memory.
//
//   | header, board, arrivals and meeting places by slot and rank | rank 0: symmetric heap, local memory | rank 1: ...
//
// Data that all ranks of a team read is contiguous: a barrier of a thousand ranks reads a few pages, not a thousand.
// The memory holds no pointers, so it may lie at different addresses in different processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/seam/board.hpp>
#include <tranship/fabric/seam/call.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/shared/shared_memory.hpp>

namespace tranship {

/// Data that one rank brings to the meetings of one team.
struct MeetingPlace {
  static constexpr std::size_t offer_bytes = 960;

  /// A rank's data for a meeting. Two offers are used in turn: a rank overwrites one only after a later meeting, which
  /// all members enter after they have read it. So one barrier per meeting suffices.
  struct alignas(64) Offer {
    Call call;
    std::byte bytes[offer_bytes];
  };
  /// A rank's own description of its call when calls differ: the number of the meeting, and the text.
  struct alignas(64) Statement {
    RealSync::Word meeting;
    char text[192];
  };

  Offer offers[2];
  Statement statement;
};

class SharedWorld {
 public:
  struct Shape {
    int ranks = 1;
    /// Address space per rank for its symmetric heap, and for its local memory that others reach.
    std::size_t heap_bytes = 0;
    std::size_t local_bytes = 0;
    /// Number of cores of the process that makes the world, which its ranks share; 0 asks the system.
    int cores = 0;
    /// Maximum number of teams at a time.
    int teams = TeamSlots::count_default;
    /// Slots of the board, if the world has ranks on several machines; 0 for one slot per rank.
    int board_ranks = 0;
  };
  enum class Kind { threads, processes };

  SharedWorld(const Shape& shape, Kind kind);
  /// Makes a world with heaps of `heap_bytes` per rank and, for processes, as much local memory. If `heap_bytes` is not
  /// set: the value of TRANSHIP_HEAP (bytes, or with suffix K, M, G or T), else the memory of this machine, or less if
  /// the system does not grant that many addresses. Throws `no_memory` if the system grants less than was requested.
  ///
  /// `teams` is the maximum number at a time; if not set, TRANSHIP_TEAMS, else TeamSlots::count_default.
  struct Making {
    int ranks = 1;
    std::optional<std::size_t> heap_bytes = std::nullopt;
    int cores = 0;
    std::optional<int> teams = std::nullopt;
    /// See Shape::board_ranks.
    int board_ranks = 0;
  };
  static std::shared_ptr<SharedWorld> make(const Making& making, Kind kind);
  /// Maps a world that another process has made. Throws `mismatch` if another version of tranship made it.
  explicit SharedWorld(int descriptor);
  /// Returns the properties that builds must share to share a world: "tranship 0.1.0 layout 5, boards of ...". Less
  /// than 128 bytes.
  static std::string build();

  const Shape& shape() const noexcept { return shape_; }
  int descriptor() const noexcept { return memory_.descriptor(); }
  std::size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  /// Offset of the heap of rank 0.
  std::size_t heap_offset_bytes() const noexcept { return place_of(0, 0); }
  Board& board() noexcept { return *board_; }
  /// The number of meetings in a slot that a rank has reached; `slot` is less than Shape::teams.
  RealSync::Word& arrivals(Rank rank, int slot) const noexcept {
    return arrivals_[(slot * shape_.ranks + rank) * arrivals_stride];
  }
  /// The last meeting in a slot whose data this rank has read.
  RealSync::Word& read_until(Rank rank, int slot) const noexcept { return (&arrivals(rank, slot))[1]; }
  /// Distance in words from one rank to the next: processors fetch cache lines in pairs.
  static constexpr std::ptrdiff_t arrivals_stride = 2;
  MeetingPlace& meeting_place(Rank rank, int slot) const noexcept { return places_[slot * shape_.ranks + rank]; }
  /// Obtains the meeting places of a slot; the predefined slots have theirs from the start. Throws `no_memory`.
  void obtain_slot(int slot) const;

  std::size_t heap_bytes() const noexcept { return shape_.heap_bytes; }
  /// The heaps of successive ranks begin one stride apart.
  std::byte* heap_of(Rank rank) const noexcept { return segments_ + static_cast<std::size_t>(rank) * stride_bytes_; }
  std::size_t stride_bytes() const noexcept { return stride_bytes_; }
  /// The heaps of all ranks.
  const HeapAddresses& heaps() const noexcept { return heaps_; }
  /// Obtain and release parts of a rank's symmetric heap, and of its local memory, which follows the heap.
  Result<void> obtain(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const;
  void give_back(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const noexcept;

  /// SharedMemory::join() and part() for a part of a rank's symmetric heap.
  Result<void> join(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const;
  bool part(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept;

  /// Publishes the address at which a rank has mapped this world.
  void post_base(Rank rank) noexcept;
  /// Returns the address here of that rank's `address`; nullptr if it does not lie in this world.
  void* translate(Rank rank, const void* address) const noexcept;

 private:
  struct Header;
  void lay_out();
  std::size_t place_of(Rank rank, std::size_t offset_bytes) const noexcept;

  SharedMemory memory_;
  Shape shape_;
  std::optional<Board> board_;
  void* bases_ = nullptr;  // by rank: the address at which it has mapped this memory
  RealSync::Word* arrivals_ = nullptr;
  MeetingPlace* places_ = nullptr;
  std::byte* segments_ = nullptr;
  std::size_t stride_bytes_ = 0;  // from the heap of one rank to that of the next
  HeapAddresses heaps_;
};

}  // namespace tranship
