// Private: Formats, the ways in which one array lies in files. One table says how each is recognised, opened and
// written; no other code of this layer asks how the name of a file ends. The tensors of a checkpoint: tensor_store.hpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <tranship/file/reshard.hpp>
#include <tranship/file/store/new_arrays.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// An array to be read, as ReshardOptions describe it.
struct ArraySource {
  std::string path;
  std::optional<ArraySpec> layout = {};
  /// The file has bare elements, about which `layout` says everything.
  std::optional<RawForm> raw = {};
  /// How bare elements are spelled; empty where the layout says that as well.
  std::string descr = {};
};

struct OpenArray {
  StoredParts array;
  /// Not 0: the array is packed, and its parts lie nowhere yet. Format::unpack makes a file of so many bytes.
  Index unpacked_bytes = 0;
};

struct Format {
  /// How the names of its files end.
  std::span<const std::string_view> endings;
  /// Whether a path means a source of this format: by what stands there, or else by its name. Bare elements look like
  /// nothing and are named by the caller.
  bool (*is_source)(const std::string& path);
  bool (*is_target)(const std::string& path);
  /// The file or the directory that a path means: the archive of a member.
  std::string (*file_of)(const std::string& path);

  /// What the source says of itself; the files of its parts are not looked at.
  Result<StoredArray> (*inspect)(const std::string& path);
  /// Opens the source and checks that all of it is there and fits the layout that is given. A path that is_source()
  /// does not recognise is taken for the file itself, which a new file under another name is.
  Result<OpenArray> (*open)(const ArraySource& source);
  /// Unpacks an array that was opened packed into a file without a name in `folder`, which is gone with its FileSet.
  /// Throws `bad_file` where what is packed is not what its checksum says.
  void (*unpack)(const ArraySource& source, const std::string& folder, StoredParts& array);

  StagedKind kind;
  /// One of replaceable.hpp.
  void (*check_replaceable)(const std::string& target);
  /// Spells the elements of a new array as its files do.
  std::string (*descr)(const std::string& descr);
  /// The file of one part in a target of that name: what stands around the elements.
  NewFile (*file)(const std::string& target, const NpyHeader& header, Index elements_bytes);
};

const Format& format_of(const ArraySource& source);
const Format& format_of_target(const std::string& target);
/// The endings of the files that can be written: ".npy, .npz, .bin or .raw".
std::string written_endings();

}  // namespace tranship
