// Private: POSIX calls that the file layer needs in more than one place: an owned descriptor, an error with the path
// and the system's reason, whole reads and writes, and syncing by path.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include <sys/types.h>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>

namespace tranship::posix {

/// The calls that change a disk, one table for the whole process. Tests replace them by calls that fail, or that end
/// the process, at a chosen moment; no other code may replace them.
struct DiskCalls {
  ssize_t (*pwrite)(int, const void*, std::size_t, off_t);
  int (*fallocate)(int, int, off_t, off_t);
  int (*fdatasync)(int);
  int (*fsync)(int);
  int (*syncfs)(int);
  int (*mkdir)(const char*, mode_t);
  int (*rename)(const char*, const char*);
  int (*renameat2)(int, const char*, int, const char*, unsigned);
  int (*unlink)(const char*);
};
extern DiskCalls disk;

/// An open file descriptor, closed with the object; -1 if there is none.
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

/// Makes an Error `io`: "cannot <action> '<path>': <text of the errno value>".
Error io_error(const char* action, const std::string& path, int error_number);

/// Reads all of a text file, which may change meanwhile. Throws `io`; `bad_file` if it is not a regular file; and
/// `unsupported` if it is longer than `bytes_max`.
std::string read_text(const std::string& path, Index bytes_max);

/// Reads all of `bytes` from an offset; throws `io`, and `bad_file` if the file ends before.
void read_at(int descriptor, const std::string& path, Index offset_bytes, std::span<std::byte> bytes);
/// Writes all of `bytes`; throws `io`.
void write_at(int descriptor, const std::string& path, Index offset_bytes, std::span<const std::byte> bytes);

/// Gives a new file its length and takes its blocks from the disk. Throws `io`. Also finds a length beyond the limit of
/// the process (RLIMIT_FSIZE), for which the system would end the process. If the disk or its quota has no room, the
/// message ends with `room_note`.
void reserve(int descriptor, const std::string& path, Index size_bytes, const std::string& room_note = {});

/// Waits until the file or folder at `path` is on its disk: the bytes and the length of a file, the names of a folder.
/// Includes pages that were written through a mapping. Fails with `io`.
Result<void> sync_path(const std::string& path);

/// Return true if something, or a directory, exists at `path`; false if that cannot be inspected, because the code that
/// uses the path then reports why.
bool exists(const std::string& path);
bool is_directory(const std::string& path);

}  // namespace tranship::posix
