// Private: AtomicFile, a file that appears complete or not at all: it is made beside its name as
// `.<name>.partial-XXXXXX`, synced, then renamed. A crash leaves the old file or the new one, and perhaps a partial
// file, whose name shows what it is. For files that take long to make, see staging.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/io/mapped_file.hpp>

namespace tranship {

/// A new file that replaces `target` when it is committed, and vanishes otherwise. A symbolic link at `target` is
/// followed, and an existing file's permissions are kept. If several writers have one target, the last commit wins.
class AtomicFile {
 public:
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Makes the partial file with `size_bytes` zero bytes. Fails with `invalid_use` if `target` is not a regular file,
  /// and with `io` (including a full disk).
  static Result<AtomicFile> create(const std::string& target, Index size_bytes);

  /// Returns all bytes of the file, for writing until `commit`.
  std::span<std::byte> bytes() const { return file_.writable_bytes(); }
  const std::string& target() const noexcept { return target_; }
  /// Path of the new file until `commit`; empty afterwards.
  const std::string& partial() const noexcept { return partial_; }

  /// Syncs the file, renames it over the target and syncs the folder. If it fails (`io`) before the rename, the target
  /// is unchanged. A second call fails with `invalid_use`.
  Result<void> commit();

 private:
  AtomicFile(std::string target, std::string partial, MappedFile file);

  std::string target_;
  std::string partial_;  // empty once committed or moved from
  MappedFile file_;
};

}  // namespace tranship
