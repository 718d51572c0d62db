// Files and directories that appear complete or not at all: made beside their name as `.<name>.partial-XXXXXX`, synced,
// then renamed. A crash leaves the old one or the new one, and perhaps a partial one that its name tells apart.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/mapped_file.hpp>

namespace tranship {

/// A new file that takes the place of `target` when it is committed, and vanishes when it is not. A symbolic link at
/// `target` is followed; an existing file's permissions are kept. Of several writers of one target the last one wins.
class AtomicFile {
 public:
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Makes the partial file with `size_bytes` zero bytes. Fails with `invalid_use` where `target` is something else
  /// than a regular file, and with `io` (disk full included).
  static Result<AtomicFile> create(const std::string& target, Index size_bytes);

  /// All bytes of the file, for writing until `commit`.
  std::span<std::byte> bytes() const { return file_.writable_bytes(); }
  const std::string& target() const noexcept { return target_; }
  /// Where the new file lies until `commit`; empty afterwards.
  const std::string& partial() const noexcept { return partial_; }

  /// Syncs the file, renames it over the target and syncs the folder. On failure (`io`) before the rename the target is
  /// as it was. Once only: a second call is `invalid_use`.
  Result<void> commit();

 private:
  AtomicFile(std::string target, std::string partial, MappedFile file);

  std::string target_;
  std::string partial_;  // empty once committed or moved from
  MappedFile file_;
};

/// A new directory that takes the place of `target` when it is committed, and vanishes when it is not. `marker` names
/// the file that makes a directory one of ours: one without it is never replaced, and never committed. Whatever else
/// lies in a replaced directory goes with it.
class AtomicDirectory {
 public:
  AtomicDirectory(AtomicDirectory&& other) noexcept;
  AtomicDirectory& operator=(AtomicDirectory&&) = delete;
  ~AtomicDirectory();

  /// Makes the partial directory. Fails with `invalid_use` where `target` exists and is not a directory that holds
  /// `marker`, and with `io`.
  static Result<AtomicDirectory> create(const std::string& target, const std::string& marker);

  /// Makes the file `name` (no folders) in the partial directory, as MappedFile::create does. The mapping may be
  /// dropped at any time, and must not be written after `commit` has begun. Threads may call it at once for different
  /// names.
  Result<MappedFile> create_file(const std::string& name, Index size_bytes) const;
  const std::string& target() const noexcept { return target_; }
  /// Where the new directory lies until `commit`; empty afterwards.
  const std::string& partial() const noexcept { return partial_; }

  /// Syncs every file and the directory, puts it in the target's place in one step, syncs the folder around it, and
  /// removes what was there before. Fails with `invalid_use` (no marker, or a target that came up meanwhile without
  /// one), `unsupported` (a file system that cannot exchange two directories; the target is as it was) and `io`.
  Result<void> commit();

 private:
  AtomicDirectory(std::string target, std::string partial, std::string marker);

  std::string target_;
  std::string partial_;  // empty once committed or moved from
  std::string marker_;
};

}  // namespace tranship
