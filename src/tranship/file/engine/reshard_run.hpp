// Private: One run of the engine from sources that are open to a target in its place: any number of arrays, with one
// budget of memory, one journal and one commit. The caller knows what their files are: reshard.cpp for one array,
// reshard_tensors.cpp for the tensors of a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tranship/file/commit/progress.hpp>
#include <tranship/file/reshard.hpp>
#include <tranship/file/store/new_parts.hpp>

namespace tranship {

/// What is read: each array, and all files that they lie in.
struct ReshardSources {
  std::span<const StoredParts> arrays;
  FileSet& files;
  /// Those of the files, by number, where they are known.
  std::span<const std::optional<RecordedChecksum>> checksums;
};

/// As of ReshardOptions.
struct ReshardRunOptions {
  Verify verify = Verify::no;
  Callback<void(const ReshardProgress&)> progress = {};
  Index memory_bytes = 0;
  int threads = 0;
  Index sync_interval_bytes = 0;
  AfterFailure after_failure = AfterFailure::keep_work;
};

/// What the format of the target adds to the run.
struct ReshardFormat {
  /// The manifest of a directory, given the checksum of each file, and what else lies beside the parts.
  FunctionRef<std::vector<TextFile>(std::span<const std::uint32_t>)> manifest;
  /// Opens the target where it was made, by its path, to be verified: the arrays in the order of the sources.
  FunctionRef<std::vector<StoredParts>(const std::string&)> reopen;
};

struct ReshardOutcome {
  Progress::Totals totals;
  Index bytes_read = 0;                  ///< of the sources, and of an intermediate
  std::vector<std::uint32_t> checksums;  ///< of the target's files
};

/// The memory that a run takes where none is asked for and so much is available: it is never refused.
Index default_memory_bytes(Index available_bytes) noexcept;
/// Throws `invalid_use` where the memory is too little or more than is available; fills in what no memory and no
/// threads mean.
ReshardRunOptions settled(ReshardRunOptions options);

/// Throws `invalid_use` where one of two paths lies in the other: replacing a directory removes all that is in it.
void check_apart(const std::string& source, const std::string& target);
/// Throws `invalid_use` where links lead round check_apart: a target that is a file of the source by another name, or a
/// file of the source that is a link to one in the target.
void check_links(const FileSet& source, const std::string& target);

/// Array n of the target is made of array n of the sources. `options` are settled. Throws as `reshard` does.
ReshardOutcome run_reshard(const ReshardSources& sources, NewParts& target, const ReshardRunOptions& options,
                           const ReshardFormat& format);

}  // namespace tranship
