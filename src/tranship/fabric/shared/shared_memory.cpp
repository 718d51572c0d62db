#include "tranship/fabric/shared/shared_memory.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/machine.hpp>

namespace tranship {
namespace {

std::byte* map(std::size_t size_bytes, int flags, int descriptor) {
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED)
    throw_error(ErrorCode::no_memory, "cannot reserve {} bytes of addresses for shared memory: {}", size_bytes,
                std::strerror(errno));
  return static_cast<std::byte*>(data);
}

/// A file without a name, of so many bytes.
Result<int> memory_file(std::size_t size_bytes) {
  rlimit files{};  // above it the system would answer with a signal
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && size_bytes > files.rlim_cur)
    return make_error(ErrorCode::no_memory, "cannot make shared memory of {} bytes: files are limited to {}",
                      size_bytes, files.rlim_cur);
  const int descriptor = memfd_create("tranship", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0) return descriptor;
  const int reason = errno;
  if (descriptor >= 0) close(descriptor);
  return make_error(ErrorCode::no_memory, "cannot make shared memory of {} bytes: {}", size_bytes,
                    std::strerror(reason));
}

void* map_over(void* memory, std::size_t size_bytes, int flags, int descriptor, std::size_t offset_bytes) {
  void* const mapped =
      mmap(memory, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, descriptor, static_cast<off_t>(offset_bytes));
  return mapped == MAP_FAILED ? nullptr : mapped;
}
/// Copies all bytes, those between variables too, which the address sanitizer guards: by no function that it knows.
__attribute__((no_sanitize_address)) void copy_pages(void* to, const void* from, std::size_t size_bytes) {
  auto* const target = static_cast<volatile std::uint64_t*>(to);
  const auto* const source = static_cast<const volatile std::uint64_t*>(from);
  for (std::size_t i = 0; i < size_bytes / sizeof *target; ++i) target[i] = source[i];
}

constexpr int own_pages = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// What is joined in this process: no byte twice, for each would take the other's pages away.
class JoinedRanges {
 public:
  Result<void> add(const void* memory, std::size_t size_bytes) {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    const std::lock_guard lock(mutex_);
    for (const auto& [other, bytes] : ranges_)
      if (first < other + bytes && other < first + size_bytes)
        return make_error(ErrorCode::invalid_use,
                          "{} bytes at {} are registered, of which some are already: {} at {:#x}", size_bytes, memory,
                          bytes, other);
    ranges_.emplace(first, size_bytes);
    return {};
  }
  void remove(const void* memory) noexcept {
    const std::lock_guard lock(mutex_);
    ranges_.erase(reinterpret_cast<std::uintptr_t>(memory));
  }

 private:
  std::mutex mutex_;
  std::map<std::uintptr_t, std::size_t> ranges_;
};
JoinedRanges& joined_ranges() {
  static auto& ranges = *new JoinedRanges;  // memory parts while static variables of the program are destroyed
  return ranges;
}

}  // namespace

SharedMemory SharedMemory::within_process(std::size_t size_bytes) {
  return {map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), size_bytes, -1};
}

SharedMemory SharedMemory::for_processes(std::size_t size_bytes) {
  const int descriptor = memory_file(size_bytes).value();
  try {
    return {map(size_bytes, MAP_SHARED, descriptor), size_bytes, descriptor};
  } catch (...) {
    close(descriptor);
    throw;
  }
}

SharedMemory SharedMemory::inherited(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size == 0)
    throw_error(ErrorCode::invalid_use, "descriptor {} is not the shared memory of a world", descriptor);
  const auto size_bytes = static_cast<std::size_t>(status.st_size);
  std::byte* data = nullptr;
  try {
    data = map(size_bytes, MAP_SHARED, descriptor);
  } catch (...) {
    close(descriptor);
    throw;
  }
  // Programs that this one starts are no ranks of this world.
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return {data, size_bytes, descriptor};
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(other.size_bytes_),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

