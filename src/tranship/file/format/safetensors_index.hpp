// Private: The index of a sharded checkpoint, "model.safetensors.index.json": which file holds which tensor.
//
//   {"metadata": {"total_size": 2048}, "weight_map": {"a": "model-00001-of-00002.safetensors", ...}}
//
// An index is untrusted: a file must be a plain name beside the index. Whether the files hold the tensors is checked
// when they are read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/base/result.hpp>

namespace tranship {

inline constexpr char safetensors_index_name[] = "model.safetensors.index.json";
/// Longer indices are not read.
inline constexpr Index safetensors_index_bytes_max = 100'000'000;
/// Limit on the tensors of an index.
inline constexpr Index safetensors_index_tensors_max = 1'000'000;

struct SafetensorsIndex {
  struct Place {
    std::string tensor;
    std::string file;
    friend bool operator==(const Place&, const Place&) = default;
  };

  /// Bytes of the elements of all tensors, if the index states them.
  std::optional<Index> total_size_bytes;
  /// The rest of its metadata, by key: scalars as JSON, kept unchanged.
  std::vector<std::pair<std::string, std::string>> metadata;
  /// In the order of the index.
  std::vector<Place> tensors;

  /// Returns each file once, in the order of first appearance.
  std::vector<std::string> files() const;

  friend bool operator==(const SafetensorsIndex&, const SafetensorsIndex&) = default;
};

/// Returns the file name of a shard: "model-00002-of-00004.safetensors" for shard 1 of 4, because names count from 1.
std::string safetensors_shard_name(Index shard, Index shard_count);

/// Fails with `bad_file`, `unsupported` and `overflow`, each with a message of one printable line.
Result<SafetensorsIndex> parse_safetensors_index(std::string_view text);

/// Writes one key per line. parse_safetensors_index(format_safetensors_index(x)) == x. Throws `invalid_use` for an
/// index that parse_safetensors_index would refuse.
std::string format_safetensors_index(const SafetensorsIndex& index);

}  // namespace tranship
