// Detail: Cells, which names the stored cells that an access is about.
#pragma once

#include <cstdint>
#include <optional>

#include <tranship/memory/buffer.hpp>

namespace tranship {

enum class Cells : std::uint8_t {
  owned,
  interior,  ///< owned cells that no ghost of depth `depth` or less copies
  boundary,  ///< the other owned cells
  ghosts,    ///< stored cells, at most `depth` deep, that copy cells of other ranks or cells across a periodic edge
  stored,    ///< owned cells and ghosts
};
const char* name_of(Cells cells);

/// All ghosts, however deep. A ghost that lies k cells from the cells that its rank owns, in the dimension where it
/// lies farthest, has depth k. All ghosts of an indexed array have depth 1.
inline constexpr Index all_depths = -1;

/// The cells of a rank's part that an access is about, and where it takes place. All ranks name the same cells, depth
/// and region; each rank chooses its own device and stream.
struct ArrayAccess {
  Cells cells = Cells::owned;
  Index depth = all_depths;
  /// These global cells and the ghosts that copy them; for an indexed array, a region of ids. Empty: all cells.
  std::optional<Region> region;
  Stream* stream = nullptr;
  Device device = stream ? stream->device() : current_device();
};

/// The cells of a rank's part that can be read on the host.
struct HostCells {
  Lease lease;     ///< reads the cells that have a value; closed if no lease has been opened on the array
  Region missing;  ///< stored cells without a value: stale ghosts
};

/// Counts of what exchanges of ghosts have moved on this rank since the array, or the Ghosts object, was made.
struct GhostCounts {
  Index exchanges = 0;
  Index cells_received = 0;  ///< ghosts in a broadcast, owned cells in a reduction
  Index cells_sent = 0;
};

}  // namespace tranship
