// Private: NewParts, stored arrays in the making, in one file or in a directory of files. What the files are, the
// formats say (new_arrays.hpp). Every file has its length from the beginning; what is written where, and when it is on
// the disk, is the matter of the writer.
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
  /// Nothing is made yet but the staging. Whether the target may be replaced, the format has found. Fails as
  /// Staging::open does.
  static Result<NewParts> open(const std::string& target, NewArrays what);

  /// Makes all files anew, of zeros, with their heads. Throws `io`: a full disk is found here.
  void begin();
  /// Goes on with the files that a journal speaks of; false where they are not there as they must be. Throws `io`.
  bool resume(const JournalSubject& subject);

  /// A file of that size beside the target in the making, to be written and read: made anew, or what an earlier run has
  /// left of it, nothing where it left none. To be called after begin() or resume(). The first throws `io`: a full disk
  /// is found here.
  std::shared_ptr<FileSet> begin_intermediate(Index size_bytes) const;
  std::shared_ptr<FileSet> resume_intermediate(Index size_bytes) const;

  /// Their files once begun or resumed.
  std::span<const StoredParts> arrays() const noexcept { return what_.arrays; }
  const std::vector<NewFile>& files() const noexcept { return what_.files; }
  const Staging& staging() const noexcept { return staging_; }
  /// The checksum of a file whose elements contribute so much to the checksum of all that is in front of its tail.
  std::uint32_t checksum(Index file, std::uint32_t elements) const { return what_.files[file].checksum(elements); }

  /// Writes what the files say of themselves, of elements that contribute so much, by number. Throws `io`.
  void fill_in(std::span<const std::uint32_t> elements);
  /// Takes the room of files like these, so that a disk that is too small for them is found at once. Throws `io`.
  void reserve_beside(std::span<const TextFile> files) const;
  /// Writes the manifest, and what else a directory has beside its parts; of a file, nothing. All files must be synced.
  /// Throws `io`.
  void write_beside(std::span<const TextFile> files) const;
  void keep() noexcept { staging_.keep(); }
  /// Puts it in the target's place, as Staging does, if the format may still replace what stands there: a run takes
  /// long.
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
