// Private: FileSet, many files by number. Each is opened when it is first needed, and only a limited number are open at
// once, so the limits on descriptors and mappings do not limit the files of an array. Threads may use it concurrently.
//
// A set remembers the state of a file that is read when it is added. If the file changes later, reads refuse it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/base/index.hpp>
#include <tranship/file/io/mapped_file.hpp>
#include <tranship/file/io/mapped_window.hpp>
#include <tranship/file/io/posix.hpp>
#include <tranship/file/io/read_check.hpp>

namespace tranship {

/// The properties that tell one state of a file from another.
struct FileState {
  Index size_bytes = 0;
  std::int64_t modified_ns = 0;
  /// The last change of its bytes, its names or its permissions. Setting back the time of modification changes this,
  /// too.
  std::int64_t changed_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// A CRC-32 that is recorded for a file: a manifest records it for all bytes, an archive for one member.
struct RecordedChecksum {
  struct Member {
    std::string path;  ///< path in errors
    Interval bytes;    ///< place in the archive
  };

  std::uint32_t crc32 = 0;
  std::optional<Member> member = {};

  /// Returns the bytes that the checksum covers, in a file of that size.
  Interval stretch(Index file_bytes) const { return member ? member->bytes : Interval{0, file_bytes}; }
  /// Throws `bad_file`, naming `path` or the member, if `found` differs from the checksum.
  void require(std::uint32_t found, const std::string& path) const;
};

class FileSet {
 public:
  explicit FileSet(FileAccess access) : FileSet(access, default_open_max()) {}
  FileSet(FileAccess access, Index open_max) : access_(access), open_max_(open_max) {}
  /// Limit on the files that one set keeps open: a quarter of those that the process may open, because it is not the
  /// only set, and at most 256.
  static Index default_open_max() noexcept;

  /// Adds a file, which must exist, and returns its number. Fails with `io`, and with `bad_file` if it is not a regular
  /// file. Call it before any thread reads.
  Result<Index> add(const std::string& path);

  /// Adds an open nameless file, which no other process can change; `path` is its name in errors.
  Result<Index> adopt(const std::string& path, posix::FileDescriptor file);
  bool is_private(Index file) const { return entries_[file].is_private; }

  Index count() const noexcept { return static_cast<Index>(entries_.size()); }
  const std::string& path(Index file) const { return entries_[file].path; }
  const FileState& state(Index file) const { return entries_[file].state; }
  Index size_bytes(Index file) const { return entries_[file].state.size_bytes; }

  /// Throws `bad_file` if a file has changed since it was added.
  void check_unchanged() const;

  /// From now on, computes the checksums of files that are read. `checksums` are by file number; empty ones are not
  /// checked.
  void check_reads(std::span<const std::optional<RecordedChecksum>> checksums);
  /// Call it when all is read. Reads the rest of each file, or member, of which any byte was read, and throws
  /// `bad_file` for the first whose checksum differs. Calls `watch` from time to time.
  void finish_reads(FunctionRef<void()> watch) const;

  /// Reads all of `bytes` from an offset. Throws `io`, and `bad_file` if the file has changed.
  void read(Index file, Index offset_bytes, std::span<std::byte> bytes) const;
  /// A stretch to read. The stretches of one call increase and do not overlap; one system call reads those with short
  /// gaps between them.
  struct Stretch {
    Index offset_bytes = 0;
    std::span<std::byte> bytes;
  };
  void read(Index file, std::span<const Stretch> stretches) const;
  /// Announces that reads will be short and far apart, so that the system does not read ahead.
  void expect_scattered_reads();
  /// Maps a stretch of a file that holds at least `window_bytes` from the offset on, or up to the end of the file. The
  /// last windows stay mapped, so threads share them and use them again cheaply. Throws as `read` does.
  std::shared_ptr<const MappedWindow> map(Index file, Index offset_bytes) const;
  static constexpr Index window_bytes = Index(8) << 20;
  /// Sets how much stays mapped, counted in `window_bytes` per window: 256 MiB by default, and at most 256 windows,
  /// because a process has a limited number of them.
  void keep_mapped(Index size_bytes) { windows_max_ = std::min<Index>(size_bytes / window_bytes + 1, 256); }
  /// Throws `io`.
  void write(Index file, Index offset_bytes, std::span<const std::byte> bytes) const;
  /// Lets the system begin to write these bytes, which were written to the file, to the disk.
  void start_syncing(Index file, Index offset_bytes, Index size_bytes) const noexcept;
  /// Waits until the bytes that were written to these files, which lie on one file system, are on the disk. One call
  /// for the whole file system syncs many files, and also writes the bytes of other programs there. Throws `io`.
  void sync(std::span<const Index> files) const;

 private:
  struct Entry {
    std::string path;
    FileState state;
    bool is_private = false;
    std::shared_ptr<posix::FileDescriptor> open;
    std::optional<RecordedChecksum> checksum = {};
    std::unique_ptr<ReadCheck> check = nullptr;  // set if the checksum is checked
  };

  std::shared_ptr<posix::FileDescriptor> descriptor(Index file) const;
  void sync_one(Index file) const;
  bool sync_file_system() const;
  std::shared_ptr<const MappedWindow> map_in_place_of_others(Index file, Index offset_bytes, Index size_bytes) const;

  FileAccess access_;
  Index open_max_;
  mutable std::mutex mutex_;  // guards the members below, except paths and states
  // Opened before anything is written, because it reports errors only from then on.
  mutable std::shared_ptr<posix::FileDescriptor> file_system_;
  mutable std::vector<Entry> entries_;
  mutable std::deque<Index> open_files_;  // oldest first
  struct Window {
    Index file = 0;
    Index number = 0;
    std::shared_ptr<const MappedWindow> mapped;
  };
  Index windows_max_ = 33;
  mutable std::mutex windows_mutex_;    // guards the members below
  mutable std::deque<Window> windows_;  // most recently used last
};

}  // namespace tranship
