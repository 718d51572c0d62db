// Private: Slab, the data that one round needs of a stored array, in memory: boxes of its parts, each dense in the
// order of the part. Several threads read it once, and the blocks of the round are assembled from it.
#pragma once

#include <cstddef>
#include <vector>

#include <tranship/file/engine/block_plan.hpp>
#include <tranship/file/store/part_source.hpp>

namespace tranship {

/// Serves reads of parts from memory. Threads may read once all pieces have been loaded.
class Slab final : public PartSource {
 public:
  /// Throws std::bad_alloc.
  explicit Slab(Index capacity_bytes);
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;
  ~Slab() override;

  Index capacity_bytes() const noexcept { return capacity_bytes_; }

  /// A piece of a box, to be loaded by one thread.
  struct Piece {
    Index part = 0;
    Box box;
    Index offset_bytes = 0;
  };
  /// Assigns the slab to a round, without loading it. Returns the pieces to load, in the order of the source.
  std::vector<Piece> begin(const BlockPlan& plan, Index round);
  /// Loads a piece and returns its bytes. Throws as PartSource::read of the array does.
  Index load(const Piece& piece, ReadScratch& scratch);

  Indices extents(Index part) const override { return array_->parts[part].extents; }
  void read(Index part, const Box& box, const StridedView& target, ReadScratch& scratch) const override;
  void read_runs(Index part, const TransferGroup& cells, const StridedView& target,
                 ReadScratch& scratch) const override;
  void read_listed(Index part, const IndexedTransfer& cells, const Box& trailing, const StridedView& target,
                   ReadScratch& scratch) const override;

 private:
  const BlockPlan::SlabBox& held(Index part) const;
  Index capacity_bytes_;
  std::byte* memory_ = nullptr;
  const StoredParts* array_ = nullptr;
  std::vector<BlockPlan::SlabBox> boxes_;  // increasing parts
};

}  // namespace tranship
