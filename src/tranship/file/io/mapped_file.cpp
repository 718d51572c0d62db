#include "tranship/file/io/mapped_file.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {

using posix::FileDescriptor;
using posix::io_error;

namespace {

Result<std::byte*> map_for_writing(int descriptor, const std::string& path, std::size_t size) {
  if (size == 0) return static_cast<std::byte*>(nullptr);  // mmap refuses a length of 0
  void* begin = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return io_error("map", path, errno);
  return static_cast<std::byte*>(begin);
}

}  // namespace

MappedFile::MappedFile(std::string path, std::byte* begin, std::size_t size)
    : path_(std::move(path)), begin_(begin), size_(size), access_(FileAccess::read_write) {}

MappedFile::MappedFile(std::string path, MappedWindow window, std::size_t size)
    : path_(std::move(path)),
      begin_(const_cast<std::byte*>(window.at(0))),  // writable_bytes() refuses to write
      size_(size),
      window_(std::move(window)) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      begin_(std::exchange(other.begin_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      access_(other.access_),
      window_(std::move(other.window_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  std::swap(access_, other.access_);
  std::swap(window_, other.window_);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin_ && access_ == FileAccess::read_write) ::munmap(begin_, size_);
}

Result<MappedFile> MappedFile::open(const std::string& path, FileAccess access) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end; a regular file ignores it.
  const int mode = access == FileAccess::read_write ? O_RDWR : O_RDONLY;
  const FileDescriptor file(::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return io_error("open", path, errno);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) return io_error("inspect", path, errno);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::bad_file, "'{}' is {}, not a regular file", path,
                      S_ISDIR(status.st_mode) ? "a directory" : "a device, a pipe or a socket");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (access == FileAccess::read_only)
    return attempt([&] {
      return MappedFile(path, size == 0 ? MappedWindow() : MappedWindow::map(file.number(), path, 0, status.st_size),
                        size);
    });
  const Result<std::byte*> begin = map_for_writing(file.number(), path, size);
  if (!begin) return begin.error();
  return MappedFile(path, begin.value(), size);
}

Result<MappedFile> MappedFile::create(const std::string& path, Index size_bytes) {
  if (size_bytes < 0)
    return make_error(ErrorCode::invalid_use, "a file of {} at '{}': a length is at least 0",
                      amount(size_bytes, "byte"), path);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) return io_error("create", path, errno);
  const auto size = static_cast<std::size_t>(size_bytes);
  const Result<void> reserved = attempt([&] { posix::reserve(file.number(), path, size_bytes); });
  const Result<std::byte*> begin =
      reserved ? map_for_writing(file.number(), path, size) : Result<std::byte*>(reserved.error());
  if (!begin) {
    ::unlink(path.c_str());
    return begin.error();
  }
  return MappedFile(path, begin.value(), size);
}

std::span<std::byte> MappedFile::writable_bytes() const {
  if (access_ != FileAccess::read_write) throw_error(ErrorCode::invalid_use, "'{}' is mapped for reading only", path_);
  return {begin_, size_};
}

Result<void> MappedFile::sync() const {
  if (begin_ && ::msync(begin_, size_, MS_SYNC) != 0) return io_error("sync", path_, errno);
  return {};
}

}  // namespace tranship
