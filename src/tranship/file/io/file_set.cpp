#include "tranship/file/io/file_set.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

using posix::FileDescriptor;
using posix::io_error;

namespace {

// Limits of one call that reads several stretches: a longer gap costs more than another call, and may read more pages.
constexpr Index gap_bytes_max = 2048;
constexpr std::size_t stretches_per_call = 512;

// Beyond this, a sync per file would wait for the disk too often.
constexpr std::size_t synced_one_by_one_max = 16;

/// Returns true if syncfs fails when a page could not be written: since Linux 5.8.
bool syncfs_tells_errors() {
  static const bool tells = [] {
    struct utsname system;
    int major = 0, minor = 0;
    return ::uname(&system) == 0 && std::sscanf(system.release, "%d.%d", &major, &minor) == 2 &&
           (major > 5 || (major == 5 && minor >= 8));
  }();
  return tells;
}

/// Turns off read-ahead: reads are scattered from the first byte on, so the system would fetch bytes in vain.
void read_nothing_ahead(const FileDescriptor& file) {
  ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_RANDOM);  // a hint
}

std::int64_t ns_of(const timespec& time) {
  return std::int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

FileState state_of(const struct stat& status) {
  return {.size_bytes = status.st_size,
          .modified_ns = ns_of(status.st_mtim),
          .changed_ns = ns_of(status.st_ctim),
          .device = status.st_dev,
          .inode = status.st_ino};
}

/// A new name or other permissions do no harm while a run has the file open.
void check_same(const std::string& path, const FileState& before, FileState now) {
  now.changed_ns = before.changed_ns;
  if (!(now == before))
    throw_error(ErrorCode::bad_file, "'{}' changed while it was read: it had {}, and has {}{}", path,
                amount(before.size_bytes, "byte"), now.size_bytes,
                now.size_bytes == before.size_bytes ? ", written meanwhile" : "");
}

}  // namespace

void RecordedChecksum::require(std::uint32_t found, const std::string& path) const {
  if (found != crc32)
    throw_error(ErrorCode::bad_file, "'{}' is not what its {} says: its checksum is {:08x}, it should be {:08x}",
                member ? member->path : path, member ? "archive" : "manifest", found, crc32);
}

Index FileSet::default_open_max() noexcept {
  struct rlimit limit;
  const bool is_known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  return is_known ? static_cast<Index>(std::clamp<rlim_t>(limit.rlim_cur / 4, 1, 256)) : 256;
}

Result<Index> FileSet::add(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return io_error("open", path, errno);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::bad_file, "'{}' is {}, not a regular file", path,
                      S_ISDIR(status.st_mode) ? "a directory" : "a device, a pipe or a socket");
  entries_.push_back({path, state_of(status), false, nullptr});
  return count() - 1;
}

Result<Index> FileSet::adopt(const std::string& path, FileDescriptor file) {
  struct stat status;
  if (::fstat(file.number(), &status) != 0) return io_error("inspect", path, errno);
  read_nothing_ahead(file);
  entries_.push_back({path, state_of(status), true, std::make_shared<FileDescriptor>(std::move(file))});
  return count() - 1;
}

void FileSet::check_unchanged() const {
  for (const Entry& entry : entries_) {
    if (entry.is_private) continue;
    struct stat status;
    if (::stat(entry.path.c_str(), &status) != 0) throw io_error("inspect", entry.path, errno);
    check_same(entry.path, entry.state, state_of(status));
  }
}

std::shared_ptr<FileDescriptor> FileSet::descriptor(Index file) const {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[file];
  if (entry.open) return entry.open;
  const int mode = access_ == FileAccess::read_write ? O_RDWR : O_RDONLY;
  auto opened = std::make_shared<FileDescriptor>(::open(entry.path.c_str(), mode | O_CLOEXEC | O_NONBLOCK));
  if (opened->number() < 0) throw io_error("open", entry.path, errno);
  struct stat status;
  if (::fstat(opened->number(), &status) != 0) throw io_error("inspect", entry.path, errno);
  if (access_ == FileAccess::read_only) check_same(entry.path, entry.state, state_of(status));
  if (static_cast<Index>(open_files_.size()) >= open_max_) {
    entries_[open_files_.front()].open.reset();  // if a thread still uses it, that thread closes it
    open_files_.pop_front();
  }
  read_nothing_ahead(*opened);
  if (access_ == FileAccess::read_write && !file_system_) file_system_ = opened;
  entry.open = opened;
  open_files_.push_back(file);
  return opened;
}

void FileSet::read(Index file, Index offset_bytes, std::span<std::byte> bytes) const {
  if (bytes.empty()) return;
  posix::read_at(descriptor(file)->number(), path(file), offset_bytes, bytes);
  if (entries_[file].check) entries_[file].check->add(offset_bytes, bytes);
}

