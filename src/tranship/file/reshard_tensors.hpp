// reshard_tensors(): reshards checkpoints. All tensors of safetensors files move from their layouts to those that rules
// give them, in one run with one memory budget and one commit. Everything about the source is checked before anything
// is written. The target appears complete or not at all, even if the process is killed or the power fails.
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
  /// A .safetensors file, for layouts of one rank; or a directory of "rank-00000-of-00004.safetensors", ..., each with
  /// the local arrays of one rank under the tensors' names, and "manifest.json".
  std::string target = {};
  /// Every rule must match at least one tensor, and every tensor at least one rule.
  LayoutRules to = {};
  /// If given, the target has shards instead of ranks: the directory holds "model-00001-of-00004.safetensors", ...,
  /// each with whole tensors of at most this size together, or one larger tensor, in the order of the source; their
  /// index, "model.safetensors.index.json", which other programs read; and "manifest.json". The rules must keep every
  /// tensor whole on one rank.
  std::optional<Index> shard_bytes_max = {};
  /// With `yes`, checks the checksums of the source first, and compares the target with the source before the target is
  /// put in place.
  Verify verify = Verify::no;
  /// Called on the calling thread: before the first byte, repeatedly while bytes move, and when all is written. If it
  /// throws an Error `io`, the work ends and a later call may continue it; any other exception leaves nothing behind. A
  /// part in the progress is one rank's part of one tensor.
  Callback<void(const ReshardProgress&)> progress = {};
  /// Memory for data in flight, for all threads together; see ReshardOptions::memory_bytes.
  Index memory_bytes = 0;
  /// 0: the number of CPUs that this process may run on, at most 8. Limited by the memory.
  int threads = 0;
  /// Bytes that are written between two entries in the journal. 0: `memory_bytes`, or 256 MiB if that is more.
  Index sync_interval_bytes = 0;
};

struct TensorReshardReport {
  Index tensors = 0;
  Index bytes_read = 0;
  Index bytes_written = 0;
  Index bytes_resumed = 0;
  /// By rank, or by shard.
  std::vector<ReshardReport::Checksum> checksums;
  Index memory_bytes = 0;
  int threads = 0;
  std::int64_t duration_ns = 0;
  Verify verified = Verify::no;
};

/// Returns true when a source is one for reshard_tensors and not for reshard.
bool names_tensors(const std::string& source);

/// Does the work, and returns when the target is complete and on the disk. Throws `mismatch` for a rule that matches no
/// tensor and for a tensor that matches no rule, naming it, and for layouts that do not fit their tensors; `bad_file`,
/// `io`, `overflow`, `unsupported`, `invalid_use` (a target that must not be replaced, overlaps the source, or is being
/// written by another run; too little memory), `no_memory` and, when verification fails, `internal`. After an `io`
/// error, finished blocks may be kept beside the target; the message says so, and the same call continues the work.
TensorReshardReport reshard_tensors(const TensorReshardOptions& options);

struct TensorForecast {
  Index tensors = 0;
  Rank ranks = 0;  ///< ranks or shards
  ReshardForecast work;
};

/// Makes all checks that `reshard_tensors` makes before it writes, except those of the source's checksums and for
/// another run that is writing the target. Writes nothing and reads headers only. Throws the errors of these checks.
TensorForecast forecast_tensors(const TensorReshardOptions& options);

/// The description of a stored tensor.
struct TensorDescription {
  std::string name;
  std::string dtype;
  std::vector<Index> shape;  ///< empty for a scalar
  ArraySpec spec;            ///< for a scalar, of one element; for a tensor that cannot be cut (TensorForm), of bytes
};

/// Returns all tensors of a source. Reads the headers of its files.
Result<std::vector<TensorDescription>> inspect_tensors(const std::string& source);

}  // namespace tranship
