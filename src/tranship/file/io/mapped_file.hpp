// Private: MappedFile, a whole file as memory, for the lifetime of the object. The length is fixed when the file is
// mapped. Another process may shorten the file meanwhile. A mapping for reading then has zeros there, which `check`
// reports. A file that is mapped for writing must not be written by other programs: an access beyond the new end is a
// SIGBUS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/io/mapped_window.hpp>

namespace tranship {

enum class FileAccess : std::uint8_t { read_only, read_write };

/// A mapping of all bytes of one regular file. It holds no descriptor, so the limit on open files does not apply to it.
/// Writes reach the file by themselves, and the disk after `sync`. A file of 0 bytes maps to an empty span.
class MappedFile {
 public:
  /// An empty mapping of no file.
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  /// Maps the file at `path`. Fails with `io`, and with `bad_file` if it is not a regular file.
  static Result<MappedFile> open(const std::string& path, FileAccess access = FileAccess::read_only);
  /// Makes a new file of `size_bytes` zero bytes and maps it for reading and writing. Takes its blocks from the disk
  /// now, so that a full disk is found here and not in the middle of a write. Fails with `io` (also if the path
  /// exists), and then leaves nothing at `path`.
  static Result<MappedFile> create(const std::string& path, Index size_bytes);

  std::span<const std::byte> bytes() const noexcept { return {begin_, size_}; }
  /// Returns the bytes for writing; throws `invalid_use` on a read-only mapping.
  std::span<std::byte> writable_bytes() const;
  /// Call it after reading bytes of a mapping and before using them: throws `bad_file` if some were lost.
  void check() const { window_.check(); }
  Index size_bytes() const noexcept { return static_cast<Index>(size_); }
  FileAccess access() const noexcept { return access_; }

  /// Waits until all bytes written so far are on the disk. Fails with `io`.
  Result<void> sync() const;

 private:
  MappedFile(std::string path, std::byte* begin, std::size_t size);
  MappedFile(std::string path, MappedWindow window, std::size_t size);

  std::string path_;
  std::byte* begin_ = nullptr;
  std::size_t size_ = 0;
  FileAccess access_ = FileAccess::read_only;
  MappedWindow window_;  // owns a mapping for reading
};

}  // namespace tranship
