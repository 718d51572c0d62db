#include "tranship/file/io/target_path.hpp"

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <random>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

/// Returns false if nothing exists at the path.
bool inspect_path(const std::string& path, struct stat& status) {
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT) throw posix::io_error("inspect", path, errno);
  return false;
}

/// The properties that decide whether a path may be moved; all zero if nothing exists there.
struct FileMarks {
  bool exists = false;
  bool is_fixed = false;  // immutable or append-only
  bool is_mount_point = false;
  mode_t mode = 0;
  std::uint32_t owner = 0;
};

FileMarks marks_of(const std::string& path) {
  struct statx found;
  if (::statx(AT_FDCWD, path.c_str(), 0, STATX_MODE | STATX_UID, &found) != 0) {
    if (errno == ENOENT) return {};
    throw posix::io_error("inspect", path, errno);
  }
  const std::uint64_t marks = found.stx_attributes & found.stx_attributes_mask;
  return {.exists = true,
          .is_fixed = (marks & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0,
          .is_mount_point = (marks & STATX_ATTR_MOUNT_ROOT) != 0,
          .mode = found.stx_mode,
          .owner = found.stx_uid};
}

}  // namespace

std::string resolved_target(const std::string& target) {
  std::error_code failure;
  fs::path path = fs::canonical(target, failure);
  if (failure) {
    // ".." may cancel the name in front of it only where nothing exists: an existing name may be a link.
    std::error_code unreadable;
    path = fs::weakly_canonical(target, unreadable);
    if (unreadable) throw posix::io_error("find", target, unreadable.value());
  }
  if (!path.has_filename()) path = path.parent_path();  // "out/" means "out"
  if (failure && fs::is_symlink(fs::symlink_status(path, failure)))
    throw_error(ErrorCode::invalid_use, "'{}' is a symbolic link to '{}', which does not exist", path.string(),
                fs::read_symlink(path, failure).string());
  if (!path.has_filename()) throw_error(ErrorCode::invalid_use, "'{}' does not name a file or a directory", target);
  return path.string();
}

void check_replacing_is_permitted(const std::string& target) {
  const std::string folder = folder_of(target);
  // The folder is opened for reading to wait until the new name is on the disk.
  if (::faccessat(AT_FDCWD, folder.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) != 0)
    throw posix::io_error("read and write", folder, errno);
  const FileMarks outer = marks_of(folder), old = marks_of(target);
  if (outer.is_fixed) throw_error(ErrorCode::invalid_use, "folder '{}' is marked as immutable or append-only", folder);
  if (!old.exists) return;
  if (old.is_fixed)
    throw_error(ErrorCode::invalid_use, "'{}' is marked as immutable or append-only: it cannot be replaced", target);
  std::error_code nowhere;  // a current directory that is gone is no obstacle
  if (S_ISDIR(old.mode) && fs::path(target) == fs::current_path(nowhere))
    throw_error(ErrorCode::invalid_use,
                "'{}' is the current directory, and replacing it would delete it: name it from another one, or name "
                "something in it",
                target);
  if (old.is_mount_point)
    throw_error(ErrorCode::invalid_use, "'{}' is a mount point: it cannot be replaced, name something in it", target);
  const std::uint32_t self = ::geteuid();
  if ((outer.mode & S_ISVTX) && self != 0 && old.owner != self && outer.owner != self)
    throw_error(
        ErrorCode::invalid_use,
        "'{}' belongs to user {}, and its folder is sticky: user {}, who this process runs as, cannot replace it",
        target, old.owner, self);
  // Moving a directory changes its "..", which needs write permission.
  if (S_ISDIR(old.mode) && ::faccessat(AT_FDCWD, target.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    throw posix::io_error("replace", target, errno);
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

std::string name_beside(const std::string& target, std::string_view suffix) {
  const std::string name = fs::path(target).filename().string().substr(0, 200);
  return (fs::path(target).parent_path() / fmt::format(".{}.{}", name, suffix)).string();
}

Result<void> sync_what_took_its_place(const std::string& target) {
  Result<void> synced = posix::sync_path(folder_of(target));
  if (synced) return synced;
  return make_error(synced.error().code(), "the new '{}' is in place, but a power failure may undo that: {}", target,
                    synced.error().message());
}

std::string random_letters() {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string out;
  for (int i = 0; i < 6; ++i) out += letters[random() % letters.size()];
  return out;
}

bool directory_may_be_replaced(const std::string& target, const std::string& marker) {
  struct stat status;
  if (!inspect_path(target, status)) return false;
  if (!S_ISDIR(status.st_mode)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a directory", target);
  std::error_code ignored;  // a directory that cannot be inspected fails when it is replaced
  if (fs::is_empty(target, ignored)) return true;
  if (!inspect_path(target + "/" + marker, status))
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and holds no '{}': it is not replaced", target, marker);
  return true;
}

bool file_may_be_replaced(const std::string& target) {
  struct stat status;
  if (!inspect_path(target, status)) return false;
  if (!S_ISREG(status.st_mode)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a regular file", target);
  return true;
}

}  // namespace tranship
