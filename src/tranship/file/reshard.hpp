// Reshard: an array in files goes from the layout that it has to the one that it shall have.
//
// Everything about the source is checked before anything is written, and the target appears complete or not at all,
// whenever the process is killed or the power fails. A directory of parts holds manifest.json and one .npy file for
// each rank, its local array. Files have no world: all calls are of one process, and block until they are done.
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

/// Bytes of elements that were written to the target's parts and to an intermediate, what an earlier run wrote
/// included; verification is not counted.
struct ReshardProgress {
  Index bytes_done = 0;
  Index bytes_total = 0;
  Index parts_done = 0;
  Index parts_total = 0;
};

enum class Verify : std::uint8_t { no, yes };

/// What becomes of what was written when an error of the surroundings ends the work.
enum class AfterFailure : std::uint8_t { keep_work, leave_nothing };

/// A file of bare elements, in this machine's byte order, behind so many bytes that are passed over.
struct RawForm {
  Index skip_bytes = 0;
};

struct ReshardOptions {
  /// A .npy file; a member of a .npz file, "data.npz:member"; or a directory of parts: with a manifest, or without one
  /// when `from` is given.
  std::string source = {};
  /// A directory; a .npy file when it ends in ".npy", or bare elements when it ends in ".bin" or ".raw": then `to` has
  /// one part.
  std::string target = {};
  /// Must be what the source says of itself, the order of its dimensions included.
  std::optional<ArraySpec> from = {};
  ArraySpec to;
  /// The source is a file of bare elements, of which `from` says everything.
  std::optional<RawForm> raw = {};
  /// Whether the checksums of the source are checked first, and the target is read back and compared to the source
  /// before it is put in place.
  Verify verify = Verify::no;
  /// Called on the calling thread: before the first byte, as bytes move or every now and then, and when all is written.
  /// An Error `io` that it throws ends the work so that a later call may go on with it; anything else leaves nothing.
  Callback<void(const ReshardProgress&)> progress = {};
  /// Memory for what is on its way, of all threads together: at least reshard_memory_min, and no more than is
  /// available. 0: 256 MiB, halved until it is available or the least. Beside it there are the layouts, the plans and
  /// the names of files, which grow with the number of parts, and with the ids of an indexed one.
  Index memory_bytes = 0;
  /// 0: as many as CPUs that this process may run on, at most 8. There are no more than the memory is enough for.
  int threads = 0;
  /// Bytes that are written between two entries in the journal: so much, and what is under way, a killed run loses at
  /// most. 0: the memory, or 256 MiB where that is more.
  Index sync_interval_bytes = 0;
  /// `leave_nothing` where no later call can go on with it.
  AfterFailure after_failure = AfterFailure::keep_work;
};

inline constexpr Index reshard_memory_min = Index(4) << 20;

struct ReshardReport {
  ArraySpec from;
  ArraySpec to;
  /// Of elements, by this run, from the source and from an intermediate, without verification. What two rounds need of
  /// the source counts twice.
  Index bytes_read = 0;
  Index bytes_written = 0;  ///< of elements of the target
  Index bytes_resumed = 0;  ///< those of them that an earlier run had written
  Index parts_written = 0;
  /// CRC-32 of each file, by ordinal of its part: what zlib.crc32 says of all its bytes.
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

/// Does the work and returns when the target is complete and on the disk. Costs at most `memory_bytes` beside the
/// plans, and the disk space of the target beside an old one. The source is read once, round by round, as far as the
/// memory allows; where rounds would read and write too little of each page, everything goes through an intermediate
/// beside the target, which costs as much disk space again and is gone when this returns (verification reads source and
/// target again). Two runs for one target at a time: the second is refused.
///
/// Elements keep their bytes: also those of the other byte order. Cells beyond an open edge become zero. Throws
/// `mismatch` (source, `from` and `to` do not agree), `bad_file`, `io`, `overflow`, `unsupported`, `invalid_use` (a
/// target that must not be replaced, overlaps the source, or is being written by another run; too little memory),
/// `no_memory` and, where verification fails, `internal`. The target is as it was then, but for an `io` error after it
/// was put in place. After an `io` error what was written may be kept beside the target, which the message says: the
/// same call goes on with it.
ReshardReport reshard(const ReshardOptions& options);

/// An array that is in no file: a function reads any box of it.
struct ReadableArray {
  ArraySpec spec;  ///< of one part, in row-major order
  /// Extents of the boxes that are best read whole, the first at cell 0: those of chunks. No box that is read crosses
  /// their borders, except for verification, and each is read once for every round that needs it.
  Indices chunk = {};
  /// Fills `target`, which has the extents of the box. Called by several threads at once; what it throws ends the work.
  Callback<void(const Box& box, const StridedView& target)> read = {};
};

/// The same as reshard() from such an array; `source`, `from` and `raw` of the options say nothing. No call goes on
/// with the work of an earlier one, for nothing says that the array is still the same: an error leaves nothing.
ReshardReport reshard_array(const ReadableArray& source, const ReshardOptions& options);

/// What a reshard would do and need.
struct ReshardForecast {
  /// Pairs of a part of the source and one of the target between which elements go; of tensors, pairs of files.
  Index messages = 0;
  /// A bound of what is read from disks, without verification: each stretch that is read with all of its first and last
  /// page, and those of each stretch that is written, which may be read back before another stretch is written to them.
  Index bytes_read = 0;
  Index bytes_written = 0;  ///< likewise
  Index parts = 0;          ///< of the target; of tensors, what each rank has of each
  Index files = 0;          ///< of the target, without its manifest
  Index memory_bytes = 0;
  int threads = 0;
  Index intermediate_bytes = 0;  ///< of the file that everything goes through, 0 where none is needed
  /// What is taken from the disk that holds the target, beside an old target, which is there until the new one is
  /// complete: all files of the target, its manifest and index, what is inflated
  /// first, and the intermediate included.
  Index disk_bytes = 0;
  std::optional<Index> disk_free_bytes = {};  ///< there; not without a target
};

struct ArrayForecast {
  ArraySpec from;
  ArraySpec to;
  ReshardForecast work;
};

/// Checks all that `reshard` checks before it writes, but for the checksums of the source, and that no other run is
/// writing the target; writes nothing, and reads headers only. An empty target stands for a new directory. Throws the
/// errors of these checks: `mismatch`, `bad_file`, `io`, `overflow`, `unsupported`, `invalid_use`.
ArrayForecast forecast_reshard(const ReshardOptions& options);

/// What a path holds.
struct StoredArray {
  /// For a plain .npy file: one part, whole in every dimension, its memory order reversed for Fortran order.
  ArraySpec spec;
  /// The element type as NumPy spells it ("<f8").
  std::string descr;
};

/// Reads the header of a .npy file or of a member of a .npz file, or the manifest of a directory; the files of its
/// parts are not looked at.
Result<StoredArray> inspect(const std::string& path);

}  // namespace tranship
