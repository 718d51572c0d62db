// BoxReader: any box of a part, assembled in memory out of a stored array. Memory is bounded by the box and by the
// window that the reader is made with; the source is read in pieces as long as the layouts allow. What is too short to
// be read is taken from what FileSet::map gives.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/strided_view.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/store/part_store.hpp>
#include <tranship/lower/lowering.hpp>

namespace tranship {

/// For one thread.
class BoxReader {
 public:
  explicit BoxReader(Index window_bytes) : window_bytes_(window_bytes) {}

  /// Fills `target`, whose extents are those of `box`, and whose bytes `bytes` are, with the box of the local array
  /// that `plan` is of; cells that nothing is received for become zero. Returns the bytes that came from the source.
  /// Throws as FileSet::read.
  Index read(const StoredParts& source, const PartPlan& plan, const Box& box, const StridedView& target,
             std::span<std::byte> bytes);

 private:
  Index clip_group(const TransferGroup& group, const std::vector<std::vector<EntryReach>>& reaches, const Box& box);
  void read_group(const StoredParts& source, const TransferPlan& plan, const TransferGroup& group,
                  const SlotAddress& target);
  void read_transfer(const FileSet& files, const StoredPart& part, ElementType type, const SlotAddress& target);
  bool read_rows(const FileSet& files, const StoredPart& part, ElementType type, const SlotAddress& target);
  bool read_through_window(const FileSet& files, const StoredPart& part, ElementType type, const SlotAddress& target);
  std::byte* mapped(const FileSet& files, Index file, Index offset_bytes, Index size_bytes);
  void move_mapped(const FileSet& files, Index file, const LoweredMove& move, Index base_bytes);
  void read_listed_rows(const FileSet& files, Index file, const LoweredMove& move, Index base_bytes);
  Index read_indexed(const StoredParts& source, const PartPlan& plan, const IndexedTransfer& list, const Box& box,
                     const SlotAddress& target);
  void lower(const SlotAddress& source, const SlotAddress& target, ElementType type);
  void run_moves();

  Index window_bytes_;
  std::unique_ptr<std::byte[]> window_;
  // Kept between boxes, so that no memory is asked for: by dimension, the entries that touch the box, clipped to it;
  // one combination of them; its moves.
  std::vector<std::vector<AxisEntry>> clipped_;
  TransferGroup one_;
  std::vector<LoweredMove> moves_;
  CopyMethod way_;
  // The stretch of a file that is mapped, and of which file it is.
  std::shared_ptr<const MappedWindow> mapped_;
  const FileSet* mapped_set_ = nullptr;
  Index mapped_file_ = -1;
};

}  // namespace tranship
