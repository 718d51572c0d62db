// Private: SharedMemory, one range of addresses that all ranks of a machine map. The range is reserved at once; memory
// is obtained piece by piece. It has no name, so nothing is left of it when its processes are gone, however they go.
#pragma once

#include <cstddef>

#include <tranship/base/result.hpp>

namespace tranship {

struct MappedPages;

class SharedMemory {
 public:
  /// Every SharedMemory begins at a multiple of this: a huge page.
  static constexpr std::size_t alignment_bytes = std::size_t(2) << 20;

  /// For ranks of this process. Throws `no_memory`; so do the next two.
  static SharedMemory within_process(std::size_t size_bytes);
  /// For processes to come: forked ones have it mapped at the same address. Other programs inherit descriptor() when
  /// their parent clears FD_CLOEXEC.
  static SharedMemory for_processes(std::size_t size_bytes);
  /// What a parent process has made. Throws `invalid_use` when the descriptor is none of shared memory.
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
    when_touched,  ///< where the system has none then, it ends the process
  };
  /// Obtains the memory of a part: zeros where it had none. Fails with `no_memory`; touching a part that was never
  /// obtained may end the process.
  Result<void> obtain(std::size_t offset_bytes, std::size_t size_bytes, Grant grant = Grant::at_once) const;
  /// Gives the whole pages of a part back. They hold zeros when they are obtained again.
  void give_back(std::size_t offset_bytes, std::size_t size_bytes) const noexcept;

  /// Makes a part that has been obtained and `size_bytes` bytes at `memory` the same pages, which hold what `memory`
  /// held. Neither may be written meanwhile. Memory that is shared with a file, or with other processes, stays so
  /// within a process. Fails with `invalid_use` where these are no whole pages, cannot be loaded and stored, or are
  /// joined or lie here already; with `unsupported` where they can be executed, or would part from a file or from other
  /// processes; with `no_memory`.
  Result<void> join(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const;
  /// Gives `memory` pages of its own again, with what they held together; the part holds anything then. False when the
  /// system has none: then they stay together.
  bool part(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept;

  /// How a part and memory of the program have become the same pages.
  enum class Joining {
    taken,         ///< the memory has the pages of the part
    taken_shared,  ///< the same; children of a fork shared it, and do when it is parted
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
