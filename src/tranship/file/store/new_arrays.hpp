// Private: NewArrays, the description of a target's files for each format that is written. These are values; nothing is
// made here. A target that would be a new directory but is named like a file, "out.h5", is probably mistyped and
// refused with `invalid_use`; "out.h5/" and an existing directory are accepted. An empty name stands for a directory
// that has no name yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/file/commit/staging.hpp>
#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// One file: the bytes before and after the elements, and its whole length.
struct NewFile {
  /// A checksum that the file contains: of all bytes from `begin` to the tail.
  struct InnerChecksum {
    Index begin = 0;
    /// Offsets in the file of its 4 bytes, little-endian, in the head or in the tail.
    std::vector<Index> places;
  };

  std::string name;
  std::string head;
  Index size_bytes = 0;
  std::string tail = {};
  std::optional<InnerChecksum> inner = {};

  Index tail_offset_bytes() const { return size_bytes - static_cast<Index>(tail.size()); }
  /// Fills in the file's own checksum. `elements` is the contribution of the elements to the checksum of all bytes
  /// before the tail.
  void fill_in(std::uint32_t elements);
  /// Returns the checksum of the whole file; `elements` as above.
  std::uint32_t checksum(std::uint32_t elements) const;
};

/// One file, or a directory of files beside a manifest. The parts of the arrays lie in these files, by number. The
/// arrays have no FileSet until the files exist.
struct NewArrays {
  StagedKind kind = StagedKind::directory;
  std::vector<NewFile> files;
  std::vector<StoredParts> arrays;
  /// A function of replaceable.hpp: throws if what exists at the target by now must not be replaced.
  void (*check_replaceable)(const std::string& target) = nullptr;
};

/// The content of .npy headers beyond the layout.
struct NpyForm {
  std::string descr;
  bool is_scalar = false;  ///< see StoredParts
};

/// Describes one array with elements of this spelling, in the format that the target's name implies (formats.hpp).
/// Fails with `invalid_use` if the target must not be replaced (replaceable.hpp), or is one file and the layout has
/// several parts, and as stored_order does.
Result<NewArrays> new_array(const std::string& target, const ArraySpec& spec, const NpyForm& source);

/// Describes the tensors of a manifest, which names the files by rank: one safetensors file if the target's name ends
/// in ".safetensors", otherwise a directory. Fails with `invalid_use` if the target must not be replaced, or is one
/// file and there are several ranks, and with `unsupported` and `overflow`.
Result<NewArrays> new_tensors(const std::string& target, const TensorManifest& manifest);

}  // namespace tranship
