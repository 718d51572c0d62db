// Stored arrays: one .npy file, or a directory of parts with its manifest. Opening one checks all of it; a new one
// appears complete or not at all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/file/atomic_write.hpp>
#include <tranship/file/manifest.hpp>
#include <tranship/file/npy.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

struct StoredPart {
  std::string path;
  NpyFile file;
};

/// A stored array, mapped for reading. The elements of a part lie in the order that its own header says.
struct StoredParts {
  ArraySpec spec;
  std::string descr;
  std::vector<StoredPart> parts;  ///< by ordinal of the grid
};

/// The layout of a plain .npy file: one part on rank 0, whole in every dimension. Throws `unsupported` for arrays of 0
/// dimensions.
ArraySpec whole_layout(const NpyHeader& header);

/// Throws `mismatch`, with both, where elements or extents of a layout are not those of the array.
void check_fits(const ArraySpec& array, const ArraySpec& layout);

/// Opens a .npy file or a directory, and checks that every part is there, is whole, and has the elements and the shape
/// that the layout says. `layout` must be what the path says of itself; a directory without a manifest needs it, and a
/// .npy file takes any of one part. Fails with `io`, `bad_file`, `unsupported`, `overflow` and `mismatch`, naming the
/// path.
Result<StoredParts> open_parts(const std::string& path, const std::optional<ArraySpec>& layout = std::nullopt);

/// A stored array in the making: a single .npy file where the target's name ends in ".npy", a directory otherwise.
class NewParts {
 public:
  /// Elements are spelled as `descr`. Replaces a .npy file, or a directory that holds a manifest and its parts and
  /// nothing else. Fails with `invalid_use` where the target is anything else, or is one file and the layout has
  /// several parts, and with `io` and `unsupported` as AtomicFile, AtomicDirectory and stored_order do.
  static Result<NewParts> create(const std::string& target, const ArraySpec& spec, const std::string& descr);

  /// Makes the part of one ordinal: its elements, all zero, to be written before the next call. Fails with `io` and
  /// `overflow`.
  Result<StridedView> add_part(Index ordinal);
  /// Where the new array lies until `commit`; once all parts are made, open_parts(partial(), spec) opens it.
  const std::string& partial() const noexcept;
  /// Puts it in the target's place, as AtomicFile and AtomicDirectory do.
  Result<void> commit();

 private:
  explicit NewParts(Manifest manifest) : manifest_(std::move(manifest)) {}

  NpyHeader header_of(Index ordinal) const;

  Manifest manifest_;
  // One of the two.
  std::optional<AtomicFile> file_;
  std::optional<AtomicDirectory> directory_;
  MappedFile part_;  // the one being written, of a directory
};

}  // namespace tranship
