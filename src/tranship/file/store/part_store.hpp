// Private: Stored arrays: one .npy file, or a directory of parts with its manifest. Opening one checks all of it.
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

/// A dense array somewhere in a file; which file, the FileSet says.
struct StoredPart {
  Index file = 0;
  Index offset_bytes = 0;
  StoredOrder order = {};
  Indices extents;
};

/// The elements of a part that lie from `elements` on.
StridedView view_of(const StoredPart& part, ElementType type, std::byte* elements);

/// The stretches of a box in the file of its part, in the order of the file: `f(offset in the file, offset in the box,
/// size)`, in bytes.
void for_each_stretch(const StoredPart& part, Index width, const Box& box, FunctionRef<void(Index, Index, Index)> f);

/// Cuts a box into boxes of no more cells than that (at least one) that follow each other in the elements of the box,
/// dense in an order of dimensions: `f(box, number of its first cell)`.
void for_each_piece(const Box& box, const Indices& order, Index cells_max, FunctionRef<void(const Box&, Index)> f);

/// An array in files: its layout, and where each part of it lies. Several may share one set of files.
struct StoredParts {
  ArraySpec spec;
  std::string descr;
  /// An array of 0 dimensions: its layout is of one element, the headers of its parts say ().
  bool is_scalar = false;
  std::shared_ptr<FileSet> files;
  std::vector<StoredPart> parts;  ///< by ordinal of the grid
  /// That of each file, by number, where it is known.
  std::vector<std::optional<RecordedChecksum>> checksums;
  /// What reads the parts where they are not dense in their files: then `parts` say their extents and the order in
  /// which they are best read, and nothing else.
  std::shared_ptr<const PartSource> source = {};

  const std::string& path_of(Index part) const { return files->path(parts[part].file); }
  /// Bytes of the elements of a part.
  Index part_bytes(Index part) const;
  /// Of all parts.
  Index bytes() const;
  /// The order of the largest part. Parts of one row or of no cells, which lie in any order, may say another one.
  StoredOrder order() const;
};

/// The layout of a plain .npy file: one part on rank 0, whole in every dimension (layout_extents). Throws `unsupported`
/// where there are too many of them.
ArraySpec whole_layout(const NpyHeader& header);

/// Throws `mismatch`, with both, where elements or extents of a layout are not those of the array.
void check_fits(const ArraySpec& array, const ArraySpec& layout);

/// Error `bad_file`: a directory says nothing of itself.
Error lacks_manifest(const std::string& directory);

/// Opens a .npy file or a directory, and checks that every part is there, is whole, and has the elements and the shape
/// that the layout says. `layout` must be what the path says of itself, its order included; a directory without a
/// manifest needs it, and a .npy file takes any of one part. Fails with `io`, `bad_file`, `unsupported`, `overflow` and
/// `mismatch`, naming the path.
Result<StoredParts> open_parts(const std::string& path, const std::optional<ArraySpec>& layout = std::nullopt);

/// Throws `bad_file` at the first file whose bytes are not those of its checksum, by number. Files without one are
/// passed over.
void check_checksums(const FileSet& files, std::span<const std::optional<RecordedChecksum>> checksums);

/// The array of one .npy file: its part lies in file 0 of a FileSet that is not there yet, behind the header. `layout`
/// has one part, or is what the header says. Throws `mismatch` and `unsupported`, naming the path.
StoredParts whole_array(const std::string& path, const NpyHeader& header, const std::optional<ArraySpec>& layout);

}  // namespace tranship
