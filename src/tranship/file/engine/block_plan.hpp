// Private: BlockPlan, how the parts of one array are cut into blocks, and in which rounds the blocks are assembled.
//
// The array is cut into equal boxes (round_shape.hpp). A round is one of them: it needs a slab of the source, a box of
// each part that meets it, and makes the blocks of all parts of the target that lie in it. Where rows that both sides
// share are long, blocks are read straight from the files; where they are short, a round reads its slab once, and its
// blocks are assembled from there. So every byte of the source is read once, but for what overlap makes rounds share
// and for pages that two rounds meet. Where a layout is given by lists, cells lie anywhere: the source is read as a
// whole where half of the memory holds it, and otherwise block by block.
#pragma once

#include <optional>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// One array: what is there, and in which parts it is wanted. Both outlive the run. The files of `wanted` are not
/// touched here.
struct BlockJob {
  const StoredParts* source = nullptr;
  const StoredParts* wanted = nullptr;
};

/// The least that blocks are assembled in.
inline constexpr Index block_memory_min = Index(4) << 20;

/// Depends on the layouts and on the memory alone, not on threads: a later run finds the same blocks.
class BlockPlan {
 public:
  BlockPlan(const BlockJob& job, Index memory_bytes);

  /// What of the memory slabs take together, the window of a thread that reads blocks from files, and all that a thread
  /// takes.
  static Index slabs_bytes_max(Index memory_bytes) noexcept { return memory_bytes / 2; }
  static Index window_bytes(Index memory_bytes) noexcept { return memory_bytes / blocks_in_memory; }
  static Index thread_bytes(Index memory_bytes) noexcept {
    return memory_bytes / blocks_in_memory + window_bytes(memory_bytes);
  }

  const BlockJob& job() const noexcept { return job_; }
  /// Blocks of a wanted part are numbered row-major over the pieces of its dimensions.
  Index block_count(Index part) const;
  Box box(Index part, Index number) const;
  Index block_bytes(Index part, Index number) const;

  /// Whether rounds read slabs.
  bool gathers() const noexcept { return gathers_; }
  /// Rounds are numbered in the order of the source.
  Index round_count() const noexcept { return round_count_; }
  void for_each_block(Index round, FunctionRef<void(Index part, Index number)> f) const;

  /// A box of a part of the source, in the slab of a round: dense in the order of its part.
  struct SlabBox {
    Index part = 0;
    Box box;
    Index offset_bytes = 0;
  };
  std::vector<SlabBox> slab(Index round) const;
  Index slab_bytes_max() const noexcept { return slab_bytes_max_; }

  /// What is moved beyond the elements, and what calls cost, as a fraction of the elements; 0 for lists.
  double overhead() const noexcept { return overhead_; }
  /// Where the boxes of rounds begin along a dimension, and where the last one ends.
  const std::vector<Index>& round_bounds(int d) const { return axes_[d].bounds; }
  /// The extents of boxes for which an intermediate may be worth while; none where it cannot.
  Indices box_between(Index memory_bytes) const;
  /// A bound of the bytes that reading takes from the disk, with pages that are needed in part.
  Index bytes_read() const;
  /// A bound of the bytes of pages that are read again before more is written to them.
  Index bytes_read_back() const;

 private:
  static constexpr Index blocks_in_memory = 32;

  /// A piece of a part along one dimension.
  struct Piece {
    Interval local;
    Index slab = 0;  ///< along this dimension
  };
  struct PartPiece {
    Index coordinate = 0;
    Index piece = 0;
  };
  /// What a slab needs of the parts of the source along one dimension.
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

  void cut_listed(Index slab_bytes);
  std::vector<Index> edges_along(int d) const;
  void cut_structured(const Indices& shape);
  void cut_pieces(const Indices& longest);
  Index listed_row_cells() const;
  void find_needs();
  Indices slabs_of(Index round) const;
  Indices coordinates_of(Index part) const;

  BlockJob job_;
  Index width_ = 1;
  Index block_cells_max_ = 1;
  bool gathers_ = false;
  bool listed_ = false;
  double overhead_ = 0;
  Indices order_;  // of the source
  std::vector<Axis> axes_;
  Index round_count_ = 0;
  Index slab_bytes_max_ = 0;
  std::vector<Indices> listed_boxes_;  // by part
  std::vector<Index> listed_rounds_;   // the part after the last one of each round
  // The source's parts, as plans name them.
  std::optional<Grid> peers_;
  Index peer_replica_ = 0;
};

}  // namespace tranship
