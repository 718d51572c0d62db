#include <cerrno>
#include <filesystem>
#include <random>

#include <sys/stat.h>

#include <tranship/base/fail.hpp>
#include <tranship/file/posix.hpp>
#include <tranship/file/target_path.hpp>

namespace tranship {
namespace {

namespace fs = std::filesystem;

/// False where there is nothing.
bool inspect_path(const std::string& path, struct stat& status) {
  if (::stat(path.c_str(), &status) == 0) return true;
  if (errno != ENOENT) throw posix::io_error("inspect", path, errno);
  return false;
}

}  // namespace

std::string resolved_target(const std::string& target) {
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

std::string name_beside(const std::string& target, std::string_view suffix) {
  const std::string name = fs::path(target).filename().string().substr(0, 200);
  return (fs::path(target).parent_path() / fmt::format(".{}.{}", name, suffix)).string();
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
