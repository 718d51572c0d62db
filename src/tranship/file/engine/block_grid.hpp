// Private: BlockGrid, a part cut into boxes that fit in memory, so that what is read and what is written both come in
// long stretches.
#pragma once

#include <tranship/base/box.hpp>

namespace tranship {

struct BlockGridOptions {
  Indices extents;
  /// Dimensions from slowest to fastest, of the part that is read and of the one that is written.
  Indices source_order;
  Indices target_order;
  Index cells_max = 1;
  /// Where the orders differ, runs of the target of so many cells are worth shorter ones of the source.
  Index target_run_wanted = 0;
};

/// Boxes of equal extents, but for the last ones, numbered in the order of the source, so that those that share pages
/// of it come soon after each other.
class BlockGrid {
 public:
  /// Where both orders agree, boxes are slabs: stretches of the target without a gap. Otherwise the box takes stretches
  /// of about the square root of its cells from both sides, as transposing in pieces always does; those of the target
  /// up to four times longer.
  explicit BlockGrid(const BlockGridOptions& options);

  Index count() const noexcept { return count_; }
  Box box(Index number) const;
  const Indices& box_extents() const noexcept { return box_; }

 private:
  Indices extents_;
  Indices order_;
  Indices box_;
  Indices counts_;  // of boxes, by dimension
  Index count_ = 0;
};

}  // namespace tranship
