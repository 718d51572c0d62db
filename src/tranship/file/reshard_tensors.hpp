// Resharding checkpoints: all tensors of safetensors files go from the layouts that they have to those that rules give
// them, in one run: one budget of memory, one commit. Everything about the source is checked before anything is
// written, and the target appears complete or not at all, whenever the process is killed or the power fails.
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
  std::string source = {};
  /// A .safetensors file, for layouts of one rank; or a directory: "rank-00000-of-00004.safetensors", ..., each with
  /// the local arrays of one rank under the tensors' names, and "manifest.json".
  std::string target = {};
  /// Every rule must match some tensor, and every tensor some rule.
  LayoutRules to = {};
  /// Shards instead of ranks: the directory holds "model-00001-of-00004.safetensors", ..., each with whole tensors of
  /// at most so many bytes together, or one larger tensor, in the order of the source; their index,
  /// "model.safetensors.index.json", as other programs read it; and "manifest.json". The rules must keep every tensor
  /// whole on one rank.
  std::optional<Index> shard_bytes_max = {};
  /// Whether the checksums of the source are checked first, and the target is read back and compared to the source
  /// before it is put in place.
  Verify verify = Verify::no;
  /// Called on the calling thread: before the first byte, as bytes move or every now and then, and when all is written.
  /// An Error `io` that it throws ends the work so that a later call may go on with it; anything else leaves nothing. A
  /// part is what one rank has of one tensor.
  Callback<void(const ReshardProgress&)> progress = {};
  /// Memory for what is on its way, of all threads together, as ReshardOptions::memory_bytes.
  Index memory_bytes = 0;
  /// 0: as many as CPUs that this process may run on, at most 8.
  int threads = 0;
  /// Bytes that are written between two entries in the journal. 0: the memory, or 256 MiB where that is more.
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

/// Does the work and returns when the target is complete and on the disk. Throws `mismatch` for a rule or a tensor that
/// nothing matches, naming it, and for layouts that do not fit their tensors; `bad_file`, `io`, `overflow`,
/// `unsupported`, `invalid_use` (a target that must not be replaced, overlaps the source, or is being written by
/// another run; too little memory), `no_memory` and, where verification fails, `internal`. After an `io` error what was
/// written may be kept beside the target, which the message says: the same call goes on with it.
TensorReshardReport reshard_tensors(const TensorReshardOptions& options);

struct TensorForecast {
  Index tensors = 0;
  Rank ranks = 0;  ///< or shards
  ReshardForecast work;
};

/// Checks all that `reshard_tensors` checks before it writes, but for the checksums of the source, and that no other
/// run is writing the target; writes nothing, and reads headers only. Throws the errors of these checks.
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
