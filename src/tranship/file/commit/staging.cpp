#include "tranship/file/commit/staging.hpp"

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
#include <tranship/file/io/target_path.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;
using posix::FileDescriptor;
using posix::io_error;

/// Returns the process that holds the lock, which it has written there.
std::string holder_of(int lock) {
  char text[32] = {};
  const ssize_t length = ::pread(lock, text, sizeof text - 1, 0);
  return length > 0 ? fmt::format(" (process {})", std::string(text, static_cast<std::size_t>(length))) : "";
}

/// Returns false if the folder has vanished. Throws for anything that another user may have put there, because writing
/// to a link would write wherever it leads.
bool is_ours(const std::string& folder) {
  struct stat found;
  if (::lstat(folder.c_str(), &found) != 0) {
    if (errno == ENOENT) return false;
    throw io_error("inspect", folder, errno);
  }
  if (!S_ISDIR(found.st_mode))
    throw_error(ErrorCode::invalid_use, "cannot use '{}' to prepare the new target: it is {}; remove it", folder,
                S_ISLNK(found.st_mode) ? "a symbolic link" : "not a directory");
  if (found.st_uid != ::geteuid())
    throw_error(
        ErrorCode::invalid_use,
        "cannot use '{}' to prepare the new target: it belongs to user {}, and this process runs as user {}; remove it",
        folder, found.st_uid, ::geteuid());
  return true;
}

/// Returns true if a run makes or replaces entries of this name in the folder.
bool is_staged(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.starts_with("new-") || name == "old";
}

/// Returns true if the target exists. Throws if it must not be replaced.
bool may_be_replaced(const std::string& target, StagedKind kind, const std::string& marker) {
  return kind == StagedKind::directory ? directory_may_be_replaced(target, marker) : file_may_be_replaced(target);
}

Error came_up(const std::string& target) {
  return make_error(ErrorCode::invalid_use, "'{}' was created by another program during this run; it is not replaced",
                    target);
}

/// Returns the lock of a folder that may be made, or removed by its last user, at any moment; -1: try again.
int try_lock(const std::string& folder, const std::string& target) {
  if (posix::disk.mkdir(folder.c_str(), 0777) != 0) {
    if (errno != EEXIST) throw io_error("create", folder, errno);
    if (!is_ours(folder)) return -1;
  }
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
      replaces_(other.replaces_),
      kept_(other.kept_) {}

Staging::~Staging() {
  if (!kept_) remove();
}

Result<Staging> Staging::open(const std::string& requested, StagedKind kind, const std::string& marker) {
  return attempt([&] {
    const std::string target = resolved_target(requested);
    may_be_replaced(target, kind, marker);
    check_replacing_is_permitted(target);
    const std::string folder = name_beside(target, "partial");
    // Other runs that end while this one begins make it try again, but not forever.
    for (int tries = 0; tries < 1000; ++tries)
      if (const int lock = try_lock(folder, target); lock >= 0) {
        Staging out(target, kind, marker, FileDescriptor(lock));
        out.put_back_what_was_set_aside();
        out.replaces_ = may_be_replaced(target, kind, marker);
        check_replacing_is_permitted(target);
        return out;
      }
    throw_error(ErrorCode::io, "cannot lock '{}': another program removes it each time", folder);
  });
}

void Staging::remove() noexcept {
  if (folder_.empty()) return;
  // Removes the journal first, because without it no run continues the rest, and then only what runs have made.
  std::error_code ignored;
  posix::disk.unlink(journal().c_str());
  for (fs::directory_iterator entry(folder_, ignored), end; !ignored && entry != end; entry.increment(ignored))
    if (is_staged(entry->path())) {
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
    if (is_staged(entry->path())) {
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

/// Undoes the first of two steps after a run was killed between them. A target that has appeared meanwhile stays.
void Staging::put_back_what_was_set_aside() {
  struct stat status;
  if (::lstat(target_.c_str(), &status) == 0 || ::lstat(set_aside().c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return;
  if (posix::disk.rename(set_aside().c_str(), target_.c_str()) == 0) return;
  const int failure = errno;
  keep();
  throw_error(ErrorCode::io, "cannot put the old '{}' back, which an earlier run has left in '{}': {}", target_,
              set_aside(), std::generic_category().message(failure));
}

void Staging::replace_in_two_steps() {
  if (posix::disk.rename(target_.c_str(), set_aside().c_str()) != 0) throw io_error("move aside", target_, errno);
  if (posix::disk.rename(path().c_str(), target_.c_str()) == 0) return;
  const Error failure = io_error("put in place", target_, errno);
  put_back_what_was_set_aside();
  throw failure;
}

void Staging::put_in_place() {
  const bool exists = may_be_replaced(target_, kind_, marker_);
  if (exists && !replaces_) throw came_up(target_);
  if (exists && kind_ == StagedKind::file) {
    if (posix::disk.rename(path().c_str(), target_.c_str()) != 0) throw io_error("put in place", target_, errno);
    return;
  }
  // If a target appears between the look and the rename, the rename fails and the target is not lost.
  if (posix::disk.renameat2(AT_FDCWD, path().c_str(), AT_FDCWD, target_.c_str(),
                            exists ? RENAME_EXCHANGE : RENAME_NOREPLACE) == 0)
    return;
  if (errno == EEXIST) throw came_up(target_);
  const bool cannot = errno == EINVAL || errno == ENOSYS || errno == EXDEV || errno == EOPNOTSUPP;
  if (cannot && exists) return replace_in_two_steps();
  // Without the flag, rename still refuses to replace a directory that is not empty.
  if (!cannot || posix::disk.rename(path().c_str(), target_.c_str()) != 0)
    throw io_error("put in place", target_, errno);
}

void Staging::commit() {
  if (folder_.empty() || name_.empty()) throw_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
  if (kind_ == StagedKind::directory) posix::sync_path(path()).value();
  put_in_place();
  const Result<void> synced = sync_what_took_its_place(target_);
  remove();
  synced.value();
}

}  // namespace tranship
