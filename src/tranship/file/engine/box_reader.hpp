// Private: BoxReader, any box of a part, assembled in memory out of a stored array: it clips the part's plan to the box
// and has the array's PartSource read what is left. Memory is bounded by the box and by the window of the scratch.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/store/part_source.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// For one thread.
class BoxReader {
 public:
  explicit BoxReader(Index window_bytes) : scratch_(window_bytes) {}

  ReadScratch& scratch() noexcept { return scratch_; }
  /// Memory for a block, until the next call.
  std::span<std::byte> block(Index size_bytes);

  /// Fills `target`, whose extents are those of `box`, and whose bytes `bytes` are, with the box of the local array
  /// that `plan` is of; cells that nothing is received for become zero. Returns the bytes that came from the source.
  /// Throws as FileSet::read.
  Index read(const PartSource& source, const PartPlan& plan, const Box& box, const StridedView& target,
             std::span<std::byte> bytes);

 private:
  Index clip_group(const TransferGroup& group, const std::vector<std::vector<EntryReach>>& reaches, const Box& box);
  void read_group(const PartSource& source, const TransferPlan& plan, const TransferGroup& group,
                  const StridedView& target);
  Index read_listed(const PartSource& source, const PartPlan& plan, const IndexedTransfer& list, const Box& box,
                    const StridedView& target);

  ReadScratch scratch_;
  std::unique_ptr<std::byte[]> block_;
  Index block_bytes_ = 0;
  // Kept between boxes, so that no memory is asked for: by dimension, the entries that touch the box, clipped to it;
  // one combination of them.
  std::vector<std::vector<AxisEntry>> clipped_;
  TransferGroup one_;
};

}  // namespace tranship
