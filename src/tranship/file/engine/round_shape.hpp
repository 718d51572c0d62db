// Private: RoundShape, how much of the array one round of the engine moves, in each dimension. A round reads what it
// needs of the source once and writes it to all parts of the target, so its shape decides how long the stretches are
// that are read and written.
#pragma once

#include <vector>

#include <tranship/base/index.hpp>

namespace tranship {

/// Of the page cache: what is read or written in part is read as a whole.
inline constexpr Index page_bytes = 4096;

/// How the parts of one side lie in their files.
struct StoredSide {
  /// Dimensions from slowest to fastest.
  Indices order;
  /// Extents of the largest part: of a file of chunks, of a chunk.
  Indices part_extents;
  /// Parts along each dimension.
  Indices parts;
  /// 1 where the cells of a dimension are dealt to the parts in turn, so that an interval meets all of them.
  Indices dealt;
};

struct RoundShapeOptions {
  Indices extents;  ///< of the array
  StoredSide source;
  StoredSide target;
  Index width = 1;  ///< bytes of an element
  Index cells_max = 1;
  /// Files that stay open from one round to the next.
  Index open_max = 256;
  /// Below this extent, what is read is read again by another round: of a file of chunks, those of a chunk.
  Indices extents_min = {};
};

/// The extents of a round: at most `cells_max` cells where `extents_min` allows it, and no more than pays. Stretches
/// grow on the side where that saves most, counted in bytes that could be moved instead: a stretch costs a call and
/// pages that are moved in part, a part of a round costs a block and perhaps an open file.
Indices round_shape(const RoundShapeOptions& options);

/// What rounds of these extents cost beyond the bytes that they move, as a fraction of those.
double round_overhead(const RoundShapeOptions& options, const Indices& shape);

}  // namespace tranship
