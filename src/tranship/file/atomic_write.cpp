#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/atomic_write.hpp>
#include <tranship/file/posix.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;
using posix::io_error;
using posix::sync_path;

/// The target without symbolic links where it exists, and with a name at its end.
std::string resolve(const std::string& target) {
  std::error_code failure;
  fs::path path = fs::canonical(target, failure);
  if (failure) path = fs::path(target).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // "out/" means "out"
  if (!path.has_filename()) throw_error(ErrorCode::invalid_use, "'{}' does not name a file or a directory", target);
  return path.string();
}

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// A name beside `target` that is very likely free. The target's name is cut so that the whole fits in NAME_MAX.
std::string partial_name(const std::string& target) {
  static constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::random_device random;
  std::string suffix;
  for (int i = 0; i < 6; ++i) suffix += letters[random() % letters.size()];
  const std::string name = fs::path(target).filename().string().substr(0, 200);
  return (fs::path(target).parent_path() / fmt::format(".{}.partial-{}", name, suffix)).string();
}

/// True where `target` exists; throws where it is not a directory that `marker` makes one of ours.
bool exists_and_may_be_replaced(const std::string& target, const std::string& marker) {
  struct stat status;
  if (::stat(target.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    throw io_error("inspect", target, errno);
  }
  if (!S_ISDIR(status.st_mode)) throw_error(ErrorCode::invalid_use, "'{}' exists and is not a directory", target);
  if (::stat((target + "/" + marker).c_str(), &status) != 0)
    throw_error(ErrorCode::invalid_use, "directory '{}' exists and holds no '{}': it is not replaced", target, marker);
  return true;
}

void remove_tree(const std::string& path) noexcept {
  std::error_code ignored;  // what cannot be removed stays under its partial name
  fs::remove_all(path, ignored);
}

}  // namespace

AtomicFile::AtomicFile(std::string target, std::string partial, MappedFile file)
    : target_(std::move(target)), partial_(std::move(partial)), file_(std::move(file)) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : target_(std::move(other.target_)), partial_(std::exchange(other.partial_, {})), file_(std::move(other.file_)) {}

AtomicFile::~AtomicFile() {
  if (!partial_.empty()) std::remove(partial_.c_str());
}

Result<AtomicFile> AtomicFile::create(const std::string& requested, Index size_bytes) {
  return attempt([&] {
    const std::string target = resolve(requested);
    struct stat status;
    const bool exists = ::stat(target.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
      throw_error(ErrorCode::invalid_use, "'{}' exists and is not a regular file", target);
    const std::string partial = partial_name(target);
    AtomicFile out(target, partial, MappedFile::create(partial, size_bytes).value());
    if (exists && ::chmod(partial.c_str(), status.st_mode & 07777) != 0)
      throw io_error("set the permissions of", partial, errno);
    return out;
  });
}

Result<void> AtomicFile::commit() {
  if (partial_.empty()) return make_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
  if (Result<void> synced = file_.sync(); !synced) return synced;
  if (std::rename(partial_.c_str(), target_.c_str()) != 0) return io_error("put in place", target_, errno);
  partial_.clear();
  return sync_path(folder_of(target_));
}

AtomicDirectory::AtomicDirectory(std::string target, std::string partial, std::string marker)
    : target_(std::move(target)), partial_(std::move(partial)), marker_(std::move(marker)) {}

AtomicDirectory::AtomicDirectory(AtomicDirectory&& other) noexcept
    : target_(std::move(other.target_)),
      partial_(std::exchange(other.partial_, {})),
      marker_(std::move(other.marker_)) {}

AtomicDirectory::~AtomicDirectory() {
  if (!partial_.empty()) remove_tree(partial_);
}

Result<AtomicDirectory> AtomicDirectory::create(const std::string& requested, const std::string& marker) {
  return attempt([&] {
    const std::string target = resolve(requested);
    exists_and_may_be_replaced(target, marker);
    const std::string partial = partial_name(target);
    if (::mkdir(partial.c_str(), 0777) != 0) throw io_error("create", partial, errno);
    return AtomicDirectory(target, partial, marker);
  });
}

Result<MappedFile> AtomicDirectory::create_file(const std::string& name, Index size_bytes) const {
  if (partial_.empty()) return make_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    return make_error(ErrorCode::invalid_use, "'{}' is not the name of a file in '{}'", name, target_);
  return MappedFile::create(partial_ + "/" + name, size_bytes);
}

Result<void> AtomicDirectory::commit() {
  return attempt([&] {
    if (partial_.empty()) throw_error(ErrorCode::invalid_use, "'{}' is committed already", target_);
    bool marked = false;
    std::error_code failure;
    for (fs::directory_iterator entry(partial_, failure), end; !failure && entry != end; entry.increment(failure)) {
      sync_path(entry->path().string()).value();
      marked |= entry->path().filename() == marker_;
    }
    if (failure) throw io_error("list", partial_, failure.value());
    if (!marked) throw_error(ErrorCode::invalid_use, "the new '{}' holds no '{}'", target_, marker_);
    sync_path(partial_).value();

    const bool exchange = exists_and_may_be_replaced(target_, marker_);
    // A target that comes up between the look and the rename makes the rename fail instead of being lost.
    if (::renameat2(AT_FDCWD, partial_.c_str(), AT_FDCWD, target_.c_str(),
                    exchange ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0) {
      const bool cannot = errno == EINVAL || errno == ENOSYS || errno == EXDEV;
      if (cannot && exchange)
        throw_error(ErrorCode::unsupported,
                    "the file system of '{}' cannot exchange two directories: remove it first, or choose a new name",
                    target_);
      // Without the flag, rename still refuses to replace a directory that holds anything.
      if (!cannot || std::rename(partial_.c_str(), target_.c_str()) != 0)
        throw io_error("put in place", target_, errno);
    }
    const std::string replaced = std::exchange(partial_, {});
    sync_path(folder_of(target_)).value();
    if (exchange && (fs::remove_all(replaced, failure), failure))
      throw io_error("remove the replaced directory, now", replaced, failure.value());
  });
}

}  // namespace tranship
