// Private: FileSet, many files by number, each opened when it is first needed and only so many at once, so that neither
// the number of descriptors nor that of mappings limits how many files an array has. Threads may use it at once.
//
// A file that is read is remembered as it was when it was added: one that has changed since is refused, not mixed.
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

/// What tells one state of a file from another.
struct FileState {
  Index size_bytes = 0;
  std::int64_t modified_ns = 0;
  /// The last change of its bytes, its names or its permissions: what gives a file its old time of modification back
  /// changes this.
  std::int64_t changed_ns = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FileState&, const FileState&) = default;
};

/// The CRC-32 that something says of a file: a manifest of all its bytes, or an archive of one member.
struct RecordedChecksum {
  struct Member {
    std::string path;  ///< as errors call it
    Interval bytes;    ///< of the archive
  };

  std::uint32_t crc32 = 0;
  std::optional<Member> member = {};

  /// The bytes that it is of, in a file of that size.
  Interval stretch(Index file_bytes) const { return member ? member->bytes : Interval{0, file_bytes}; }
  /// Throws `bad_file`, naming `path` or the member, where `found` is another one.
  void require(std::uint32_t found, const std::string& path) const;
};

class FileSet {
 public:
  explicit FileSet(FileAccess access) : FileSet(access, default_open_max()) {}
  FileSet(FileAccess access, Index open_max) : access_(access), open_max_(open_max) {}
  /// Files that one set keeps open at once: a quarter of those that the process may open, for it is not the only set,
  /// and at most 256.
  static Index default_open_max() noexcept;

  /// Looks at the file, which must exist, and returns its number. Fails with `io`, and with `bad_file` where there is
  /// something else than a regular file. To be called before any thread reads.
  Result<Index> add(const std::string& path);

  /// Adds an open file without a name, which no other process can change; `path` is what errors call it.
  Result<Index> adopt(const std::string& path, posix::FileDescriptor file);
  bool is_private(Index file) const { return entries_[file].is_private; }

  Index count() const noexcept { return static_cast<Index>(entries_.size()); }
  const std::string& path(Index file) const { return entries_[file].path; }
  const FileState& state(Index file) const { return entries_[file].state; }
  Index size_bytes(Index file) const { return entries_[file].state.size_bytes; }

  /// Throws `bad_file` where some file is not as it was when it was added.
  void check_unchanged() const;

  /// Has the checksums of files that are read from here on checked, by number; of those without one, nothing.
  void check_reads(std::span<const std::optional<RecordedChecksum>> checksums);
  /// Once all is read: reads what is left of each file, or member, that was read at all, and throws `bad_file` for the
  /// first whose checksum is another. `watch` is called every now and then.
  void finish_reads(FunctionRef<void()> watch) const;

  /// All of `bytes`, from an offset on. Throws `io`, and `bad_file` where the file is not as it was.
  void read(Index file, Index offset_bytes, std::span<std::byte> bytes) const;
  /// The same of several stretches, increasing and apart from each other. Those with short gaps between them are read
  /// by one call.
  struct Stretch {
    Index offset_bytes = 0;
    std::span<std::byte> bytes;
  };
  void read(Index file, std::span<const Stretch> stretches) const;
  /// Says that reads will be short and far apart from each other, so that the system reads nothing but what is asked
  /// for.
  void expect_scattered_reads();
  /// A stretch of a file as memory that holds at least `window_bytes` from the offset on, or what there is of them. The
  /// last ones stay mapped, so that threads share them and come back to them cheaply. Throws as `read` does.
  std::shared_ptr<const MappedWindow> map(Index file, Index offset_bytes) const;
  static constexpr Index window_bytes = Index(8) << 20;
  /// How much stays mapped, in `window_bytes` from one window to the next: 256 MiB by default, and never more
  /// than 256 windows, of which a process has only so many.
  void keep_mapped(Index size_bytes) { windows_max_ = std::min<Index>(size_bytes / window_bytes + 1, 256); }
  /// Throws `io`.
  void write(Index file, Index offset_bytes, std::span<const std::byte> bytes) const;
  /// Lets the system begin to write to the disk what was written there.
  void start_syncing(Index file, Index offset_bytes, Index size_bytes) const noexcept;
  /// Waits until what was written to these files, which lie on one file system, is on the disk. Many of them are synced
  /// by one call for the whole file system, which writes what other programs have written there as well. Throws `io`.
  void sync(std::span<const Index> files) const;

 private:
  struct Entry {
    std::string path;
    FileState state;
    bool is_private = false;
    std::shared_ptr<posix::FileDescriptor> open;
    std::optional<RecordedChecksum> checksum = {};
    std::unique_ptr<ReadCheck> check = nullptr;  // where it is to be checked
  };

  std::shared_ptr<posix::FileDescriptor> descriptor(Index file) const;
  void sync_one(Index file) const;
  bool sync_file_system() const;
  std::shared_ptr<const MappedWindow> map_in_place_of_others(Index file, Index offset_bytes, Index size_bytes) const;

  FileAccess access_;
  Index open_max_;
  mutable std::mutex mutex_;  // guards what follows but for paths and states
  // Opened before anything is written: it is told of errors from then on.
  mutable std::shared_ptr<posix::FileDescriptor> file_system_;
  mutable std::vector<Entry> entries_;
  mutable std::deque<Index> open_files_;  // oldest first
  struct Window {
    Index file = 0;
    Index number = 0;
    std::shared_ptr<const MappedWindow> mapped;
  };
  Index windows_max_ = 33;
  mutable std::mutex windows_mutex_;    // guards what follows
  mutable std::deque<Window> windows_;  // the last used at the end
};

}  // namespace tranship
