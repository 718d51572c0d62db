// Private: Format, a way in which one array lies in files. One table says how each format is recognised, opened and
// written; no other code of this layer tests how a file name ends. For the tensors of a checkpoint see
// tensor_store.hpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tranship/file/reshard.hpp>
#include <tranship/file/store/new_arrays.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// An array that is read, as ReshardOptions describe it.
struct ArraySource {
  std::string path;
  std::optional<ArraySpec> layout = {};
  /// Set if the file has bare elements; `layout` then describes all of it.
  std::optional<RawForm> raw = {};
  /// The spelling of bare elements; empty if the layout determines it.
  std::string descr = {};
};

struct OpenArray {
  StoredParts array;
  /// Not 0 if the array is packed and has no place in a file yet; Format::unpack then makes a file of this size.
  Index unpacked_bytes = 0;
};

struct Format {
  /// The endings of the format's file names.
  std::span<const std::string_view> endings;
  /// Returns true if a path names a source of this format, by the file there or else by its name. Bare elements cannot
  /// be recognised; the caller names them.
  bool (*is_source)(const std::string& path);
  bool (*is_target)(const std::string& path);
  /// Returns the file or directory that a path names; for a member, its archive.
  std::string (*file_of)(const std::string& path);

  /// Returns the source's description of itself. Does not read the files of its parts.
  Result<StoredArray> (*inspect)(const std::string& path);
  /// Opens the source, and checks that it is complete and fits the given layout. A path that is_source() does not
  /// recognise is taken as the file itself, because a new file has a temporary name.
  Result<OpenArray> (*open)(const ArraySource& source);
  /// Unpacks a packed array into a nameless file in `folder`, which vanishes with its FileSet. Throws `bad_file` if the
  /// packed bytes do not have their checksum.
  void (*unpack)(const ArraySource& source, const std::string& folder, StoredParts& array);

  StagedKind kind;
  /// A function of replaceable.hpp.
  void (*check_replaceable)(const std::string& target);
  /// Returns the descr of a new array's elements in files of this format.
  std::string (*descr)(const std::string& descr);
  /// Describes the file of one part in a target of that name: the bytes around its elements.
  NewFile (*file)(const std::string& target, const NpyHeader& header, Index elements_bytes);
};

const Format& format_of(const ArraySource& source);
const Format& format_of_target(const std::string& target);
/// Returns the endings of the files that can be written: ".npy, .npz, .bin or .raw".
std::string written_endings();

}  // namespace tranship
