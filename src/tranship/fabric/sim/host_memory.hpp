// Private: the memory of simulated machines. While a rank runs, what lies on other machines than its own can be neither
// loaded nor stored: a program, or a library, that does so ends where it does it. Transfers go through a second
// mapping, which is always open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include <tranship/fabric/heap/range_allocator.hpp>
#include <tranship/fabric/shared/shared_memory.hpp>
#include <tranship/fabric/shared/shared_world.hpp>

namespace tranship {

/// For one thread.
class HostMemory : public std::enable_shared_from_this<HostMemory> {
 public:
  /// Host h has the ranks [h * ranks_per_host, (h + 1) * ranks_per_host) and their heaps. Everything can be reached.
  /// The world is one of processes, whose memory can be mapped twice. Throws `no_memory`.
  HostMemory(const SharedWorld& shared, int ranks_per_host);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// A rank of that host runs from now on. What others have is closed to the first thousand of them, and later to
  /// some: closing takes a few system calls, and ranks that poll take turns millions of times.
  void enter(int host) noexcept;
  static constexpr int everywhere = -1;

  /// The heap of a rank where it is always open.
  std::byte* heap_of(Rank rank) const noexcept { return heaps_ + std::size_t(rank) * stride_bytes_; }
  /// What a rank has at an address of its own, where it is always open.
  template <class T>
  T* open(T* own) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(own) - reinterpret_cast<std::uintptr_t>(first_);
    if (offset < stride_bytes_ * std::size_t(ranks_)) return reinterpret_cast<T*>(heaps_ + offset);
    return static_cast<T*>(open_allocated(own));
  }

  /// Memory of a host, of any content, freed when the last copy goes; nullptr when there is none.
  std::shared_ptr<void> allocate(int host, std::size_t size_bytes);

 private:
  /// A shared memory at other addresses; data() is nullptr, with errno, when there is no room for it.
  class SecondMapping {
   public:
    SecondMapping(int descriptor, std::size_t size_bytes) noexcept;
    SecondMapping(SecondMapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_bytes_(other.size_bytes_) {}
    SecondMapping& operator=(SecondMapping&&) = delete;
    ~SecondMapping();
    std::byte* data() const noexcept { return data_; }

   private:
    std::byte* data_;
    std::size_t size_bytes_;
  };
  /// Memory that blocks of one host are allocated in: one mapping to close, however many there are.
  struct Arena {
    int host;
    SharedMemory memory;
    SecondMapping open;
    RangeAllocator blocks;
  };

  /// nullptr when there is no memory.
  Arena* new_arena(int host, std::size_t size_bytes);
  void release(std::byte* block) noexcept;
  /// Where an address of a block is always open; of what is no block, the address.
  void* open_allocated(const void* own) const noexcept;
  void close_others(int host) noexcept;
  void protect(int host, int protection) noexcept;

  std::byte* first_;  // the heap of rank 0, and from one to the next
  std::size_t stride_bytes_;
  int ranks_;
  int ranks_per_host_;
  int host_ = everywhere;  // that is open
  std::uint64_t turns_ = 0;
  SecondMapping mapped_;  // of all of the shared memory
  std::byte* heaps_ = nullptr;
  std::map<const void*, Arena> arenas_;  // by where they begin
};

}  // namespace tranship
