// Private: Journal, the list of the blocks of an unfinished target that are on the disk, from which a later run
// continues.
//
// It is text with one record per line, and each line ends with its own checksum. The first line identifies the work,
// the file or directory, and its inode. Each other line names consecutive blocks and their contribution to the checksum
// of their file. A line is written once its blocks are on the disk. A torn line and all lines after it are ignored.
// comes after it, does not count.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/file/io/posix.hpp>

namespace tranship {

struct FinishedBlocks {
  Index job = 0;
  Index part = 0;
  Index first = 0;
  Index count = 0;
  std::uint32_t contribution = 0;
  friend bool operator==(const FinishedBlocks&, const FinishedBlocks&) = default;
};

/// The work and the file or directory that a journal describes.
struct JournalSubject {
  std::uint64_t work = 0;  ///< equal for two runs exactly when one may continue the other's work
  std::string name;        ///< name of the file or directory
  std::uint64_t inode = 0;
  friend bool operator==(const JournalSubject&, const JournalSubject&) = default;
};

struct JournalContents {
  JournalSubject subject;
  std::vector<FinishedBlocks> finished;
  Index good_bytes = 0;  ///< up to the first line that is ignored
};

/// Reads a journal; returns empty contents (work 0) if there is none or it cannot be read.
JournalContents read_journal(const std::string& path);

class Journal {
 public:
  /// Begins a journal. Throws `io`.
  static Journal begin(const std::string& path, const JournalSubject& subject);
  /// Continues a journal that was read. Throws `io`.
  static Journal resume(const std::string& path, const JournalContents& contents);

  /// Appends blocks; they are in the journal on the disk when this returns. Throws `io`.
  void append(std::span<const FinishedBlocks> finished);

 private:
  Journal(std::string path, posix::FileDescriptor file, Index end_bytes)
      : path_(std::move(path)), file_(std::move(file)), end_bytes_(end_bytes) {}

  void write(const std::string& text);

  std::string path_;
  posix::FileDescriptor file_;
  Index end_bytes_;
};

}  // namespace tranship
