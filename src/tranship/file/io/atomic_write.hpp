// Private: Files that appear complete or not at all: made beside their name as `.<name>.partial-XXXXXX`, synced, then
// renamed. A crash leaves the old one or the new one, and perhaps a partial one that its name tells apart. For files
// that take long to make, see staging.hpp.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>
#include <tranship/file/io/mapped_file.hpp>

namespace tranship {

/// A new file that takes the place of `target` when it is committed, and vanishes when it is not. A symbolic link at
/// `target` is followed; an existing file's permissions are kept. The last of several writers of one target wins.
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

}  // namespace tranship
