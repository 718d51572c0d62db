#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/io/mapped_file.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {

using posix::FileDescriptor;
using posix::io_error;

namespace {

Result<std::byte*> map(int descriptor, const std::string& path, std::size_t size, FileAccess access) {
  if (size == 0) return static_cast<std::byte*>(nullptr);  // mmap refuses a length of 0
  const int protection = access == FileAccess::read_write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* begin = ::mmap(nullptr, size, protection, MAP_SHARED, descriptor, 0);
  if (begin == MAP_FAILED) return io_error("map", path, errno);
  return static_cast<std::byte*>(begin);
}

}  // namespace

MappedFile::MappedFile(std::string path, std::byte* begin, std::size_t size, FileAccess access)
    : path_(std::move(path)), begin_(begin), size_(size), access_(access) {}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      begin_(std::exchange(other.begin_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      access_(other.access_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(begin_, other.begin_);
  std::swap(size_, other.size_);
  std::swap(access_, other.access_);
  return *this;
}

MappedFile::~MappedFile() {
  if (begin_) ::munmap(begin_, size_);
}

Result<MappedFile> MappedFile::open(const std::string& path, FileAccess access) {
  // O_NONBLOCK: opening a FIFO must not wait for its other end; it changes nothing for a regular file.
  const int mode = access == FileAccess::read_write ? O_RDWR : O_RDONLY;
  const FileDescriptor file(::open(path.c_str(), mode | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) return io_error("open", path, errno);
  struct stat status;
  if (::fstat(file.number(), &status) != 0) return io_error("inspect", path, errno);
  if (!S_ISREG(status.st_mode))
    return make_error(ErrorCode::bad_file, "'{}' is {}, not a regular file", path,
                      S_ISDIR(status.st_mode) ? "a directory" : "a device, a pipe or a socket");
  const auto size = static_cast<std::size_t>(status.st_size);
  const Result<std::byte*> begin = map(file.number(), path, size, access);
  if (!begin) return begin.error();
  return MappedFile(path, begin.value(), size, access);
}

Result<MappedFile> MappedFile::create(const std::string& path, Index size_bytes) {
  if (size_bytes < 0)
    return make_error(ErrorCode::invalid_use, "a file of {} bytes at '{}': a length is at least 0", size_bytes, path);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) return io_error("create", path, errno);
  const auto size = static_cast<std::size_t>(size_bytes);
  const Result<void> reserved = attempt([&] { posix::reserve(file.number(), path, size_bytes); });
  const Result<std::byte*> begin =
      reserved ? map(file.number(), path, size, FileAccess::read_write) : Result<std::byte*>(reserved.error());
  if (!begin) {
    ::unlink(path.c_str());
    return begin.error();
  }
  return MappedFile(path, begin.value(), size, FileAccess::read_write);
}

std::span<std::byte> MappedFile::writable_bytes() const {
  if (access_ != FileAccess::read_write) throw_error(ErrorCode::invalid_use, "'{}' is mapped for reading only", path_);
  return {begin_, size_};
}

void MappedFile::advise_sequential() const noexcept {
  if (begin_) ::madvise(begin_, size_, MADV_SEQUENTIAL);
}

Result<void> MappedFile::sync() const {
  if (begin_ && ::msync(begin_, size_, MS_SYNC) != 0) return io_error("sync", path_, errno);
  return {};
}

}  // namespace tranship
