// reshard(): moves an array in files from its present layout to another one.
//
// Everything about the source is checked before anything is written. The target appears complete or not at all, even if
// the process is killed or the power fails. A directory of parts holds manifest.json and one .npy file per rank with
// its local array. Files have no world: each call concerns one process and returns when its work is done.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/callback.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Bytes of elements that have been written to the target's parts and to an intermediate, including those that an
/// earlier run wrote; verification does not count.
struct ReshardProgress {
  Index bytes_done = 0;
  Index bytes_total = 0;
  Index parts_done = 0;
  Index parts_total = 0;
};

enum class Verify : std::uint8_t { no, yes };

/// Says whether finished blocks are kept for a later call when an `io` error, such as a full disk, ends the work.
enum class AfterFailure : std::uint8_t { keep_work, leave_nothing };

/// A file of bare elements in this machine's byte order, which begin after `skip_bytes`.
struct RawForm {
  Index skip_bytes = 0;
};

struct ReshardOptions {
  /// A .npy file; a member of a .npz file, "data.npz:member"; or a directory of parts, with a manifest, or without one
  /// if `from` is given.
  std::string source = {};
  /// A directory, or one file, for which `to` must have one part: a .npy file if the name ends in ".npy", a .npz file
  /// if it ends in ".npz" or names a member, bare elements if it ends in ".bin" or ".raw".
  std::string target = {};
  /// If given, must equal the layout that the source states, including the order of its dimensions.
  std::optional<ArraySpec> from = {};
  ArraySpec to;
  /// Set if the source is a file of bare elements; `from` then describes all of it.
  std::optional<RawForm> raw = {};
  /// With `yes`, checks the checksums of the source first, and compares the target with the source before the target is
  /// put in place.
  Verify verify = Verify::no;
  /// Called on the calling thread: before the first byte, repeatedly while bytes move, and when all is written. If it
  /// throws an Error `io`, the work ends and a later call may continue it; any other exception leaves nothing behind.
  Callback<void(const ReshardProgress&)> progress = {};
  /// Memory for data in flight, for all threads together: at least reshard_memory_min, at most what is available. 0:
  /// 256 MiB, halved until it is available or the minimum is reached. Layouts, plans and file names take memory
  /// beside it, which grows with the number of parts, and with the ids of an indexed layout.
  Index memory_bytes = 0;
  /// 0: the number of CPUs that this process may run on, at most 8. Limited by the memory.
  int threads = 0;
  /// Bytes that are written between two entries in the journal. A killed run loses at most these and the blocks in
  /// flight. 0: `memory_bytes`, or 256 MiB if that is more.
  Index sync_interval_bytes = 0;
  /// Use `leave_nothing` if no later call can continue the work.
  AfterFailure after_failure = AfterFailure::keep_work;
};

inline constexpr Index reshard_memory_min = Index(4) << 20;

struct ReshardReport {
  ArraySpec from;
  ArraySpec to;
  /// Bytes of elements that this run has read, from the source and from an intermediate, without verification. Bytes of
  /// the source that two rounds need count twice.
  Index bytes_read = 0;
  Index bytes_written = 0;  ///< bytes of elements of the target
  Index bytes_resumed = 0;  ///< those of bytes_written that an earlier run had written
  Index parts_written = 0;
  /// CRC-32 of all bytes of each file, as zlib.crc32 computes it, by ordinal of its part.
  struct Checksum {
    std::string file;
    std::uint32_t crc32 = 0;
  };
  std::vector<Checksum> checksums;
  Index memory_bytes = 0;
  int threads = 0;
  std::int64_t duration_ns = 0;
  Verify verified = Verify::no;
};

/// Does the work, and returns when the target is complete and on the disk. Uses at most `memory_bytes` beside the
/// plans, and disk space for the target beside an old target. Reads the source once, round by round, as far as the
/// memory allows. If rounds would read and write too little of each page, everything goes through an intermediate
/// beside the target, which takes as much disk space again and is removed before this returns. Verification reads
/// source and target again. A second run for the same target at the same time is refused.
///
/// Elements keep their bytes, including those of the other byte order. Cells beyond an open edge become zero. Throws
/// `mismatch` (source, `from` and `to` do not agree), `bad_file`, `io`, `overflow`, `unsupported`, `invalid_use` (a
/// target that must not be replaced, overlaps the source, or is being written by another run; too little memory),
/// `no_memory` and, when verification fails, `internal`. The target is then unchanged, except after an `io` error that
/// occurs once it is in place. After an `io` error, finished blocks may be kept beside the target; the message says so,
/// and the same call continues the work.
ReshardReport reshard(const ReshardOptions& options);

/// An array that is not in a file: a function reads any box of it.
struct ReadableArray {
  ArraySpec spec;  ///< layout of one part, in row-major order
  /// Extents of the boxes that should be read whole, such as chunks; the first box begins at cell 0. No read crosses
  /// the borders of these boxes, except for verification. Each box is read once for every round that needs it.
  Indices chunk = {};
  /// Fills `target`, which has the extents of the box. Several threads call it at once. An exception ends the work.
  Callback<void(const Box& box, const StridedView& target)> read = {};
};

/// Does what reshard() does, with such an array as source; `source`, `from` and `raw` of the options are ignored. An
/// error leaves nothing behind, and no call continues an earlier one, because the array may have changed in between.
ReshardReport reshard_array(const ReadableArray& source, const ReshardOptions& options);

/// The work and the resources of a reshard, as far as they are known before it runs.
struct ReshardForecast {
  /// Pairs of a part of the source and a part of the target that share elements; for tensors, pairs of files.
  Index messages = 0;
  /// Upper bound on the bytes read from disks, without verification. Each stretch that is read counts with its whole
  /// first and last page, and so does each stretch that is written, because the system may read these pages back.
  Index bytes_read = 0;
  Index bytes_written = 0;  ///< upper bound on the bytes written
  Index parts = 0;          ///< parts of the target; for tensors, each rank's part of each tensor counts
  Index files = 0;          ///< files of the target, without its manifest
  Index memory_bytes = 0;
  int threads = 0;
  Index intermediate_bytes = 0;  ///< size of the intermediate; 0 if none is needed
  /// Space that the run takes on the target's disk: all files of the target with manifest and index, members that are
  /// inflated first, and the intermediate. An old target, which stays until the new one is complete, comes on top.
  Index disk_bytes = 0;
  std::optional<Index> disk_free_bytes = {};  ///< free space on that disk; empty without a target
};

struct ArrayForecast {
  ArraySpec from;
  ArraySpec to;
  ReshardForecast work;
};

/// Makes all checks that `reshard` makes before it writes, except those of the source's checksums and for another run
/// that is writing the target. Writes nothing and reads headers only. An empty target stands for a new directory.
/// Throws the errors of these checks: `mismatch`, `bad_file`, `io`, `overflow`, `unsupported`, `invalid_use`.
ArrayForecast forecast_reshard(const ReshardOptions& options);

/// The description of a stored array.
struct StoredArray {
  /// For a plain .npy file: one part, whole in every dimension, its memory order reversed for Fortran order.
  ArraySpec spec;
  /// The element type as NumPy spells it ("<f8").
  std::string descr;
};

/// Reads the header of a .npy file or of a member of a .npz file, or the manifest of a directory. Does not read the
/// files of the parts.
Result<StoredArray> inspect(const std::string& path);

}  // namespace tranship
