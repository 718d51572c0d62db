// Reshard: an array in files goes from the layout that it has to the one that it shall have.
//
// Everything about the source is checked before anything is written, and the target appears complete or not at all.
// Files hold what part_store.hpp says; the moves are those of plan_redistribution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tranship/base/function_ref.hpp>
#include <tranship/layout/distribution.hpp>

namespace tranship {

/// Bytes of elements, of the target's parts; verification is not counted.
struct ReshardProgress {
  Index bytes_done = 0;
  Index bytes_total = 0;
  Index parts_done = 0;
  Index parts_total = 0;
};

enum class Verify : std::uint8_t { no, yes };

struct ReshardOptions {
  /// A .npy file, or a directory of parts: with a manifest, or without one when `from` is given.
  std::string source;
  /// A directory, or a single .npy file when it ends in ".npy"; then `to` has one part.
  std::string target;
  /// Must be what the source says of itself.
  std::optional<ArraySpec> from;
  ArraySpec to;
  /// Whether the target is read back and compared to the source before it is put in place.
  Verify verify = Verify::no;
  /// Called before the first byte, as bytes move, and after each part.
  std::optional<FunctionRef<void(const ReshardProgress&)>> progress;
};

struct ReshardReport {
  ArraySpec from;
  ArraySpec to;
  Index bytes_read = 0;     ///< of elements, without verification
  Index bytes_written = 0;  ///< of elements
  Index parts_written = 0;
  std::int64_t duration_ns = 0;
  Verify verified = Verify::no;
};

/// Elements keep their bytes: also those of the other byte order. Cells beyond an open edge become zero. Throws
/// `mismatch` (source, `from` and `to` do not agree), `bad_file`, `io`, `overflow`, `unsupported`, `invalid_use` (a
/// target that must not be replaced, or that overlaps the source), `no_memory` and, where verification fails,
/// `internal`. Nothing has changed then, but for an `io` error after the target was put in place.
ReshardReport reshard(const ReshardOptions& options);

/// What a path holds.
struct StoredArray {
  /// Of a plain .npy file: one part, whole in every dimension, its memory order reversed for Fortran order.
  ArraySpec spec;
  /// The element type as NumPy spells it ("<f8").
  std::string descr;
};

/// Reads the header of a .npy file or the manifest of a directory; the files of its parts are not looked at.
Result<StoredArray> inspect(const std::string& path);

}  // namespace tranship
