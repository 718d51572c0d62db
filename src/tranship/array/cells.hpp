// Detail: Cells, which of the cells that ranks store an access is about.
#pragma once

#include <cstdint>
#include <optional>

#include <tranship/memory/buffer.hpp>

namespace tranship {

enum class Cells : std::uint8_t {
  owned,
  interior,  ///< owned cells of which no rank has ghosts as deep as `depth`
  boundary,  ///< the other owned cells
  ghosts,    ///< stored cells that stand for cells of other ranks, or for cells across a periodic edge; at most `depth`
             ///< deep
  stored,    ///< owned cells and ghosts
};
const char* name_of(Cells cells);

/// How deep ghosts are counted: a ghost that lies k cells from what its rank owns, in the dimension where it lies
/// farthest, has depth k. Those of an indexed array all have depth 1.
inline constexpr Index all_depths = -1;

/// What a rank's access to its part of an array is about. All ranks name the same cells, depth and region; device and
/// stream are each rank's own.
struct ArrayAccess {
  Cells cells = Cells::owned;
  Index depth = all_depths;
  /// Only these global cells, and ghosts that stand for them; of an indexed array a region of ids. Empty: all.
  std::optional<Region> region;
  Stream* stream = nullptr;
  Device device = stream ? stream->device() : current_device();
};

/// A rank's part as the host shows it.
struct HostCells {
  Lease lease;     ///< to read what has a value; closed where no lease has been opened on the array
  Region missing;  ///< stored cells that have none: ghosts that are stale
};

/// What exchanges of ghosts have moved on this rank since the array, or the Ghosts, was made.
struct GhostCounts {
  Index exchanges = 0;
  Index cells_received = 0;  ///< ghosts in a broadcast, owned cells in a reduction
  Index cells_sent = 0;
};

}  // namespace tranship
