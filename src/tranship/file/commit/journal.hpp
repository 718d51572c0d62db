// Private: Journal, which blocks of an unfinished target are on the disk, so that a later run can go on from there.
//
// Text, one record a line, each with its own checksum at the end: the first line says which work it is, which file or
// directory it speaks of and its inode; each other line names blocks that follow each other, and what they contribute
// to the checksum of their file. A line is written when what it says is on the disk. A line that is torn, and whatever
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

/// What a journal is about.
struct JournalSubject {
  std::uint64_t work = 0;  ///< a number that two runs share exactly when one may go on with the other's work
  std::string name;        ///< of the file or directory
  std::uint64_t inode = 0;
  friend bool operator==(const JournalSubject&, const JournalSubject&) = default;
};

struct JournalContents {
  JournalSubject subject;
  std::vector<FinishedBlocks> finished;
  Index good_bytes = 0;  ///< up to the first line that does not count
};

/// What a file says; empty contents (work 0) where there is none, or none that can be read.
JournalContents read_journal(const std::string& path);

class Journal {
 public:
  /// Begins a journal. Throws `io`.
  static Journal begin(const std::string& path, const JournalSubject& subject);
  /// Goes on with one that was read. Throws `io`.
  static Journal resume(const std::string& path, const JournalContents& contents);

  /// They are in the journal on the disk when this returns. Throws `io`.
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
