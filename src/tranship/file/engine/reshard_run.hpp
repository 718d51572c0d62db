// Private: run_reshard, one run of the engine from open sources to a target in its place: any number of arrays, with
// one budget of memory, one journal and one commit. The caller knows the formats of the files: reshard.cpp for one
// array, reshard_tensors.cpp for the tensors of a checkpoint.
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

/// The arrays that are read, and all files in which they lie.
struct ReshardSources {
  std::span<const StoredParts> arrays;
  FileSet& files;
  /// Checksums of the files, by number, where they are known.
  std::span<const std::optional<RecordedChecksum>> checksums;
};

/// See ReshardOptions.
struct ReshardRunOptions {
  Verify verify = Verify::no;
  Callback<void(const ReshardProgress&)> progress = {};
  Index memory_bytes = 0;
  int threads = 0;
  Index sync_interval_bytes = 0;
  AfterFailure after_failure = AfterFailure::keep_work;
};

/// The target's format, as far as the run needs it.
struct ReshardFormat {
  /// Returns the manifest of a directory and other files beside the parts, given the checksum of each file.
  FunctionRef<std::vector<TextFile>(std::span<const std::uint32_t>)> manifest;
  /// Opens the finished target at a path for verification. Returns its arrays in the order of the sources.
  FunctionRef<std::vector<StoredParts>(const std::string&)> reopen;
};

struct ReshardOutcome {
  Progress::Totals totals;
  Index bytes_read = 0;                  ///< from the sources and from an intermediate
  std::vector<std::uint32_t> checksums;  ///< by file of the target
};

/// Returns the memory of a run if the caller names none: never more than is available, unless that is below the
/// minimum.
Index default_memory_bytes(Index available_bytes) noexcept;
/// Replaces memory and threads of 0 by their defaults. Throws `invalid_use` if the memory is too little or more than is
/// available.
ReshardRunOptions settled(ReshardRunOptions options);

/// Throws `invalid_use` if one of two paths lies in the other: replacing a directory removes everything in it.
void check_apart(const std::string& source, const std::string& target);
/// Throws `invalid_use` if links bypass check_apart: the target is a file of the source by another name, or a file of
/// the source is a link to one in the target.
void check_links(const FileSet& source, const std::string& target);

/// Makes array n of the target from array n of the sources. `options` are settled. Throws as `reshard` does.
ReshardOutcome run_reshard(const ReshardSources& sources, NewParts& target, const ReshardRunOptions& options,
                           const ReshardFormat& format);

}  // namespace tranship
