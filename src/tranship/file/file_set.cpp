#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/file_set.hpp>

namespace tranship {

using posix::FileDescriptor;
using posix::io_error;

namespace {

FileState state_of(const struct stat& status) {
  return {.size_bytes = status.st_size,
          .modified_ns = std::int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec,
          .device = status.st_dev,
          .inode = status.st_ino};
}

void check_same(const std::string& path, const FileState& before, const FileState& now) {
  if (!(now == before))
    throw_error(ErrorCode::bad_file, "'{}' changed while it was read: it had {} bytes, and has {}{}", path,
                before.size_bytes, now.size_bytes, now.size_bytes == before.size_bytes ? ", written meanwhile" : "");
}

}  // namespace

Result<Index> FileSet::add(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return io_error("open", path, errno);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::bad_file, "'{}' is {}, not a regular file", path,
                      S_ISDIR(status.st_mode) ? "a directory" : "a device, a pipe or a socket");
  entries_.push_back({path, state_of(status), false, nullptr, {}});
  return count() - 1;
}

Result<Index> FileSet::adopt(const std::string& path, FileDescriptor file) {
  struct stat status;
  if (::fstat(file.number(), &status) != 0) return io_error("inspect", path, errno);
  entries_.push_back({path, state_of(status), true, std::make_shared<FileDescriptor>(std::move(file)), {}});
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
    entries_[open_files_.front()].open.reset();  // whoever uses it now closes it
    open_files_.pop_front();
  }
  entry.open = opened;
  open_files_.push_back(file);
  return opened;
}

void FileSet::read(Index file, Index offset_bytes, std::span<std::byte> bytes) const {
  if (!bytes.empty()) posix::read_at(descriptor(file)->number(), path(file), offset_bytes, bytes);
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
  // Only a hint: what fails here fails again when it is waited for.
  if (open) ::sync_file_range(open->number(), offset_bytes, size_bytes, SYNC_FILE_RANGE_WRITE);
}

void FileSet::sync(Index file) const {
  const auto open = descriptor(file);
  int status;
  do status = posix::disk.fdatasync(open->number());
  while (status != 0 && errno == EINTR);
  if (status != 0) throw io_error("sync", path(file), errno);
}

std::span<const std::byte> FileSet::map(Index file) const {
  const std::lock_guard lock(mutex_);
  Entry& entry = entries_[file];
  if (entry.mapped.bytes().empty() && entry.state.size_bytes > 0) {
    const std::string path = entry.is_private ? fmt::format("/proc/self/fd/{}", entry.open->number()) : entry.path;
    MappedFile mapped = MappedFile::open(path).value();
    if (mapped.size_bytes() != entry.state.size_bytes)
      throw_error(ErrorCode::bad_file, "'{}' changed while it was read: it had {} bytes, and has {}", entry.path,
                  entry.state.size_bytes, mapped.size_bytes());
    entry.mapped = std::move(mapped);
  }
  return entry.mapped.bytes();
}

}  // namespace tranship