SharedMemory::~SharedMemory() {
  if (data_) munmap(data_, size_bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

Result<void> SharedMemory::obtain(std::size_t offset_bytes, std::size_t size_bytes) const {
  if (size_bytes == 0) return {};
  if (descriptor_ < 0) {
    // The system grants memory of a process page by page, when it is touched.
    if (size_bytes >= (std::size_t(4) << 20)) {
      const std::size_t first = round_down(offset_bytes, page_bytes());
      madvise(data_ + first, offset_bytes + size_bytes - first, MADV_HUGEPAGE);
    }
    return {};
  }
  // The system would rather end processes than refuse.
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  if (const Index available = size_bytes < worth_asking ? INT64_MAX : available_memory_bytes();
      size_bytes > static_cast<std::size_t>(available))
    return make_error(ErrorCode::no_memory, "{} bytes of shared memory are needed, {} are available", size_bytes,
                      available);
  int refused;
  do {
    refused = posix_fallocate(descriptor_, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes));
  } while (refused == EINTR);
  if (refused != 0)
    return make_error(ErrorCode::no_memory, "cannot get {} bytes of shared memory: {}", size_bytes,
                      std::strerror(refused));
  return {};
}

void SharedMemory::give_back(std::size_t offset_bytes, std::size_t size_bytes) const noexcept {
  const std::size_t first = round_up(offset_bytes, page_bytes());
  const std::size_t end = round_down(offset_bytes + size_bytes, page_bytes());
  if (first >= end) return;
  if (descriptor_ < 0)
    madvise(data_ + first, end - first, MADV_DONTNEED);
  else
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(end - first));
}

Result<void> SharedMemory::join(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const {
  if ((reinterpret_cast<std::uintptr_t>(memory) | offset_bytes | size_bytes) % page_bytes() != 0)
    return make_error(ErrorCode::invalid_use, "{} bytes at {} are registered: these are no whole pages of {}",
                      size_bytes, memory, page_bytes());
  const auto* const first = static_cast<const std::byte*>(memory);
  if (first < data_ + size_bytes_ && data_ < first + size_bytes)
    return make_error(ErrorCode::invalid_use, "{} bytes at {} are registered: they lie in the {} bytes shared at {}",
                      size_bytes, memory, size_bytes_, static_cast<const void*>(data_));
  if (Result<void> added = joined_ranges().add(memory, size_bytes); !added) return added;

  std::byte* const part = data_ + offset_bytes;
  int descriptor = descriptor_;
  std::size_t file_offset = offset_bytes;
  if (descriptor_ < 0) {  // memory that is private to a process has no second address: the part becomes shared first
    Result<int> file = memory_file(size_bytes);
    if (!file) {
      joined_ranges().remove(memory);
      return file.error();
    }
    descriptor = file.value();
    file_offset = 0;
  }
  bool joined = descriptor_ >= 0 || map_over(part, size_bytes, MAP_SHARED, descriptor, 0) != nullptr;
  if (joined) {
    // Nothing lies between the two, for what is mapped over may be all static variables of the program.
    copy_pages(part, memory, size_bytes);
    joined = map_over(memory, size_bytes, MAP_SHARED, descriptor, file_offset) != nullptr;
  }
  const int reason = errno;
  if (descriptor_ < 0) {
    if (!joined) map_over(part, size_bytes, own_pages, -1, 0);
    close(descriptor);
  }
  if (joined) return {};
  joined_ranges().remove(memory);
  return make_error(ErrorCode::no_memory, "cannot register {} bytes at {}: {}", size_bytes, memory,
                    std::strerror(reason));
}

bool SharedMemory::part(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept {
  std::byte* const part = data_ + offset_bytes;
  void* const pages = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, own_pages, -1, 0);
  if (pages == MAP_FAILED) return false;
  std::memcpy(pages, part, size_bytes);
  if (mremap(pages, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != memory) {
    munmap(pages, size_bytes);
    return false;
  }
  if (descriptor_ < 0) map_over(part, size_bytes, own_pages, -1, 0);
  joined_ranges().remove(memory);
  return true;
}

}  // namespace tranship
