// What the file layer needs of POSIX in more than one place: an owned descriptor, an error that names the path and says
// what the system said, and syncing by path.
#pragma once

#include <string>
#include <utility>

#include <tranship/base/result.hpp>

namespace tranship::posix {

/// An open file descriptor, closed with the object; -1 where there is none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&&) = delete;
  ~FileDescriptor();

  int number() const noexcept { return number_; }

 private:
  int number_;
};

/// Error `io`: "cannot <action> '<path>': <text of the errno value>".
Error io_error(const char* action, const std::string& path, int error_number);

/// Waits until the file or folder at `path` is on its disk: for a file its bytes and length, for a folder its names.
/// Pages written through a mapping count. Fails with `io`.
Result<void> sync_path(const std::string& path);

}  // namespace tranship::posix
