// Private: the memory of software cards, and the memory of the host that is known to them. What a card holds lies in
// files without a name that are mapped twice: at the device address, where no access is allowed but while a kernel
// runs, and at a window, through which the driver copies. A stray access of host code therefore ends where it happens.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace tranship::cuda::software {

using Address = std::uintptr_t;

/// Bits by the number of a card.
using CardSet = std::uint32_t;
inline CardSet only(int card) noexcept {
  return CardSet(1) << card;
}

enum class Place : unsigned char {
  device,      ///< memory of a card
  mapped,      ///< memory of a card that was created and mapped apart
  pinned,      ///< memory of the host that the driver has allocated
  registered,  ///< memory of the host that was made known
};

/// Memory that was made by cuMemCreate, with its window; it goes with the last handle, mapping and piece of work.
struct Physical {
  Physical(int of_card, std::size_t size_bytes, int file);
  ~Physical();
  Physical(const Physical&) = delete;

  int card;
  std::size_t bytes;
  int file;
  unsigned char* window;
};

/// One allocation.
struct Range {
  Address first = 0;
  std::size_t bytes = 0;
  Place place = Place::device;
  int card = 0;
  unsigned char* window = nullptr;  ///< where the driver reaches its first byte
  CardSet loads = 0, stores = 0;    ///< whose kernels may do so
  std::uint64_t pool = 0;           ///< from which it was allocated; 0: from none
  std::shared_ptr<Physical> physical;

  Address end() const noexcept { return first + bytes; }
  bool has(Address address) const noexcept { return address - first < bytes; }
  bool is_of_host() const noexcept { return place == Place::pinned || place == Place::registered; }
};

/// Contiguous memory, at the address of the driver.
struct Stretch {
  unsigned char* first;
  std::size_t bytes;
  std::shared_ptr<Physical> owner;
};

/// Thread-safe.
class Memory {
 public:
  /// `capacity_bytes` for each card.
  Memory(int cards, std::size_t capacity_bytes, std::uint64_t seed);
  Memory(const Memory&) = delete;

  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }
  std::size_t used_bytes(int card) const;

  /// The number of a pool of memory of `card`.
  std::uint64_t add_pool(int card);
  /// Returns 0 where there is no room. Aligned to 256 bytes, not always to more; contents are arbitrary. Memory of no
  /// pool has the pool 0.
  Address allocate(int card, std::size_t bytes, std::uint64_t pool = 0);
  /// Releases an address that allocate() returned.
  void release(Address first);
  /// Sets whether the kernels of `card` use the allocations of `owner` that are of no pool, from now on.
  void let_reach(int card, int owner, bool may);
  /// Sets whether the kernels of `card` load from and store to the allocations of a pool, from now on.
  void let_reach_pool(int card, std::uint64_t pool, bool may_load, bool may_store);
  bool has_memory_of(std::uint64_t pool) const;

  Address allocate_pinned(std::size_t bytes);
  bool release_pinned(Address first);
  /// Returns false where a byte of it is known already.
  bool register_host(Address first, std::size_t bytes);
  bool unregister_host(Address first);

  /// Virtual memory.
  std::shared_ptr<Physical> create(int card, std::size_t bytes);
  std::shared_ptr<Physical> import(int card, int file);
  Address reserve(std::size_t bytes, std::size_t alignment);
  bool unreserve(Address first, std::size_t bytes);
  bool map(Address first, std::size_t bytes, std::shared_ptr<Physical> physical);
  /// Whole mappings alone.
  bool unmap(Address first, std::size_t bytes);
  bool set_access(Address first, std::size_t bytes, int card, bool may_load, bool may_store);

  std::optional<Range> find(Address address) const;
  /// Returns true when the address is a card's, allocated or not.
  bool is_of_cards(Address address) const;
  /// The memory of [first, first + bytes) as the driver reaches it; empty where some of it is neither allocated nor
  /// accessible. Memory of the host that is not known to the cards is one stretch.
  std::vector<Stretch> stretches(Address first, std::size_t bytes, bool for_writing) const;

  /// While one is open, the device addresses can be loaded and stored by this process.
  void open();
  void close();
  /// Grows with each change of what is allocated or accessible.
  std::uint64_t version() const noexcept { return version_.load(std::memory_order_acquire); }

 private:
  struct Arena {
    int file = -1;
    Address first = 0;
    unsigned char* window = nullptr;
    std::map<std::size_t, std::size_t> free;  // offset, bytes
    std::size_t used = 0;
    std::size_t created = 0;  // by create()
  };
  struct Reservation {
    std::size_t bytes;
  };

  struct Reach {
    CardSet loads, stores;
    void let(int card, bool may_load, bool may_store) noexcept;
  };

  void protect(const Range& range) const;
  bool maps_whole(Address first, std::size_t bytes) const;
  const Range* at(Address address) const;

  mutable std::mutex mutex_;
  std::size_t capacity_bytes_;
  std::uint64_t seed_;
  std::vector<Arena> arenas_;
  std::vector<Reach> reached_by_;                   ///< allocations of a card that are of no pool
  std::map<std::uint64_t, Reach> pool_reached_by_;  ///< pools are never forgotten
  std::map<Address, Range> ranges_;
  std::map<Address, Reservation> reserved_;
  int open_ = 0;
  std::atomic<std::uint64_t> version_ = 1;
};

}  // namespace tranship::cuda::software
