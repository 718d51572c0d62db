// Private: PartSource, which reads the elements of stored parts. A format whose parts are dense arrays in files needs
// no source of its own (strided_source.hpp); a format that keeps them in chunks implements read().
//
// The engine needs products of runs and lists of cells, not only boxes: a block of a cyclic layout takes many short
// stretches from a part, and a box for each would cost a call for each. So there are three ways to read. Two have
// defaults that read boxes, so a format need only implement the third. A source that reads runs better than box by box
// (rows of a file, straight to their targets) overrides the defaults.
#pragma once

#include <tranship/base/box.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/file/store/read_scratch.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Reads one array. Parts are named by ordinal, their cells by local indices. Threads may read concurrently, each with
/// a scratch of its own. All functions throw as FileSet::read does.
class PartSource {
 public:
  virtual ~PartSource() = default;

  virtual Indices extents(Index part) const = 0;
  /// Returns the extents of the boxes that should be read whole, such as chunks; the first box begins at cell 0. The
  /// defaults read each box once per call if it fits in the window, or needs none.
  virtual Indices grain(Index part) const { return extents(part); }

  /// Reads a box of a part to memory of its extents, with the elements of the array. A source that keeps the defaults
  /// of the other two functions must not touch the window of the scratch here, because the window may be the target.
  virtual void read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const = 0;

  /// Reads the cells that a group of one combination reads from the part, and writes them where the group does.
  virtual void read_runs(Index part, const TransferGroup& cells, const StridedView& target, ReadScratch& scratch) const;

  /// Reads listed cells, each with the box `trailing` of its trailing dimensions, which has `cells.inner` cells. Cells
  /// count through the leading dimensions, as in every IndexedTransfer.
  virtual void read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                           ReadScratch& scratch) const;
};

/// Returns a group of the cells of a box, which are written from cell 0 on.
TransferGroup cells_of(const Box& box);

/// Returns a layout that is reduced to a box of the trailing dimensions.
SlotLayout narrowed(SlotLayout layout, const Box& trailing);

}  // namespace tranship
