// Private: NewArrays, what the files of a target are to be, for each format that is written. Values: nothing is made
// here. A target that would be a directory by a name like that of a file, "out.h5", is a mistyped file and refused with
// `invalid_use`; "out.h5/", and a directory that is there, are taken. An empty name stands for a directory that has
// none yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/file/commit/staging.hpp>
#include <tranship/file/format/tensor_manifest.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// One file: what stands in front of the elements and behind them, and how long all of it is.
struct NewFile {
  /// A checksum that the file says of itself: of all bytes from `begin` to the tail.
  struct InnerChecksum {
    Index begin = 0;
    /// Where it stands, little-endian in 4 bytes: offsets in the file, of its head or its tail.
    std::vector<Index> places;
  };

  std::string name;
  std::string head;
  Index size_bytes = 0;
  std::string tail = {};
  std::optional<InnerChecksum> inner = {};

  Index tail_offset_bytes() const { return size_bytes - static_cast<Index>(tail.size()); }
  /// Fills in what it says of itself, of elements that contribute `elements` to the checksum of all in front of the
  /// tail.
  void fill_in(std::uint32_t elements);
  /// The checksum of the whole file, whose elements contribute likewise.
  std::uint32_t checksum(std::uint32_t elements) const;
};

/// One file, or a directory of files beside a manifest. The parts of the arrays lie in these files, by number; their
/// FileSets are empty until there are files.
struct NewArrays {
  StagedKind kind = StagedKind::directory;
  std::vector<NewFile> files;
  std::vector<StoredParts> arrays;
  /// One of replaceable.hpp: throws where what stands at the target by now is not to be replaced.
  void (*check_replaceable)(const std::string& target) = nullptr;
};

/// What the headers of .npy files say beyond the layout.
struct NpyForm {
  std::string descr;
  bool is_scalar = false;  ///< as of StoredParts
};

/// One array whose elements are spelled so, in the format that the target's name says (formats.hpp). Fails with
/// `invalid_use` where the target must not be replaced (replaceable.hpp), or is one file and the layout has several
/// parts, and as stored_order does.
Result<NewArrays> new_array(const std::string& target, const ArraySpec& spec, const NpyForm& source);

/// The tensors of a manifest, whose files it names by rank: one safetensors file where the target's name ends in
/// ".safetensors", a directory otherwise. Fails with `invalid_use` where the target must not be replaced, or is one
/// file and there are several ranks, and with `unsupported` and `overflow`.
Result<NewArrays> new_tensors(const std::string& target, const TensorManifest& manifest);

}  // namespace tranship
