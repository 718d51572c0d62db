// Private: RowBlocks, the blocks of an array of which a layout is given by lists. A row is a cell of the dimensions
// that are listed, with all cells of the dimensions behind them, which are whole on both sides.
//
// Rows lie anywhere, so the engine makes a table of the source's row for each row of the target. If these follow each
// other over long stretches, blocks are read straight from the files. Otherwise a round reads a slab, consecutive rows
// of the source, and makes the pieces of the target that take all their rows from it. If these pieces would be too
// many, the rows go through an intermediate (RowsBetween). It has one part for each group of target parts that fits in
// memory, with its rows in the order of the source. So each slab writes one stretch of each part while the source is
// read once, and the intermediate is read once while the target is written.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/file/engine/block_plan.hpp>

namespace tranship {

/// Numbers the rows of all parts of an array, part by part, row-major in each.
class RowNumbers {
 public:
  RowNumbers() = default;
  RowNumbers(const StoredParts& array, int trailing_dims);

  Index count() const { return first_.back(); }
  Index first(Index part) const { return first_[part]; }
  Index part_of(Index row) const;

 private:
  std::vector<Index> first_{0};  // first row of each part, and the end
};

/// The row of the source that each row of the wanted parts takes.
struct RowMoves {
  /// Entry of a row that takes no row of the source.
  static constexpr Index none = -1;

  /// Computes the table from the layouts. Throws as PartPlanner does.
  explicit RowMoves(const BlockJob& job);
  RowMoves() = default;

  static bool are_needed(const BlockJob& job) {
    return job.source->spec.distribution.is_indexed() || job.wanted->spec.distribution.is_indexed();
  }

  int trailing_dims = 0;
  Index inner = 1;  ///< elements of a row
  RowNumbers source;
  RowNumbers wanted;
  std::vector<Index> from;  ///< by row of the wanted parts: a row of the source, or none
};

/// Consecutive rows of one part that form a box of it.
struct RowBox {
  Index part = 0;
  Box box;
  Interval rows;  ///< numbered through all parts
};

class RowBlocks final : public BlockPlan {
 public:
  struct Options {
    /// Size of a slab; 0: as large as the memory allows.
    Index slab_bytes = 0;
    /// Boxes of the target's parts, each of which takes its rows from one slab; empty: whole parts.
    std::vector<RowBox> cuts = {};
  };
  RowBlocks(const BlockJob& job, std::shared_ptr<const RowMoves> moves, Index memory_bytes, const Options& options);
  RowBlocks(const BlockJob& job, std::shared_ptr<const RowMoves> moves, Index memory_bytes)
      : RowBlocks(job, std::move(moves), memory_bytes, Options()) {}

  Index block_count(Index part) const override;
  Box box(Index part, Index number) const override;
  std::optional<PartPlan> moves_of(Index part, const Box& block) const override;
  void for_each_block(Index round, FunctionRef<void(Index part, Index number)> f) const override;
  std::vector<SlabBox> slab(Index round) const override;
  Index bytes_read() const override;

  /// Cost, in bytes that could be moved instead: bytes that are read, calls, and pages that are moved in part.
  double cost_bytes() const noexcept { return cost_bytes_; }

 private:
  /// A box of a wanted part whose rows are assembled in one round, cut into blocks of this shape.
  struct Piece {
    Index part = 0;
    Index round = 0;
    Box box;
    Indices shape;
    Index first_block = 0;  ///< number in the part
    Index blocks() const;
  };
  struct Slabs {
    std::vector<RowBox> boxes;
    std::vector<std::size_t> ends;  // by slab: the end of its boxes
    std::vector<Index> first_rows;  // by slab
  };

  Slabs cut_source(Index slab_bytes) const;
  std::optional<std::vector<Piece>> pieces_of(const Slabs& slabs, const std::vector<RowBox>& cuts,
                                              std::size_t pieces_max) const;
  std::vector<Piece> pieces_in_place(const std::vector<RowBox>& cuts) const;
  double read_cost() const;
  double write_cost(const std::vector<Piece>& pieces) const;
  void use(std::vector<Piece> pieces);
  void shape_blocks(Piece& piece) const;
  Box source_box(Index part, Interval rows) const;

  std::shared_ptr<const RowMoves> moves_;
  Index row_bytes_ = 1;
  Index apart_ = 1;                                     // stretches per row of the source
  Index stretches_ = 0;                                 // of rows that are consecutive on both sides
  std::vector<Piece> pieces_;                           // by part
  std::vector<std::size_t> part_pieces_;                // by part: its first piece, and the end
  std::vector<std::vector<std::size_t>> round_pieces_;  // by round
  Slabs slabs_;
  double cost_bytes_ = 0;
};

/// An intermediate between two arrays, one of which is given by lists.
struct RowsBetween {
  StoredParts parts;
  std::shared_ptr<const RowMoves> to;    ///< from the source
  std::shared_ptr<const RowMoves> from;  ///< to the target
  RowBlocks::Options second;             ///< options for the blocks of the target
};

/// Plans an intermediate that begins at `offset_bytes` of its file. Empty if no row moves.
std::optional<RowsBetween> rows_between(const BlockJob& job, const RowMoves& moves, Index memory_bytes,
                                        Index offset_bytes);

}  // namespace tranship
