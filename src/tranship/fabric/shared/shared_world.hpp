// SharedWorld: what the ranks of one machine share: a board, words and mailboxes to meet, and the memory of each rank.
//
//   | header, board, meeting places of all ranks | rank 0: symmetric heap, local memory | rank 1: ... | ...
//
// It holds no pointers, so it may lie at different addresses in different processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include <tranship/base/sync.hpp>
#include <tranship/fabric/board.hpp>
#include <tranship/fabric/call.hpp>
#include <tranship/fabric/fabric.hpp>
#include <tranship/fabric/shared/shared_memory.hpp>

namespace tranship {

/// Where the members of a team meet: one for each rank and team.
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

  RealSync::Word arrivals;
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
  };
  enum class Kind { threads, processes };

  SharedWorld(const Shape& shape, Kind kind);
  /// With heaps of `heap_bytes` for each rank, and for processes as much local memory. Where nothing is said: what
  /// TRANSHIP_HEAP gives (bytes, or with K, M, G, T), else the memory of this machine, or less where the system does
  /// not grant so many addresses. Throws `no_memory` when it grants less than was said.
  static std::shared_ptr<SharedWorld> make(int ranks, std::optional<std::size_t> heap_bytes, Kind kind, int cores = 0);
  /// What another process has made. Throws `mismatch` when that was another version of tranship.
  explicit SharedWorld(int descriptor);

  const Shape& shape() const noexcept { return shape_; }
  int descriptor() const noexcept { return memory_.descriptor(); }
  Board& board() noexcept { return *board_; }
  MeetingPlace& meeting_place(Rank rank, int slot) const noexcept;
  /// From the meeting place of one rank to that of the next.
  static constexpr std::ptrdiff_t meeting_place_stride = Fabric::teams_max;

  HeapPlace heap() const noexcept;
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
  void lay_out() noexcept;
  std::size_t place_of(Rank rank, std::size_t offset_bytes) const noexcept;

  SharedMemory memory_;
  Shape shape_;
  std::optional<Board> board_;
  void* bases_ = nullptr;  // by rank: the address at which it sees this memory
  MeetingPlace* places_ = nullptr;
  std::byte* segments_ = nullptr;
};

}  // namespace tranship
