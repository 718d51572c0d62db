// Resharding checkpoints: all tensors of safetensors files go from the layouts that they have to those that rules give
// them, in one run: one budget of memory, one commit. What reshard.hpp says of crashes and errors holds here too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <tranship/file/reshard.hpp>
#include <tranship/file/rules/layout_rules.hpp>

namespace tranship {

struct TensorReshardOptions {
  /// A .safetensors file; an index, "*.safetensors.index.json"; a directory with one index, one .safetensors file, or
  /// all shards of one checkpoint; or a directory that reshard_tensors has made.
  std::string source;
  /// A .safetensors file, for layouts of one rank; or a directory: "rank-00000-of-00004.safetensors", ..., each with
  /// the local arrays of one rank under the tensors' names, and "manifest.json" (tensor_manifest.hpp).
  std::string target;
  /// Every rule must match some tensor, and every tensor some rule.
  LayoutRules to;
  /// Shards instead of ranks: the directory holds "model-00001-of-00004.safetensors", ..., each with whole tensors of
  /// at most so many bytes together, or one larger tensor, in the order of the source; their index,
  /// "model.safetensors.index.json", as other programs read it; and "manifest.json". The rules must keep every tensor
  /// whole on one rank.
  std::optional<Index> shard_bytes_max = {};
  Verify verify = Verify::no;
  /// This and what follows: as of ReshardOptions. A part is what one rank has of one tensor.
  std::optional<FunctionRef<void(const ReshardProgress&)>> progress = {};
  Index memory_bytes = Index(256) << 20;
  int threads = 0;
  Index sync_interval_bytes = 0;
};

struct TensorReshardReport {
  Index tensors = 0;
  Index bytes_read = 0;
  Index bytes_written = 0;
  Index bytes_resumed = 0;
  /// By rank or shard.
  std::vector<ReshardReport::Checksum> checksums;
  Index memory_bytes = 0;
  int threads = 0;
  std::int64_t duration_ns = 0;
  Verify verified = Verify::no;
};

/// Whether a source is for reshard_tensors rather than for reshard.
bool names_tensors(const std::string& source);

/// Throws as reshard does, and `mismatch` for a rule or a tensor that nothing matches, naming it.
TensorReshardReport reshard_tensors(const TensorReshardOptions& options);

struct TensorForecast {
  Index tensors = 0;
  Rank ranks = 0;  ///< or shards
  ReshardForecast work;
};

/// As forecast_reshard.
TensorForecast forecast_tensors(const TensorReshardOptions& options);

/// What a path holds of one tensor.
struct TensorDescription {
  std::string name;
  std::string dtype;
  std::vector<Index> shape;  ///< empty for a scalar
  ArraySpec spec;            ///< of a scalar: of one element; of what cannot be cut (TensorForm): of its bytes
};

/// All tensors of a source. Reads the headers of its files.
Result<std::vector<TensorDescription>> inspect_tensors(const std::string& source);

}  // namespace tranship
