// Private: SymmetricHeap, one rank's view of the memory that all ranks allocate alike. Every rank keeps the same books,
// for allocation is collective and checked to be called alike, so no rank asks where a block lies.
//
// It grows: addresses are reserved at the start, memory is obtained when a block is allocated. That of large blocks
// (Domain::sparse_bytes_min) is granted by the system when it is touched.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tranship/base/call_site.hpp>
#include <tranship/fabric/heap/range_allocator.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/symmetric.hpp>

namespace tranship {

class Team;

class SymmetricHeap {
 public:
  /// What a block is for, of which all ranks must say the same, but for `own_bytes`.
  struct Request {
    std::size_t size_bytes = 0;
    std::optional<std::size_t> own_bytes = std::nullopt;  ///< for which this rank needs memory; else for all
    std::size_t alignment = 64;
    CallKind kind = CallKind::allocate;
    std::uint8_t type = 0;
  };

  SymmetricHeap(World& world, Fabric& fabric);

  /// Collective. Zeroed; nullptr for 0 bytes. Letting go of it is not collective: it is free again at the first
  /// allocation after the last rank has released it, be it after the world has ended. Throws `mismatch`, or
  /// `no_memory` on every rank when any has none.
  std::shared_ptr<void> allocate(Team& everyone, const Request& request, CallSite where);
  /// Collective: waits for all ranks, then frees at once. Throws `invalid_use` for what is no block, or still shared.
  void free(Team& everyone, const std::shared_ptr<void>& block, CallSite where);

  /// Collective: what World::register_memory says, or nothing for 0 bytes.
  RegisteredMemory join(Team& everyone, void* memory, std::size_t size_bytes, CallSite where);

  /// Addresses of this heap in which no block of it will lie while `hold` lives, which any thread may release.
  struct Lent {
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::shared_ptr<void> hold;
  };
  /// Collective over `borrowers`, some of the ranks: the same on all of them, in whole pages; other ranks need not
  /// know. An eighth of the heap where no size is said. It is free again when no borrower holds it any more: for
  /// sub-worlds of these ranks at once, for all else at the next allocation of all ranks. Throws `no_memory` on all
  /// borrowers.
  Lent lend(Team& borrowers, std::optional<std::size_t> size_bytes, CallSite where) {
    return lend(borrowers, size_bytes, CallKind::sub_world, where);
  }
  /// Collective over `borrowers`, too: zeroed memory of these addresses for the words by which they meet in kernels.
  /// It lies in a block, as what allocate() gives. Throws `no_memory` on all borrowers.
  std::shared_ptr<void> lend_words(Team& borrowers, std::size_t size_bytes, CallSite where);

  /// Whether this rank may have registered memory.
  bool has_registered() const noexcept { return !registered_.empty(); }
  /// Where memory that this rank has registered lies in its heap; nothing for other memory, the heap included.
  std::optional<std::size_t> offset_of_registered(const std::byte* memory) const noexcept {
    if (registered_.empty()) [[likely]]
      return std::nullopt;
    return find_registered(memory);
  }

  HeapUsage usage() const noexcept;
  /// In blocks whose memory has been obtained.
  std::size_t granted_bytes() const noexcept { return ranges_.used_bytes() - sparse_bytes_; }
  const HeapPlace& place() const noexcept { return place_; }
  /// Whether all these bytes lie in one block that this rank has not released.
  bool is_allocated(std::size_t offset_bytes, std::size_t size_bytes) const;

 private:
  struct Released;
  struct Lendings;
  struct Block {
    std::uint64_t serial = 0;
    std::size_t size_bytes = 0;                  ///< that were asked for
    std::size_t own_bytes = 0;                   ///< that this rank has memory for
    std::shared_ptr<std::atomic<bool>> is_held;  ///< by this rank; any thread may release it
  };
  struct Registered {
    const std::byte* memory = nullptr;
    std::size_t size_bytes = 0;
    std::size_t offset = 0;
    std::weak_ptr<void> joined;
  };
  std::byte* own(std::size_t offset) const noexcept;
  std::optional<std::size_t> find_registered(const std::byte* memory) const noexcept;
  Lent lend(Team& borrowers, std::optional<std::size_t> size_bytes, CallKind kind, CallSite where);
  /// The first meeting of an allocation: what all have released is free, and what none has lent. What the system can
  /// still give all of them, each of which asks where it `asks`.
  enum class Asking : std::uint8_t { no, yes };
  Index free_released(Asking asking, Team& everyone, const Call& call, CallSite where);
  /// A bit for each block, by offset, that this rank has released; none behind the last one of these.
  std::vector<std::uint64_t> released_bits() const;
  void make_zero(std::size_t first, std::size_t end);
  void forget(std::map<std::size_t, Block>::iterator block, CallSite where);

  World& world_;
  Fabric& fabric_;
  HeapPlace place_;
  RangeAllocator ranges_;
  std::map<std::size_t, Block> blocks_;  // by offset
  std::uint64_t next_serial_ = 1;
  std::size_t touched_bytes_ = 0;          // behind these, memory holds zeros
  std::size_t ever_lent_from_ = SIZE_MAX;  // from here on it may hold what sub-worlds have left
  std::size_t sparse_bytes_ = 0;           // in blocks that are sparse
  std::size_t unasked_bytes_ = 0;          // obtained since the system was asked what it has
  std::vector<Registered> registered_;     // in this world; those that have been released until the next one
  std::shared_ptr<Released> released_;
  std::shared_ptr<Lendings> lendings_;
};

}  // namespace tranship
