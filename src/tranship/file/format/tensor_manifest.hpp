// Private: TensorManifest, the description of a directory of tensors: one safetensors file per rank, with the tensors'
// local arrays under their full names, and the layouts of these.
//
//   {"tranship_tensors": 1, "metadata": {"format": "pt"},
//    "files": [{"rank": 0, "file": "rank-00000-of-00002.safetensors", "crc32": "8d0f2b17"}, ...],
//    "tensors": [{"name": "wte.weight", "dtype": "BF16", "shape": [64, 32],
//                 "layout": "bf16[64,32] @ 2x1 : block, whole"}, ...]}
//
// "shape" is the global shape; a scalar has [], and the layout of [1]. A manifest is untrusted: it is accepted only if
// it names a file for every rank, from 0 on, that a layout has.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tranship/file/format/manifest.hpp>

namespace tranship {

/// One tensor: its name (any text), its dtype as safetensors files spell it, and its global extents (empty for a
/// scalar).
struct TensorShape {
  std::string name;
  std::string dtype;
  Indices extents;
  std::vector<Index> opaque_shape = {};  ///< see SafetensorsEntry; `extents` then count bytes
  friend bool operator==(const TensorShape&, const TensorShape&) = default;
};

struct TensorManifest {
  struct File {
    std::string name;
    std::optional<std::uint32_t> checksum = {};
    friend bool operator==(const File&, const File&) = default;
  };
  struct Tensor {
    TensorShape shape;
    ArraySpec spec;
    friend bool operator==(const Tensor&, const Tensor&) = default;
  };

  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<File> files;  ///< by rank
  std::vector<Tensor> tensors;
  friend bool operator==(const TensorManifest&, const TensorManifest&) = default;
};

/// Returns the file name of a rank: "rank-00002-of-00004.safetensors". Ranks count from 0.
std::string rank_file_name(Rank rank, Rank ranks);

/// Returns the extents for a layout: a scalar counts as one element.
Indices layout_extents(const Indices& extents);
/// Returns the extents of a local array in a file: a scalar has none.
Indices stored_extents(const Indices& tensor, const Indices& local);

/// Returns true if every rank of a layout has all elements in their order.
bool keeps_whole(const ArraySpec& spec);

/// Returns the shape as safetensors files spell it: "64, 32".
std::string shape_text(const TensorShape& tensor);

/// Returns true if the text of a manifest.json is of this kind.
bool is_tensor_manifest(std::string_view text);

/// Throws `invalid_use` for names that JSON cannot hold.
std::string format_tensor_manifest(const TensorManifest& manifest);
/// parse_tensor_manifest(format_tensor_manifest(x)) == x. Fails as parse_manifest does.
Result<TensorManifest> parse_tensor_manifest(std::string_view text);

}  // namespace tranship
