// Private: PartSource, where the elements of stored parts come from. A format whose parts are dense arrays in files
// needs no source of its own (strided_source.hpp); one that keeps them in chunks implements read().
//
// The engine wants products of runs and lists of cells, not boxes: what one block of a cyclic layout takes from a part
// is many short stretches, and a box for each of them would be a call for each of them. So there are three ways to
// read. Two of them have a default that reads boxes, which is all that a format must know; a source that reads runs
// better than box by box (from rows of a file, straight to where they belong) does so itself.
#pragma once

#include <tranship/base/box.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/file/store/read_scratch.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Of one array. Parts are named by ordinal, their cells by local indices. Threads may read at once, each with a
/// scratch of its own. All throw as FileSet::read.
class PartSource {
 public:
  virtual ~PartSource() = default;

  virtual Indices extents(Index part) const = 0;
  /// The extents of the boxes that are best read whole, of which the first begins at cell 0: those of chunks. The
  /// defaults read each of them once for a call, if it fits in the window or needs none.
  virtual Indices grain(Index part) const { return extents(part); }

  /// Reads a box of a part to memory of its extents, which has the elements of the array. A source that leaves the
  /// other two functions as they are does not touch the window of the scratch here: it may be the target.
  virtual void read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const = 0;

  /// Reads the cells that a group of one combination reads from the part, to where it writes them.
  virtual void read_runs(Index part, const TransferGroup& cells, const StridedView& target, ReadScratch& scratch) const;

  /// Reads cells that are listed, each with the box `trailing` of its trailing dimensions, whose cells are
  /// `cells.inner`. The leading dimensions are counted through as in every IndexedTransfer.
  virtual void read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                           ReadScratch& scratch) const;
};

/// The cells of a box, to be written from cell 0 on.
TransferGroup cells_of(const Box& box);

/// A layout of which only a box of the trailing dimensions is left.
SlotLayout narrowed(SlotLayout layout, const Box& trailing);

}  // namespace tranship
