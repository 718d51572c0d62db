#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
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

}  // namespace

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

SharedMemory SharedMemory::within_process(std::size_t size_bytes) {
  return {map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), size_bytes, -1};
}

SharedMemory SharedMemory::for_processes(std::size_t size_bytes) {
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
      const std::size_t first = offset_bytes / page_bytes() * page_bytes();
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
  const std::size_t first = (offset_bytes + page_bytes() - 1) / page_bytes() * page_bytes();
  const std::size_t end = (offset_bytes + size_bytes) / page_bytes() * page_bytes();
  if (first >= end) return;
  if (descriptor_ < 0)
    madvise(data_ + first, end - first, MADV_DONTNEED);
  else
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
              static_cast<off_t>(end - first));
}

}  // namespace tranship
