// Private: HostMemory: the memory of simulated machines. While a rank runs, memory of other machines can be neither
// loaded nor stored: a program, or the library, that does so crashes at that instruction. Transfers go through a second
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

/// Used by one thread.
class HostMemory : public std::enable_shared_from_this<HostMemory> {
 public:
  /// Host h has the ranks [h * ranks_per_host, (h + 1) * ranks_per_host) and their heaps. At first all memory is open.
  /// `shared` must be a world of processes, whose memory can be mapped twice. Throws `no_memory`.
  HostMemory(const SharedWorld& shared, int ranks_per_host);
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  /// From now on, a rank of `host` runs. Memory of other hosts is closed on each of the first thousand calls, and later
  /// on some of them, since closing takes a few system calls and polling ranks take turns millions of times.
  void enter(int host) noexcept;
  static constexpr int everywhere = -1;

  /// Returns the heap of a rank in the mapping that is always open.
  std::byte* heap_of(Rank rank) const noexcept { return heaps_ + std::size_t(rank) * stride_bytes_; }
  /// Returns the address in that mapping of memory that a rank has at `own`.
  template <class T>
  T* open(T* own) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(own) - reinterpret_cast<std::uintptr_t>(first_);
    if (offset < stride_bytes_ * std::size_t(ranks_)) return reinterpret_cast<T*>(heaps_ + offset);
    return static_cast<T*>(open_allocated(own));
  }

  /// Allocates memory of a host with any content, freed with its last copy; nullptr if there is none.
  std::shared_ptr<void> allocate(int host, std::size_t size_bytes);

 private:
  /// A second mapping of shared memory; data() is nullptr, with errno set, if there is no room for it.
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
  /// Memory in which blocks of one host are allocated, so that one mapping is closed for many blocks.
  struct Arena {
    int host;
    SharedMemory memory;
    SecondMapping open;
    RangeAllocator blocks;
  };

  /// Returns nullptr if there is no memory.
  Arena* new_arena(int host, std::size_t size_bytes);
  void release(std::byte* block) noexcept;
  /// Returns the address of a block in the mapping that is always open; other addresses unchanged.
  void* open_allocated(const void* own) const noexcept;
  void close_others(int host) noexcept;
  void protect(int host, int protection) noexcept;

  std::byte* first_;  // the heap of rank 0; the distance between heaps
  std::size_t stride_bytes_;
  int ranks_;
  int ranks_per_host_;
  int host_ = everywhere;  // the host whose memory is open
  std::uint64_t turns_ = 0;
  SecondMapping mapped_;  // all of the shared memory
  std::byte* heaps_ = nullptr;
  std::map<const void*, Arena> arenas_;  // by their first address
};

}  // namespace tranship
