#include "tranship/file/io/posix.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship::posix {

DiskCalls disk = {::pwrite, ::fallocate, ::fdatasync, ::fsync, ::syncfs, ::mkdir, std::rename, ::renameat2, ::unlink};

FileDescriptor::~FileDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Error io_error(const char* action, const std::string& path, int error_number) {
  return make_error(ErrorCode::io, "cannot {} '{}': {}", action, path, std::generic_category().message(error_number));
}

std::string read_text(const std::string& path, Index bytes_max) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) throw io_error("open", path, errno);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) throw io_error("inspect", path, errno);
  if (!S_ISREG(status.st_mode))
    throw_error(ErrorCode::bad_file, "'{}' is {}, not a regular file", path,
                S_ISDIR(status.st_mode) ? "a directory" : "a device, a pipe or a socket");
  if (status.st_size > bytes_max)
    throw_error(ErrorCode::unsupported, "'{}' has {}: at most {} are read", path, amount(Index(status.st_size), "byte"),
                bytes_max);
  std::string out(static_cast<std::size_t>(status.st_size), '\0');
  read_at(file.number(), path, 0, std::as_writable_bytes(std::span(out)));
  return out;
}

void read_at(int descriptor, const std::string& path, Index offset_bytes, std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(descriptor, bytes.data(), bytes.size(), offset_bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw io_error("read", path, errno);
    if (got == 0) {
      struct stat status {};
      const Index end = ::fstat(descriptor, &status) == 0 ? Index(status.st_size) : offset_bytes;
      throw_error(ErrorCode::bad_file,
                  "'{}' became shorter while it was read: it ends at byte {}, bytes {} to {} are "
                  "needed",
                  path, end, offset_bytes, offset_bytes + Index(bytes.size()));
    }
    offset_bytes += got;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
}

void write_at(int descriptor, const std::string& path, Index offset_bytes, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = disk.pwrite(descriptor, bytes.data(), bytes.size(), offset_bytes);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) throw io_error("write", path, errno);
    offset_bytes += put;
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

namespace {

/// Returns an errno value, or 0 on success.
int try_reserve(int descriptor, Index size_bytes) {
  // Not posix_fallocate: if the file system cannot reserve, the C library would write to every block instead.
  int status;
  do status = disk.fallocate(descriptor, 0, 0, size_bytes);
  while (status != 0 && errno == EINTR);
  if (status == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS) return errno;
  // This file system cannot reserve, so only the present free space is checked; f_blocks is 0 if it does not count.
  struct statvfs room;
  if (::fstatvfs(descriptor, &room) != 0) return errno;
  if (room.f_blocks > 0 && static_cast<std::uint64_t>(size_bytes) / room.f_frsize >= room.f_bavail) return ENOSPC;
  return ::ftruncate(descriptor, size_bytes) == 0 ? 0 : errno;
}

}  // namespace

void reserve(int descriptor, const std::string& path, Index size_bytes, const std::string& room_note) {
  if (size_bytes == 0) return;
  struct rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      static_cast<std::uint64_t>(size_bytes) > limit.rlim_cur)
    throw_error(ErrorCode::io, "cannot reserve {} for '{}': this process may write files of {} at most",
                amount(size_bytes, "byte"), path, amount(limit.rlim_cur, "byte"));
  const int failure = try_reserve(descriptor, size_bytes);
  if (failure == 0) return;
  std::string reason = std::generic_category().message(failure);
  if (struct statvfs room; failure == ENOSPC && ::fstatvfs(descriptor, &room) == 0)
    reason += fmt::format(" ({} free)", amount(std::uint64_t(room.f_bavail) * room.f_frsize, "byte"));
  if (failure == ENOSPC || failure == EDQUOT) reason += room_note;
  throw_error(ErrorCode::io, "cannot reserve {} for '{}': {}", amount(size_bytes, "byte"), path, reason);
}

Result<void> sync_path(const std::string& path) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.number() < 0) return io_error("open for syncing", path, errno);
  int status;
  do status = disk.fsync(file.number());
  while (status != 0 && errno == EINTR);
  // Some network file systems have no fsync of a folder and return EINVAL. Nothing more can be done there.
  if (status != 0 && errno != EINVAL) return io_error("sync", path, errno);
  return {};
}

bool exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool is_directory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

}  // namespace tranship::posix