void FileSet::read(Index file, std::span<const Stretch> stretches) const {
  const auto open = descriptor(file);
  std::array<iovec, stretches_per_call> parts;
  for (std::size_t first = 0; first < stretches.size();) {
    // The gap between two stretches is read, too, into memory that is ignored.
    std::array<std::byte, gap_bytes_max> gap;
    const Index begin = stretches[first].offset_bytes;
    Index end = begin;
    std::size_t next = first, used = 0;
    while (next < stretches.size() && used + 2 <= parts.size()) {
      const Index distance = stretches[next].offset_bytes - end;
      if (next > first && distance > gap_bytes_max) break;
      if (distance > 0) parts[used++] = {gap.data(), static_cast<std::size_t>(distance)};
      parts[used++] = {stretches[next].bytes.data(), stretches[next].bytes.size()};
      end = stretches[next].offset_bytes + static_cast<Index>(stretches[next].bytes.size());
      ++next;
    }
    const ssize_t got = next - first == 1 ? -1 : ::preadv(open->number(), parts.data(), static_cast<int>(used), begin);
    for (; first < next; ++first) {
      const Stretch& one = stretches[first];
      const auto end_of_one = one.offset_bytes + static_cast<Index>(one.bytes.size());
      if (got < end_of_one - begin) posix::read_at(open->number(), path(file), one.offset_bytes, one.bytes);
      if (entries_[file].check) entries_[file].check->add(one.offset_bytes, one.bytes);
    }
  }
}

void FileSet::check_reads(std::span<const std::optional<RecordedChecksum>> checksums) {
  for (std::size_t file = 0; file < checksums.size(); ++file) {
    if (!checksums[file]) continue;
    Entry& entry = entries_[file];
    entry.checksum = checksums[file];
    entry.check = std::make_unique<ReadCheck>(entry.checksum->stretch(entry.state.size_bytes));
  }
}

void FileSet::finish_reads(FunctionRef<void()> watch) const {
  for (Index file = 0; file < count(); ++file) {
    const Entry& entry = entries_[file];
    if (!entry.check || !entry.check->any_read()) continue;
    const std::uint32_t found = entry.check->finish([&](Index offset_bytes, std::span<std::byte> bytes) {
      posix::read_at(descriptor(file)->number(), entry.path, offset_bytes, bytes);
      watch();
    });
    entry.checksum->require(found, entry.path);
  }
}

/// Maps a window. If the process has too many, unmaps the oldest of this set.
std::shared_ptr<const MappedWindow> FileSet::map_in_place_of_others(Index file, Index offset_bytes,
                                                                    Index size_bytes) const {
  const auto open = descriptor(file);
  for (;;) try {
      return std::make_shared<const MappedWindow>(
          MappedWindow::map(open->number(), path(file), offset_bytes, size_bytes));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::no_memory || windows_.empty()) throw;
      windows_.pop_front();
    }
}

std::shared_ptr<const MappedWindow> FileSet::map(Index file, Index offset_bytes) const {
  // Windows are twice as long as their distance, so any stretch of `window_bytes` lies in one of them.
  const Index number = offset_bytes / window_bytes, begin = number * window_bytes;
  const std::lock_guard lock(windows_mutex_);
  const auto found = std::find_if(windows_.begin(), windows_.end(),
                                  [&](const Window& w) { return w.file == file && w.number == number; });
  Window window{file, number, nullptr};
  if (found != windows_.end()) {
    window = std::move(*found);
    windows_.erase(found);
  } else {
    if (entries_[file].check) entries_[file].check->use();
    const Index size = std::min(2 * window_bytes, size_bytes(file) - begin);
    if (static_cast<Index>(windows_.size()) >= windows_max_) windows_.pop_front();
    window.mapped = map_in_place_of_others(file, begin, size);
  }
  windows_.push_back(window);
  return window.mapped;
}

void FileSet::write(Index file, Index offset_bytes, std::span<const std::byte> bytes) const {
  if (!bytes.empty()) posix::write_at(descriptor(file)->number(), path(file), offset_bytes, bytes);
}

void FileSet::start_syncing(Index file, Index offset_bytes, Index size_bytes) const noexcept {
  std::shared_ptr<FileDescriptor> open;
  {
    const std::lock_guard lock(mutex_);
    open = entries_[file].open;
  }
  // Only a hint: if it fails, the sync that waits for these bytes fails, too.
  if (open) ::sync_file_range(open->number(), offset_bytes, size_bytes, SYNC_FILE_RANGE_WRITE);
}

void FileSet::sync(std::span<const Index> files) const {
  if (files.size() > synced_one_by_one_max && sync_file_system()) return;
  for (const Index file : files) sync_one(file);
}

/// Returns false if the system would not report errors.
bool FileSet::sync_file_system() const {
  std::shared_ptr<FileDescriptor> open;
  {
    const std::lock_guard lock(mutex_);
    open = file_system_;
  }
  if (!open || !syncfs_tells_errors()) return false;
  int status;
  do status = posix::disk.syncfs(open->number());
  while (status != 0 && errno == EINTR);
  if (status != 0) throw io_error("sync the file system of", path(0), errno);
  return true;
}

void FileSet::sync_one(Index file) const {
  const auto open = descriptor(file);
  int status;
  do status = posix::disk.fdatasync(open->number());
  while (status != 0 && errno == EINTR);
  if (status != 0) throw io_error("sync", path(file), errno);
}

}  // namespace tranship
