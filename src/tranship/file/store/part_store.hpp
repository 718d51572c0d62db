// Private: StoredParts, a stored array: one .npy file, or a directory of parts with its manifest. Opening one checks
// all of it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/file/format/manifest.hpp>
#include <tranship/file/format/npy.hpp>
#include <tranship/file/io/file_set.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

class PartSource;

/// A dense array in a file of the FileSet.
struct StoredPart {
  Index file = 0;
  Index offset_bytes = 0;
  StoredOrder order = {};
  Indices extents;
};

/// Returns a view of the elements of a part, which begin at `elements`.
StridedView view_of(const StoredPart& part, ElementType type, std::byte* elements);

/// Calls `f(offset in the file, offset in the box, size)`, in bytes, for the stretches of a box in the file of its
/// part, in the order of the file.
void for_each_stretch(const StoredPart& part, Index width, const Box& box, FunctionRef<void(Index, Index, Index)> f);

/// Cuts a box into boxes of at most `cells_max` cells (at least one) that are consecutive in the elements of the box,
/// dense in an order of dimensions. Calls `f(box, number of its first cell)`.
void for_each_piece(const Box& box, const Indices& order, Index cells_max, FunctionRef<void(const Box&, Index)> f);

/// An array in files: its layout, and the place of each part. Several arrays may share one set of files.
struct StoredParts {
  ArraySpec spec;
  std::string descr;
  /// True for an array of 0 dimensions: its layout has one element, and the headers of its parts have the shape ().
  bool is_scalar = false;
  std::shared_ptr<FileSet> files;
  std::vector<StoredPart> parts;  ///< by ordinal of the grid
  /// Checksum of each file, by number, where it is known.
  std::vector<std::optional<RecordedChecksum>> checksums;
  /// Reads parts that are not dense in their files. `parts` then state only their extents and the order in which they
  /// should be read.
  std::shared_ptr<const PartSource> source = {};

  const std::string& path_of(Index part) const { return files->path(parts[part].file); }
  /// Returns the bytes of the elements of a part.
  Index part_bytes(Index part) const;
  /// Returns the bytes of the elements of all parts.
  Index bytes() const;
  /// Returns the order of the largest part. Parts of one row or of no cells, whose order does not matter, may state
  /// another.
  StoredOrder order() const;
};

/// Returns the layout of a plain .npy file: one part on rank 0, whole in every dimension (layout_extents). Throws
/// `unsupported` if there are too many dimensions.
ArraySpec whole_layout(const NpyHeader& header);

/// Throws `mismatch`, naming both, if elements or extents of a layout differ from those of the array.
void check_fits(const ArraySpec& array, const ArraySpec& layout);

/// Makes an error `bad_file` for a directory without a manifest.
Error lacks_manifest(const std::string& directory);

/// Opens a .npy file or a directory, and checks that every part is there and complete, and has the elements and the
/// shape of the layout. `layout` must equal the layout that the path states, including its order. A directory without a
/// manifest needs it, and a .npy file takes any of one part. Fails with `io`, `bad_file`, `unsupported`, `overflow` and
/// `mismatch`, naming the path.
Result<StoredParts> open_parts(const std::string& path, const std::optional<ArraySpec>& layout = std::nullopt);

/// Throws `bad_file` at the first file, by number, whose bytes do not have its checksum. Skips files without one.
void check_checksums(const FileSet& files, std::span<const std::optional<RecordedChecksum>> checksums);

/// Describes the array of one .npy file: its part lies in file 0 of a FileSet that does not exist yet, behind the
/// header. `layout` must have one part; without it, the header's layout is used. Throws `mismatch` and `unsupported`,
/// naming the path.
StoredParts whole_array(const std::string& path, const NpyHeader& header, const std::optional<ArraySpec>& layout);

}  // namespace tranship
