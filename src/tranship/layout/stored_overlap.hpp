// Private: Whether an array stores cells that its parts do not own.
#pragma once

#include <tranship/layout/distribution.hpp>

namespace tranship {

/// False where no part has overlap, whatever its size. The ghosts of indexed arrays are lists, which count as overlap
/// even where they are empty.
inline bool stores_overlap(const Distribution& array) {
  if (array.is_indexed()) return true;
  for (int d = 0; d < array.dims(); ++d)
    if (const Overlap& overlap = array.axis(d).partition().overlap; overlap.left.width + overlap.right.width > 0)
      return true;
  return false;
}

}  // namespace tranship
