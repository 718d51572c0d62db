// Private: BoxBlocks, the blocks of a layout of slices: the array is cut into equal boxes (round_shape.hpp).
//
// A round is one of these boxes. It needs a slab of the source, which is a box of each part that meets it, and makes
// the blocks of all parts of the target that lie in it. If the rows that both sides share are long, blocks are read
// straight from the files; otherwise a round reads its slab once and assembles its blocks from it. So every byte of the
// source is read once, except for overlap that rounds share and for pages that two rounds meet.
#pragma once

#include <optional>
#include <vector>

#include <tranship/file/engine/block_plan.hpp>

namespace tranship {

class BoxBlocks final : public BlockPlan {
 public:
  /// Neither layout may be given by lists.
  BoxBlocks(const BlockJob& job, Index memory_bytes);

  /// Blocks are numbered row-major over the pieces of the dimensions of a part.
  Index block_count(Index part) const override;
  Box box(Index part, Index number) const override;
  void for_each_block(Index round, FunctionRef<void(Index part, Index number)> f) const override;
  std::vector<SlabBox> slab(Index round) const override;
  Index bytes_read() const override;

  /// Returns the cost of calls and of bytes moved beyond the elements, as a fraction of the elements.
  double overhead() const noexcept { return overhead_; }
  /// Returns where the boxes of rounds begin along a dimension, and where the last one ends.
  const std::vector<Index>& round_bounds(int d) const { return axes_[d].bounds; }
  /// Returns the extents of boxes for which an intermediate may pay; empty if it cannot.
  Indices box_between(Index memory_bytes) const;

 private:
  /// A piece of a part along one dimension.
  struct Piece {
    Interval local;
    Index slab = 0;  ///< the slab along this dimension
  };
  struct PartPiece {
    Index coordinate = 0;
    Index piece = 0;
  };
  /// The cells that a slab needs of the parts of the source, along one dimension.
  struct Need {
    Index coordinate = 0;
    Interval local;
  };
  /// One dimension of the target's parts.
  struct Axis {
    std::vector<Index> bounds;                   // of slabs
    std::vector<std::vector<Piece>> pieces;      // by coordinate
    std::vector<std::vector<PartPiece>> blocks;  // by slab
    std::vector<std::vector<Need>> needs;        // by slab
    Index slabs() const { return static_cast<Index>(blocks.size()); }
  };

  std::vector<Index> edges_along(int d) const;
  void cut_rounds(const Indices& shape);
  void cut_pieces(const Indices& longest);
  void find_needs();
  Indices slabs_of(Index round) const;
  Indices coordinates_of(Index part) const;

  double overhead_ = 0;
  Indices order_;  // dimensions of the source, from slowest to fastest
  std::vector<Axis> axes_;
  // The parts of the source, as plans name them.
  std::optional<Grid> peers_;
  Index peer_replica_ = 0;
};

}  // namespace tranship
