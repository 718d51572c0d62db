// Private: SharedMemory: one range of addresses that all ranks of a machine map. The range is reserved at once; memory
// is obtained piece by piece. It has no name in a file system, so nothing remains however its processes end.
#pragma once

#include <cstddef>

#include <tranship/base/result.hpp>

namespace tranship {

struct MappedPages;

class SharedMemory {
 public:
  /// Every SharedMemory begins at a multiple of this, the size of a huge page.
  static constexpr std::size_t alignment_bytes = std::size_t(2) << 20;

  /// For ranks of this process. This and the next two throw `no_memory`.
  static SharedMemory within_process(std::size_t size_bytes);
  /// For processes that are started later: forked processes have it mapped at the same address; other programs inherit
  /// descriptor() if their parent clears FD_CLOEXEC.
  static SharedMemory for_processes(std::size_t size_bytes);
  /// Maps memory that a parent process has made. Throws `invalid_use` if the descriptor is not shared memory.
  static SharedMemory inherited(int descriptor);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// -1 within a process.
  int descriptor() const noexcept { return descriptor_; }

  enum class Grant {
    at_once,
    when_touched,  ///< if the system has none then, it ends the process
  };
  /// Obtains the memory of a part, zeroed if it had none. Fails with `no_memory`. Touching a part that was never
  /// obtained may end the process.
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes, Grant grant = Grant::at_once) const;
  /// Gives the whole pages of a part back. They read as zeros when they are obtained again.
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) const noexcept;

  /// Maps a part that has been obtained and the `size_bytes` bytes at `memory` to the same pages, which keep the
  /// content of `memory`. Neither may be written during the call. Within a process, memory that is shared with a file
  /// or with other processes stays shared. Fails with `invalid_use` for partial pages and for memory that cannot be
  /// loaded and stored, is joined already, or lies in this SharedMemory; with `unsupported` for executable pages, and
  /// if joining would separate the memory from a file or from other processes; with `no_memory`.
  Result<void> join(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const;
  /// Gives `memory` pages of its own again, with the common content; the content of the part is then undefined. Returns
  /// false if the system has no pages: then both stay joined.
  bool part(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept;

  /// How a part and memory of the program became the same pages.
  enum class Joining {
    taken,         ///< the memory has the pages of the part
    taken_shared,  ///< taken, but forked children share the memory, and will when it is parted
    given,         ///< the part has the pages of the memory
  };

 private:
  SharedMemory(std::byte* data, std::size_t size_bytes, int descriptor)
      : data_(data), size_bytes_(size_bytes), descriptor_(descriptor) {}

  Result<void> join(std::size_t offset_bytes, std::size_t size_bytes, void* memory, const MappedPages& pages) const;
  Result<void> take(std::size_t offset_bytes, std::size_t size_bytes, void* memory, Joining how) const;
  Result<void> give(std::size_t offset_bytes, std::size_t size_bytes, void* memory, const MappedPages& pages) const;

  std::byte* data_;
  std::size_t size_bytes_;
  int descriptor_;
};

}  // namespace tranship
