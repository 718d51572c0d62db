// Private: SharedWorld, what the ranks of one machine share: a board, words and mailboxes to meet, and their memory.
//
//   | header, board, arrivals and meeting places by slot and rank | rank 0: symmetric heap, local memory | rank 1: ...
//
// What all ranks of a team look at lies side by side: a barrier of a thousand ranks reads a few pages, not a thousand.
// It holds no pointers, so it may lie at different addresses in different processes.
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

/// What the members of a team bring when they meet: one for each rank and team.
struct MeetingPlace {
  static constexpr std::size_t offer_bytes = 960;

  /// What a rank brings to a meeting. Two, used in turn: a rank writes one again only after a later meeting, which all
  /// members enter after they have read it. So one barrier per meeting is enough.
  struct alignas(64) Offer {
    Call call;
    std::byte bytes[offer_bytes];
  };
  /// What a rank has to say when calls differ, for others to read: the meeting, then the text.
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
    /// Reserved for each rank's symmetric heap, and for memory of its own that others reach.
    std::size_t heap_bytes = 0;
    std::size_t local_bytes = 0;
    /// That the one who makes it may run on, and so its ranks; 0 asks the system.
    int cores = 0;
    /// That can exist at a time.
    int teams = TeamSlots::count_default;
    /// Slots of its board, where its ranks are some of a world on several machines; 0: as many as there are ranks.
    int board_ranks = 0;
  };
  enum class Kind { threads, processes };

  SharedWorld(const Shape& shape, Kind kind);
  /// With heaps of `heap_bytes` for each rank, and for processes as much local memory. Where nothing is said: what
  /// TRANSHIP_HEAP gives (bytes, or with K, M, G, T), else the memory of this machine, or less where the system does
  /// not grant so many addresses. Throws `no_memory` when it grants less than was said.
  ///
  /// `teams` can exist at a time; where nothing is said, TRANSHIP_TEAMS, else TeamSlots::count_default.
  struct Making {
    int ranks = 1;
    std::optional<std::size_t> heap_bytes = std::nullopt;
    int cores = 0;
    std::optional<int> teams = std::nullopt;
    /// As Shape says.
    int board_ranks = 0;
  };
  static std::shared_ptr<SharedWorld> make(const Making& making, Kind kind);
  /// What another process has made. Throws `mismatch` when that was another version of tranship.
  explicit SharedWorld(int descriptor);
  /// What two builds must have in common to share a world: "tranship 0.1.0 layout 5, boards of ...". Less than 128
  /// bytes.
  static std::string build();

  const Shape& shape() const noexcept { return shape_; }
  int descriptor() const noexcept { return memory_.descriptor(); }
  std::size_t size_bytes() const noexcept { return memory_.size_bytes(); }
  /// Where the heap of rank 0 begins in it.
  std::size_t heap_offset_bytes() const noexcept { return place_of(0, 0); }
  Board& board() noexcept { return *board_; }
  /// How often a rank has come to meetings in a slot, less than Shape::teams.
  RealSync::Word& arrivals(Rank rank, int slot) const noexcept {
    return arrivals_[(slot * shape_.ranks + rank) * arrivals_stride];
  }
  /// The last meeting in a slot of which this rank has read what the others brought.
  RealSync::Word& read_until(Rank rank, int slot) const noexcept { return (&arrivals(rank, slot))[1]; }
  /// In words from one rank to the next: processors fetch lines in pairs.
  static constexpr std::ptrdiff_t arrivals_stride = 2;
  MeetingPlace& meeting_place(Rank rank, int slot) const noexcept { return places_[slot * shape_.ranks + rank]; }
  /// Obtains the meeting places of a slot. Those of teams that all worlds have are there. Throws `no_memory`.
  void obtain_slot(int slot) const;

  std::size_t heap_bytes() const noexcept { return shape_.heap_bytes; }
  /// The heaps of ranks begin one stride apart.
  std::byte* heap_of(Rank rank) const noexcept { return segments_ + static_cast<std::size_t>(rank) * stride_bytes_; }
  std::size_t stride_bytes() const noexcept { return stride_bytes_; }
  /// Of all ranks.
  const HeapAddresses& heaps() const noexcept { return heaps_; }
  /// Parts of the symmetric heap of a rank, and of its local memory, which comes behind it.
  Result<void> obtain(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const;
  void give_back(Rank rank, std::size_t offset_bytes, std::size_t size_bytes) const noexcept;

  /// SharedMemory::join and part, of a part of the symmetric heap of a rank.
  Result<void> join(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const;
  bool part(Rank rank, std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept;

  /// A rank tells others at which address it sees this world.
  void post_base(Rank rank) noexcept;
  /// What `address` of that rank is here; nullptr where it does not lie in this world.
  void* translate(Rank rank, const void* address) const noexcept;

 private:
  struct Header;
  void lay_out();
  std::size_t place_of(Rank rank, std::size_t offset_bytes) const noexcept;

  SharedMemory memory_;
  Shape shape_;
  std::optional<Board> board_;
  void* bases_ = nullptr;  // by rank: the address at which it sees this memory
  RealSync::Word* arrivals_ = nullptr;
  MeetingPlace* places_ = nullptr;
  std::byte* segments_ = nullptr;
  std::size_t stride_bytes_ = 0;  // from the heap of one rank to that of the next
  HeapAddresses heaps_;
};

}  // namespace tranship
