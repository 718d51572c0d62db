// Private: SymmetricHeap: one rank's view of the memory that all ranks allocate alike. Allocation is collective and
// checks that all ranks call it alike, so every rank keeps the same records and none has to ask where a block lies.
//
// The heap grows: addresses are reserved at the start, memory is obtained when a block is allocated. For large blocks
// (Domain::sparse_bytes_min) the system grants it on first touch.
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
  /// Properties of a block, which all ranks must give alike, except `own_bytes`.
  struct Request {
    std::size_t size_bytes = 0;
    std::optional<std::size_t> own_bytes = std::nullopt;  ///< memory that this rank needs; all of it if not set
    std::size_t alignment = 64;
    CallKind kind = CallKind::allocate;
    std::uint8_t type = 0;
  };

  SymmetricHeap(World& world, Fabric& fabric);

  /// Collective. Returns zeroed memory; nullptr for 0 bytes. Releasing it is not collective: it becomes free at the
  /// first allocation after the last rank has released it, which may be after the world has ended. Throws `mismatch`,
  /// and `no_memory` on every rank if any rank has none.
  std::shared_ptr<void> allocate(Team& everyone, const Request& request, CallSite where);
  /// Collective: waits for all ranks, then frees at once. Throws `invalid_use` for memory that is not a block, or has
  /// other owners.
  void free(Team& everyone, const std::shared_ptr<void>& block, CallSite where);

  /// Collective. Implements World::register_memory(); returns an empty registration for 0 bytes.
  RegisteredMemory join(Team& everyone, void* memory, std::size_t size_bytes, CallSite where);

  /// Addresses of this heap in which none of its own blocks lies while `hold` lives. Any thread may release `hold`.
  struct Lent {
    std::size_t offset_bytes = 0;
    std::size_t size_bytes = 0;
    std::shared_ptr<void> hold;
  };
  /// Collective over `borrowers`, which are some of the ranks; the others take no part. Returns the same addresses on
  /// all of them, in whole pages: an eighth of the heap if no size is given. They become free when no borrower holds
  /// them any more: at once for sub-worlds of the same ranks, otherwise at the next allocation of all ranks. Throws
  /// `no_memory` on all borrowers.
  Lent lend(Team& borrowers, std::optional<std::size_t> size_bytes, CallSite where) {
    return lend(borrowers, size_bytes, CallKind::sub_world, where);
  }
  /// Collective over `borrowers`, too. Lends zeroed memory for the words by which they meet in kernels. Checks treat it
  /// as a block of allocate(). Throws `no_memory` on all borrowers.
  std::shared_ptr<void> lend_words(Team& borrowers, std::size_t size_bytes, CallSite where);

  /// Returns true if this rank may have registered memory.
  bool has_registered() const noexcept { return !registered_.empty(); }
  /// Returns the heap offset of memory that this rank has registered; nothing for other memory, including the heap
  /// itself.
  std::optional<std::size_t> offset_of_registered(const std::byte* memory) const noexcept {
    if (registered_.empty()) [[likely]]
      return std::nullopt;
    return find_registered(memory);
  }

  HeapUsage usage() const noexcept;
  /// Returns the size of all blocks whose memory has been obtained.
  std::size_t granted_bytes() const noexcept { return ranges_.used_bytes() - sparse_bytes_; }
  const HeapPlace& place() const noexcept { return place_; }
  /// Returns true if all these bytes lie in one block that this rank has not released.
  bool is_allocated(std::size_t offset_bytes, std::size_t size_bytes) const;

 private:
  struct Released;
  struct Lendings;
  struct Block {
    std::uint64_t serial = 0;
    std::size_t size_bytes = 0;                  ///< as requested
    std::size_t own_bytes = 0;                   ///< for which this rank has memory
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
  /// First meeting of an allocation: frees the blocks that all ranks have released, and the addresses that no rank has
  /// lent. Returns the memory that the system can still give, the least of all ranks if `asking`.
  enum class Asking : std::uint8_t { no, yes };
  Index free_released(Asking asking, Team& everyone, const Call& call, CallSite where);
  /// Returns one bit per block, by offset, set if this rank has released it; no bits after the last such block.
  std::vector<std::uint64_t> released_bits() const;
  void make_zero(std::size_t first, std::size_t end);
  void forget(std::map<std::size_t, Block>::iterator block, CallSite where);

  World& world_;
  Fabric& fabric_;
  HeapPlace place_;
  RangeAllocator ranges_;
  std::map<std::size_t, Block> blocks_;  // by offset
  std::uint64_t next_serial_ = 1;
  std::size_t touched_bytes_ = 0;          // memory behind these still holds zeros
  std::size_t ever_lent_from_ = SIZE_MAX;  // memory from here on may hold data of sub-worlds
  std::size_t sparse_bytes_ = 0;           // in sparse blocks
  std::size_t unasked_bytes_ = 0;          // obtained since the system was last asked what it has
  std::vector<Registered> registered_;     // of this world; released ones stay until the next registration
  std::shared_ptr<Released> released_;
  std::shared_ptr<Lendings> lendings_;
};

}  // namespace tranship
