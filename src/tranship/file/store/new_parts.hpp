// Private: NewParts, stored arrays in the making, in one file or in a directory of files that the formats describe
// (new_arrays.hpp). Every file has its full length from the beginning. The writer decides what is written where, and
// when it is synced.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <tranship/file/commit/journal.hpp>
#include <tranship/file/commit/staging.hpp>
#include <tranship/file/store/new_arrays.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

struct TextFile {
  std::string name;
  std::string text;
};

class NewParts {
 public:
  /// Makes only the staging. The format has already checked that the target may be replaced. Fails as Staging::open
  /// does.
  static Result<NewParts> open(const std::string& target, NewArrays what);

  /// Makes all files anew, of zeros, with their heads. Throws `io`; a full disk is found here.
  void begin();
  /// Continues with the files of a journal; returns false if they are not there as they must be. Throws `io`.
  bool resume(const JournalSubject& subject);

  /// Return a file of that size beside the target in the making, for reading and writing: a new one, or the one that an
  /// earlier run has left (null if it left none). Call them after begin() or resume(). The first throws `io`; a full
  /// disk is found here.
  std::shared_ptr<FileSet> begin_intermediate(Index size_bytes) const;
  std::shared_ptr<FileSet> resume_intermediate(Index size_bytes) const;

  /// The arrays; they have their files once begun or resumed.
  std::span<const StoredParts> arrays() const noexcept { return what_.arrays; }
  const std::vector<NewFile>& files() const noexcept { return what_.files; }
  const Staging& staging() const noexcept { return staging_; }
  /// Returns the checksum of a file. `elements` is the contribution of its elements to the checksum of all bytes before
  /// its tail.
  std::uint32_t checksum(Index file, std::uint32_t elements) const { return what_.files[file].checksum(elements); }

  /// Writes the checksums that files contain, given the contribution of each file's elements, by number. Throws `io`.
  void fill_in(std::span<const std::uint32_t> elements);
  /// Reserves the room of files like these, so that a disk that is too small is found at once. Throws `io`.
  void reserve_beside(std::span<const TextFile> files) const;
  /// Writes the manifest and the other files beside the parts of a directory; writes nothing if the target is one file.
  /// All files must be synced. Throws `io`.
  void write_beside(std::span<const TextFile> files) const;
  void keep() noexcept { staging_.keep(); }
  /// Puts the target in its place, as Staging does, after a check that the format may still replace what exists there:
  /// a run takes long.
  void commit();

 private:
  NewParts(NewArrays what, Staging staging);

  std::string path_of(Index file) const;
  void use(const std::shared_ptr<FileSet>& files);
  void write_around(const FileSet& files, Index file) const;

  NewArrays what_;
  Staging staging_;
};

}  // namespace tranship
