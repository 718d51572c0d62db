#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <tuple>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/staging.hpp>
#include <tranship/file/target_path.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;
using posix::FileDescriptor;
using posix::io_error;

/// Who holds the lock, as he wrote it there.
std::string holder_of(int lock) {
  char text[32] = {};
  const ssize_t length = ::pread(lock, text, sizeof text - 1, 0);
  return length > 0 ? fmt::format(" (process {})", std::string(text, static_cast<std::size_t>(length))) : "";
}

/// The lock of a folder that may be made, or removed by its last user, at any moment; -1 to try again.
int try_lock(const std::string& folder, const std::string& target) {
  if (posix::disk.mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) throw io_error("create", folder, errno);
  const std::string path = folder + "/lock";
  FileDescriptor lock(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (lock.number() < 0) {
    if (errno == ENOENT) return -1;
    throw io_error("create", path, errno);
  }
  if (::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK)
      throw_error(ErrorCode::invalid_use, "another run is writing '{}'{}", target, holder_of(lock.number()));
    throw io_error("lock", path, errno);
  }
  struct stat held, there;
  if (::fstat(lock.number(), &held) != 0 || ::stat(path.c_str(), &there) != 0 || held.st_ino != there.st_ino) return -1;
  const std::string self = std::to_string(::getpid());
  if (::ftruncate(lock.number(), 0) == 0) std::ignore = ::pwrite(lock.number(), self.data(), self.size(), 0);
  return ::fcntl(lock.number(), F_DUPFD_CLOEXEC, 0);
}

}  // namespace

Staging::Staging(std::string target, StagedKind kind, std::string marker, FileDescriptor lock)
    : target_(std::move(target)),
      folder_(name_beside(target_, "partial")),
      kind_(kind),
      marker_(std::move(marker)),
      lock_(std::move(lock)) {}

Staging::Staging(Staging&& other) noexcept
    : target_(std::move(other.target_)),
      folder_(std::exchange(other.folder_, {})),
      kind_(other.kind_),
      marker_(std::move(other.marker_)),
      name_(std::move(other.name_)),
      lock_(std::move(other.lock_)),
      kept_(other.kept_) {}

Staging::~Staging() {
  if (!kept_) remove();
}

Result<Staging> Staging::open(const std::string& requested, StagedKind kind, const std::string& marker) {
  return attempt([&] {
    const std::string target = resolved_target(requested);
    if (kind == StagedKind::directory)
      directory_may_be_replaced(target, marker);
    else
      file_may_be_replaced(target);
    const std::string folder = name_beside(target, "partial");
    // Others that end while we begin make us try again, but not for ever.
    for (int tries = 0; tries < 1000; ++tries)
      if (const int lock = try_lock(folder, target); lock >= 0)
        return Staging(target, kind, marker, FileDescriptor(lock));
    throw_error(ErrorCode::io, "cannot lock '{}': it vanishes again and again", folder);
  });
}

void Staging::remove() noexcept {
  if (folder_.empty()) return;
  // The journal first: without it, whatever else is left is nothing to go on with. And only what is ours.
  std::error_code ignored;
  posix::disk.unlink(journal().c_str());
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (entry->path().filename().string().starts_with("new-")) {
      std::error_code failure;
      fs::remove_all(entry->path(), failure);
    }
  posix::disk.unlink((folder_ + "/lock").c_str());
  ::rmdir(folder_.c_str());
  folder_.clear();
}

void Staging::begin() {
  posix::disk.unlink(journal().c_str());
  std::error_code failure;
  for (fs::directory_iterator entry(folder_, failure), end; !failure && entry != end; entry.increment(failure))
    if (entry->path().filename().string().starts_with("new-")) {
      std::error_code not_removed;
      fs::remove_all(entry->path(), not_removed);
      if (not_removed) throw io_error("remove", entry->path().string(), not_removed.value());
    }
  if (failure) throw io_error("list", folder_, failure.value());
  name_ = "new-" + random_letters();
  if (kind_ == StagedKind::directory) {
    if (posix::disk.mkdir(path().c_str(), 0777) != 0) throw io_error("create", path(), errno);
    return;
  }
  const FileDescriptor file(::open(path().c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (file.number() < 0) throw io_error("create", path(), errno);
  struct stat old;
  if (::stat(target_.c_str(), &old) == 0 && ::fchmod(file.number(), old.st_mode & 07777) != 0)
    throw io_error("set the permissions of", path(), errno);
}

bool Staging::resume(const std::string& name, std::uint64_t inode) {
  if (!name.starts_with("new-") || name.find('/') != std::string::npos) return false;
  struct stat status;
  if (::lstat((folder_ + "/" + name).c_str(), &status) != 0 || status.st_ino != inode) return false;
  if (kind_ == StagedKind::directory ? !S_ISDIR(status.st_mode) : !S_ISREG(status.st_mode)) return false;
  name_ = name;
  return true;
}

std::uint64_t Staging::inode() const {
  struct stat status;
  if (::lstat(path().c_str(), &status) != 0) throw io_error("inspect", path(), errno);
  return status.st_ino;
}

void Staging::put_directory_in_place() {
  const bool exchange = directory_may_be_replaced(target_, marker_);
  // A target that comes up between the look and the rename makes the rename fail instead of being lost.
  if (posix::disk.renameat2(AT_FDCWD, path().c_str(), AT_FDCWD, target_.c_str(),
                            exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0)
    return;
  const bool cannot = errno == EINVAL || errno == ENOSYS || errno == EXDEV;
  if (cannot && exchange)
    throw_error(ErrorCode::unsupported,
                "the file system of '{}' cannot exchange two directories: remove it first, or choose a new name",
                target_);
  // Without the flag, rename still refuses to replace a directory that holds anything.
  if (!cannot || posix::disk.rename(path().c_str(), target_.c_str()) != 0)
    throw io_error("put in place", target_, errno);
}

void Staging::commit() {
  if (folder_.empty() || name_.empty()) throw_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
  if (kind_ == StagedKind::directory) {
    posix::sync_path(path()).value();
    put_directory_in_place();
  } else if (posix::disk.rename(path().c_str(), target_.c_str()) != 0) {
    throw io_error("put in place", target_, errno);
  }
  posix::sync_path(folder_of(target_)).value();
  remove();
}

}  // namespace tranship
