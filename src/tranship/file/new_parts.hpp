// NewParts: a stored array in the making, a single .npy file where the target's name ends in ".npy", a directory
// otherwise. Every file has its length from the beginning; what is written where, and when it is on the disk, is the
// matter of whoever writes.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tranship/file/journal.hpp>
#include <tranship/file/part_store.hpp>
#include <tranship/file/staging.hpp>

namespace tranship {

class NewParts {
 public:
  /// Elements are spelled as `descr`. Replaces a .npy file, or a directory that holds a manifest and its parts and
  /// nothing else. Nothing is made yet but the staging. Fails with `invalid_use` where the target is anything else, or
  /// is one file and the layout has several parts, and as Staging::open and stored_order do.
  static Result<NewParts> open(const std::string& target, const ArraySpec& spec, const std::string& descr);

  /// Makes all files anew, of zeros, with their headers. Throws `io`: a full disk is found here.
  void begin();
  /// Goes on with the files that a journal speaks of; false where they are not there as they must be. Throws `io`.
  bool resume(const JournalSubject& subject);

  /// The parts; their files once begun or resumed.
  const StoredParts& parts() const noexcept { return parts_; }
  const Staging& staging() const noexcept { return staging_; }
  /// The name that the file of a part has in the end.
  std::string file_name(Index ordinal) const;
  /// What the header contributes to the checksum of a file.
  std::uint32_t header_contribution(Index file) const;

  /// Writes the manifest, of a directory. All files must be synced. Throws `io`.
  void write_manifest(std::span<const std::uint32_t> checksums);
  void keep() noexcept { staging_.keep(); }
  /// Puts it in the target's place, as Staging does.
  void commit() { staging_.commit(); }

 private:
  NewParts(Manifest manifest, Staging staging);

  NpyHeader header_of(Index ordinal) const;
  std::string path_of(Index ordinal) const;
  void write_headers();

  Manifest manifest_;
  StoredParts parts_;
  Staging staging_;
};

}  // namespace tranship
