#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/shared/shared_memory.hpp>

namespace tranship {
namespace {

std::byte* map(std::size_t size_bytes, int flags, int descriptor) {
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED)
    throw_error(ErrorCode::no_memory, "cannot reserve {} bytes of addresses for shared memory: {}", size_bytes,
                std::strerror(errno));
  return static_cast<std::byte*>(data);
}

/// Nothing lies between the copy and the mapping, for what is mapped over may be all static variables of the program.
bool replace(void* memory, std::byte* part, std::size_t size_bytes, int descriptor, off_t offset) {
  std::memcpy(part, memory, size_bytes);
  return mmap(memory, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, offset) != MAP_FAILED;
}

}  // namespace

SharedMemory SharedMemory::within_process(std::size_t size_bytes) {
  return {map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), size_bytes, -1};
}

SharedMemory SharedMemory::for_processes(std::size_t size_bytes) {
  rlimit files{};  // above it the system would answer with a signal
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && size_bytes > files.rlim_cur)
    throw_error(ErrorCode::no_memory, "cannot make shared memory of {} bytes: files are limited to {}", size_bytes,
                files.rlim_cur);
  const int descriptor = memfd_create("tranship", MFD_CLOEXEC);
  if (descriptor < 0) throw_error(ErrorCode::no_memory, "cannot make shared memory: {}", std::strerror(errno));
  try {
    if (ftruncate(descriptor, static_cast<off_t>(size_bytes)) != 0)
      throw_error(ErrorCode::no_memory, "cannot make shared memory of {} bytes: {}", size_bytes, std::strerror(errno));
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
  std::byte* data = map(size_bytes, MAP_SHARED, descriptor);
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
  const auto refused = [&] {
    return make_error(ErrorCode::no_memory, "cannot register {} bytes at {}: {}", size_bytes, memory,
                      std::strerror(errno));
  };
  std::byte* const part = data_ + offset_bytes;
  if (descriptor_ >= 0) {
    if (!replace(memory, part, size_bytes, descriptor_, static_cast<off_t>(offset_bytes))) return refused();
    return {};
  }
  // Memory that is private to a process has no second address: the part becomes shared memory first.
  const int descriptor = memfd_create("tranship", MFD_CLOEXEC);
  if (descriptor < 0) return refused();
  const bool joined = ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0 &&
                      mmap(part, size_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == part &&
                      replace(memory, part, size_bytes, descriptor, 0);
  const Result<void> result = joined ? Result<void>() : refused();
  close(descriptor);
  return result;
}

void SharedMemory::part(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept {
  constexpr int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  std::byte* const part = data_ + offset_bytes;
  void* const pages = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, own, -1, 0);
  // Whoever is given the part next would write to the program's memory.
  if (pages == MAP_FAILED) std::abort();
  std::memcpy(pages, part, size_bytes);
  if (mremap(pages, size_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, memory) != memory) std::abort();
  if (descriptor_ < 0) mmap(part, size_bytes, PROT_READ | PROT_WRITE, own | MAP_FIXED, -1, 0);
}

}  // namespace tranship
