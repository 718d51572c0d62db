// Private: round_shape, which decides how much of the array one round of the engine moves in each dimension. A round
// reads the cells that it needs of the source once and writes them to all parts of the target, so its shape decides how
// long the stretches are that are read and written.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Bytes of a page of the page cache, which is read and written as a whole.
inline constexpr Index page_bytes = 4096;

/// How the parts of one side lie in their files.
struct StoredSide {
  /// Dimensions from slowest to fastest.
  Indices order;
  /// Extents of the largest part; in a file of chunks, of a chunk.
  Indices part_extents;
  /// Number of parts along each dimension.
  Indices parts;
  /// 1 for dimensions whose cells are dealt to the parts in turn, so that every interval meets all parts.
  Indices dealt;
};

struct RoundShapeOptions {
  Indices extents;  ///< of the array
  StoredSide source;
  StoredSide target;
  Index width = 1;  ///< bytes of an element
  Index cells_max = 1;
  /// Number of files that stay open from one round to the next.
  Index open_max = 256;
  /// Rounds of smaller extents read data again that another round has read: in a file of chunks, the extents of a
  /// chunk.
  Indices extents_min = {};
};

/// Returns the extents of a round: at most `cells_max` cells if `extents_min` allows it, and no more than pays.
/// Stretches grow on the side where that saves most, counted in bytes that could be moved instead: a stretch costs a
/// call and pages that are moved in part; a part of a round costs a block and perhaps an open file.
Indices round_shape(const RoundShapeOptions& options);

/// Returns the cost of rounds of these extents beyond the bytes that they move, as a fraction of those.
double round_overhead(const RoundShapeOptions& options, const Indices& shape);

}  // namespace tranship
