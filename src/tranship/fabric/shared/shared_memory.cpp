#include "tranship/fabric/shared/shared_memory.hpp"

#include <algorithm>
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
#include <sys/syscall.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/pages.hpp>
#include <tranship/base/printable.hpp>
#include <tranship/fabric/machine.hpp>
#include <tranship/fabric/shared/mapped_pages.hpp>

namespace tranship {
namespace {

std::byte* map(std::size_t size_bytes, int flags, int descriptor) {
  constexpr std::size_t alignment = SharedMemory::alignment_bytes;
  const auto refuse = [&] {
    throw_error(ErrorCode::no_memory, "cannot reserve {} of addresses for shared memory: {}",
                amount(size_bytes, "byte"), std::strerror(errno));
  };
  // The system aligns to pages only: more addresses are reserved, and the excess on both sides is returned.
  const std::size_t pages = round_up(size_bytes, page_bytes()), reserved_bytes = pages + alignment - page_bytes();
  void* const reserved = mmap(nullptr, reserved_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) refuse();
  auto* const begin = static_cast<std::byte*>(reserved);
  std::byte* const data = begin + (-reinterpret_cast<std::uintptr_t>(reserved) & (alignment - 1));
  const bool is_mapped =
      mmap(data, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED | MAP_NORESERVE, descriptor, 0) != MAP_FAILED;
  if (!is_mapped) {
    const int reason = errno;
    munmap(reserved, reserved_bytes);
    errno = reason;
    refuse();
  }
  if (data > begin) munmap(begin, std::size_t(data - begin));
  if (std::byte* const end = begin + reserved_bytes; end > data + pages)
    munmap(data + pages, std::size_t(end - (data + pages)));
  return data;
}

/// Makes a file of `size_bytes` bytes that has no name.
Result<int> memory_file(std::size_t size_bytes) {
  rlimit files{};  // beyond this limit the system would send a signal
  if (getrlimit(RLIMIT_FSIZE, &files) == 0 && size_bytes > files.rlim_cur)
    return make_error(ErrorCode::no_memory, "cannot make shared memory of {}: files are limited to {}",
                      amount(size_bytes, "byte"), files.rlim_cur);
  const int descriptor = memfd_create("tranship", MFD_CLOEXEC);
  if (descriptor >= 0 && ftruncate(descriptor, static_cast<off_t>(size_bytes)) == 0) return descriptor;
  const int reason = errno;
  if (descriptor >= 0) close(descriptor);
  return make_error(ErrorCode::no_memory, "cannot make shared memory of {}: {}", amount(size_bytes, "byte"),
                    std::strerror(reason));
}

void* map_over(void* memory, std::size_t size_bytes, int flags, int descriptor, std::size_t offset_bytes) {
  void* const mapped =
      mmap(memory, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, descriptor, static_cast<off_t>(offset_bytes));
  return mapped == MAP_FAILED ? nullptr : mapped;
}
/// Writes `size_bytes` bytes at `memory` to a file. The system call reads them: an unreadable page is then an error
/// instead of a signal, and sanitizers, which guard bytes between variables, do not see the access.
bool write_pages(int descriptor, std::size_t offset_bytes, const void* memory, std::size_t size_bytes) {
  const auto* const from = static_cast<const std::byte*>(memory);
  for (std::size_t done = 0; done < size_bytes;) {
    const long written = syscall(SYS_pwrite64, descriptor, from + done, size_bytes - done, offset_bytes + done);
    if (written > 0)
      done += static_cast<std::size_t>(written);
    else if (errno != EINTR)
      return false;
  }
  return true;
}
/// Returns true if all these bytes can be read; pages behind the end of their file cannot.
bool can_be_read(const void* memory, std::size_t size_bytes) {
  constexpr std::size_t chunk_bytes = std::size_t(1) << 20;
  const Result<int> file = memory_file(std::min(chunk_bytes, size_bytes));
  if (!file) return false;
  bool is_read = true;
  for (std::size_t done = 0; is_read && done < size_bytes; done += chunk_bytes)
    is_read = write_pages(file.value(), 0, static_cast<const std::byte*>(memory) + done,
                          std::min(chunk_bytes, size_bytes - done));
  close(file.value());
  return is_read;
}

Error unreadable(const void* memory, std::size_t size_bytes) {
  return make_error(
      ErrorCode::invalid_use,
      "cannot register {} at {}: part of this range cannot be read (it may lie beyond the end of a mapped file)",
      amount(size_bytes, "byte"), memory);
}

/// Moves a mapping to a place by the system call itself: UCX, below some MPIs, replaces mremap by a version that
/// ignores the place.
void* remap(void* from, std::size_t old_bytes, std::size_t size_bytes, void* to) {
  const long mapped = syscall(SYS_mremap, from, old_bytes, size_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  return mapped == reinterpret_cast<std::intptr_t>(to) ? to : nullptr;
}

constexpr int own_pages = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

/// The ranges that this process has joined. No byte may be in two of them, since each would take the other's pages
/// away.
class JoinedRanges {
 public:
  using Joining = SharedMemory::Joining;

  /// Fails where a range is joined already.
  Result<void> check(const void* memory, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    return check_locked(memory, size_bytes);
  }
  Result<void> add(const void* memory, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    if (Result<void> apart = check_locked(memory, size_bytes); !apart) return apart;
    ranges_.emplace(reinterpret_cast<std::uintptr_t>(memory), Range{size_bytes});
    return {};
  }
  void set(const void* memory, Joining how) noexcept {
    at(memory, [&](auto range) { range->second.how = how; });
  }
  Joining how(const void* memory) noexcept {
    Joining out = Joining::taken;
    at(memory, [&](auto range) { out = range->second.how; });
    return out;
  }
  void remove(const void* memory) noexcept {
    at(memory, [&](auto range) { ranges_.erase(range); });
  }

 private:
  struct Range {
    std::size_t size_bytes = 0;
    Joining how = Joining::taken;
  };
  Result<void> check_locked(const void* memory, std::size_t size_bytes) const {
    const auto first = reinterpret_cast<std::uintptr_t>(memory);
    for (const auto& [other, range] : ranges_)
      if (first < other + range.size_bytes && other < first + size_bytes)
        return make_error(ErrorCode::invalid_use,
                          "cannot register {} at {}: the range overlaps the {} at {:#x} that are registered already",
                          amount(size_bytes, "byte"), memory, range.size_bytes, other);
    return {};
  }
  template <class F>
  void at(const void* memory, F&& f) noexcept {
    const std::lock_guard lock(mutex_);
    if (const auto range = ranges_.find(reinterpret_cast<std::uintptr_t>(memory)); range != ranges_.end()) f(range);
  }

  std::mutex mutex_;
  std::map<std::uintptr_t, Range> ranges_;
};
JoinedRanges& joined_ranges() {
  static auto& ranges = *new JoinedRanges;  // memory parts even while static variables are destroyed
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
  // Programs that this process starts are not ranks of this world.
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

Result<void> SharedMemory::obtain(std::size_t offset_bytes, std::size_t size_bytes, Grant grant) const {
  if (size_bytes == 0) return {};
  if (descriptor_ < 0) {
    // The system grants memory of a process page by page on first touch.
    if (size_bytes >= (std::size_t(4) << 20)) {
      const std::size_t first = round_down(offset_bytes, page_bytes());
      madvise(data_ + first, offset_bytes + size_bytes - first, MADV_HUGEPAGE);
    }
    return {};
  }
  // The system rather kills processes than refuses memory.
  constexpr std::size_t worth_asking = std::size_t(1) << 20;
  if (const Index available = size_bytes < worth_asking ? INT64_MAX : available_memory_bytes();
      size_bytes > static_cast<std::size_t>(available))
    return make_error(ErrorCode::no_memory, "needs {} of shared memory, {} are available", amount(size_bytes, "byte"),
                      available);
  if (grant == Grant::when_touched) return {};
  int refused;
  do {
    refused = posix_fallocate(descriptor_, static_cast<off_t>(offset_bytes), static_cast<off_t>(size_bytes));
  } while (refused == EINTR);
  if (refused != 0)
    return make_error(ErrorCode::no_memory, "cannot get {} of shared memory: {}", amount(size_bytes, "byte"),
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
    return make_error(ErrorCode::invalid_use,
                      "cannot register {} at {}: address and size must be multiples of the page size {}",
                      amount(size_bytes, "byte"), memory, page_bytes());
  const Result<MappedPages> pages = mapped_pages(memory, size_bytes);
  const auto first = reinterpret_cast<std::uintptr_t>(memory), ours = reinterpret_cast<std::uintptr_t>(data_);
  if (first < ours + size_bytes_ && ours < first + size_bytes)
    return make_error(ErrorCode::invalid_use, "cannot register {} at {}: they lie in the {} shared at {}",
                      amount(size_bytes, "byte"), memory, amount(size_bytes_, "byte"), static_cast<const void*>(data_));
  if (!pages) {
    // Another thread that is refused the same range must not be told that it is registered.
    Result<void> apart = joined_ranges().check(memory, size_bytes);
    return apart ? pages.error() : apart;
  }
  if (Result<void> added = joined_ranges().add(memory, size_bytes); !added) return added;
  Result<void> joined = join(offset_bytes, size_bytes, memory, pages.value());
  if (!joined) joined_ranges().remove(memory);
  return joined;
}

Result<void> SharedMemory::join(std::size_t offset_bytes, std::size_t size_bytes, void* memory,
                                const MappedPages& pages) const {
  if (!pages.any_shared()) return take(offset_bytes, size_bytes, memory, Joining::taken);
  // Shared pages stay as they are if this part can have them, too, as within one process.
  if (descriptor_ < 0 && pages.all_shared()) return give(offset_bytes, size_bytes, memory, pages);
  for (const MappedPages::Part& part : pages.parts) {
    const bool is_cut_off = part.is_shared && (!part.is_anonymous || is_mapped_elsewhere(part));
    if (is_cut_off || part.is_shared != pages.all_shared())
      return make_error(
          ErrorCode::unsupported,
          "cannot register {} at {}: {:#x} to {:#x} are shared with {}, which would not see what peers write there; "
          "memory of this process alone (MAP_PRIVATE) can be registered",
          amount(size_bytes, "byte"), memory, part.first, part.end,
          part.is_anonymous ? "other processes" : fmt::format("the file {}", printable(part.path, name_chars_max)));
  }
  return take(offset_bytes, size_bytes, memory, Joining::taken_shared);
}

/// No code may run between writing the pages and mapping over them, since they may hold all static variables.
Result<void> SharedMemory::take(std::size_t offset_bytes, std::size_t size_bytes, void* memory, Joining how) const {
  std::byte* const part = data_ + offset_bytes;
  joined_ranges().set(memory, how);
  int descriptor = descriptor_;
  std::size_t file_offset = offset_bytes;
  if (descriptor_ < 0) {  // memory private to a process has no second address: the part becomes shared first
    Result<int> file = memory_file(size_bytes);
    if (!file) return file.error();
    descriptor = file.value();
    file_offset = 0;
  }
  bool is_joined = descriptor_ >= 0 || map_over(part, size_bytes, MAP_SHARED, descriptor, 0) != nullptr;
  if (is_joined)
    is_joined = write_pages(descriptor, file_offset, memory, size_bytes) &&
                map_over(memory, size_bytes, MAP_SHARED, descriptor, file_offset) != nullptr;
  const int reason = errno;
  if (descriptor_ < 0) {
    if (!is_joined) map_over(part, size_bytes, own_pages, -1, 0);
    close(descriptor);
  }
  if (is_joined) return {};
  if (reason == EFAULT) return unreadable(memory, size_bytes);
  return make_error(ErrorCode::no_memory, "cannot register {} at {}: {}", amount(size_bytes, "byte"), memory,
                    std::strerror(reason));
}

Result<void> SharedMemory::give(std::size_t offset_bytes, std::size_t size_bytes, void* memory,
                                const MappedPages& pages) const {
  if (!can_be_read(memory, size_bytes)) return unreadable(memory, size_bytes);
  std::byte* const part = data_ + offset_bytes;
  joined_ranges().set(memory, Joining::given);
  for (const MappedPages::Part& one : pages.parts) {
    const std::size_t behind = one.first - reinterpret_cast<std::uintptr_t>(memory);
    std::byte* const from = static_cast<std::byte*>(memory) + behind;
    // With a length of 0, it makes another mapping of the same pages and leaves the first one.
    if (remap(from, 0, one.end - one.first, part + behind) != nullptr) continue;
    const int reason = errno;
    map_over(part, size_bytes, own_pages, -1, 0);
    return make_error(ErrorCode::unsupported, "cannot register {} at {}: {:#x} to {:#x}{} cannot be mapped twice: {}",
                      amount(size_bytes, "byte"), memory, one.first, one.end,
                      one.path.empty() ? "" : fmt::format(" ({})", printable(one.path, name_chars_max)),
                      std::strerror(reason));
  }
  return {};
}

bool SharedMemory::part(std::size_t offset_bytes, std::size_t size_bytes, void* memory) const noexcept {
  std::byte* const part = data_ + offset_bytes;
  if (const Joining how = joined_ranges().how(memory); how != Joining::given) {
    const int sharing = how == Joining::taken_shared ? MAP_SHARED : MAP_PRIVATE;
    void* const pages =
        mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return false;
    std::memcpy(pages, part, size_bytes);
    if (remap(pages, size_bytes, size_bytes, memory) == nullptr) {
      munmap(pages, size_bytes);
      return false;
    }
  }
  if (descriptor_ < 0) map_over(part, size_bytes, own_pages, -1, 0);
  joined_ranges().remove(memory);
  return true;
}

}  // namespace tranship
