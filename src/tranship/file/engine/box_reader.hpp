// Private: BoxReader, which assembles any box of a part in memory from a stored array: it clips the part's plan to the
// box and lets the array's PartSource read the rest. The box and the window of the scratch bound its memory.
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

/// Only one thread may use it.
class BoxReader {
 public:
  explicit BoxReader(Index window_bytes) : scratch_(window_bytes) {}

  ReadScratch& scratch() noexcept { return scratch_; }
  /// Returns memory for a block, valid until the next call.
  std::span<std::byte> block(Index size_bytes);

  /// Fills `target`, which has the extents of `box` and whose bytes are `bytes`, with the box of the local array of
  /// `plan`. Cells that receive nothing become zero. Returns the bytes that came from the source. Throws as
  /// FileSet::read does.
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
  // Kept between boxes, so that no memory is allocated: the entries that touch the box, by dimension, clipped to it;
  // and one combination of them.
  std::vector<std::vector<AxisEntry>> clipped_;
  TransferGroup one_;
};

}  // namespace tranship
