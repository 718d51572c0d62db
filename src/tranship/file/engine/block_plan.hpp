// Private: BlockPlan, which says how the parts of one array are cut into blocks, and in which rounds blocks are
// assembled.
//
// A round makes blocks of any parts of the target. A plan that gathers first reads a slab, boxes of the source, into
// memory once, and assembles the round's blocks from it; otherwise blocks are read straight from the files. There are
// two ways to cut: by boxes of the array (box_blocks.hpp), and by rows if a layout is given by lists (row_blocks.hpp).
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/base/box.hpp>
#include <tranship/base/function_ref.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/engine/round_shape.hpp>
#include <tranship/file/store/part_store.hpp>

namespace tranship {

/// One array: where it is stored, and the parts that are wanted. Both outlive the run. Planning does not touch the
/// files of `wanted`.
struct BlockJob {
  const StoredParts* source = nullptr;
  const StoredParts* wanted = nullptr;
};

/// The least memory in which blocks are assembled.
inline constexpr Index block_memory_min = Index(4) << 20;

/// Depends only on the layouts and the memory, not on threads, so a later run finds the same blocks.
class BlockPlan {
 public:
  virtual ~BlockPlan() = default;
  BlockPlan(const BlockPlan&) = delete;
  BlockPlan& operator=(const BlockPlan&) = delete;

  /// Shares of the memory: of all slabs together, of the window of a thread that reads blocks from files, and of all
  /// that a thread uses.
  static Index slabs_bytes_max(Index memory_bytes) noexcept { return memory_bytes / 2; }
  static Index window_bytes(Index memory_bytes) noexcept { return memory_bytes / blocks_in_memory; }
  static Index thread_bytes(Index memory_bytes) noexcept {
    return memory_bytes / blocks_in_memory + window_bytes(memory_bytes);
  }

  const BlockJob& job() const noexcept { return job_; }
  /// Blocks of a wanted part are numbered from 0.
  virtual Index block_count(Index part) const = 0;
  virtual Box box(Index part, Index number) const = 0;
  Index block_bytes(Index part, Index number) const { return box(part, number).count() * width_; }
  /// Returns what a block takes from the source, if that is not what the plan of its part says (PartPlanner).
  virtual std::optional<PartPlan> moves_of(Index /*part*/, const Box& /*block*/) const { return std::nullopt; }

  /// Returns true if rounds read slabs.
  bool gathers() const noexcept { return gathers_; }
  /// Rounds are numbered in the order of the source.
  Index round_count() const noexcept { return round_count_; }
  virtual void for_each_block(Index round, FunctionRef<void(Index part, Index number)> f) const = 0;

  /// A box of a part of the source in the slab of a round, dense in the order of its part.
  struct SlabBox {
    Index part = 0;
    Box box;
    Index offset_bytes = 0;
  };
  virtual std::vector<SlabBox> slab(Index round) const = 0;
  Index slab_bytes_max() const noexcept { return slab_bytes_max_; }

  /// Upper bound on the bytes that reading takes from the disk, including pages that are needed in part.
  virtual Index bytes_read() const = 0;
  /// Upper bound on the bytes of pages that are read back before more is written to them.
  Index bytes_read_back() const;

 protected:
  BlockPlan(const BlockJob& job, Index memory_bytes);

  /// Upper bound on the bytes that slabs take from the disk.
  Index slab_bytes_read() const;

  BlockJob job_;
  Index width_ = 1;
  Index block_cells_max_ = 1;
  bool gathers_ = false;
  Index round_count_ = 0;
  Index slab_bytes_max_ = 0;

 private:
  static constexpr Index blocks_in_memory = 32;
};

using BlockPlans = std::vector<std::unique_ptr<const BlockPlan>>;

/// Plans the blocks by boxes or by rows, as the layouts require.
std::unique_ptr<const BlockPlan> plan_blocks(const BlockJob& job, Index memory_bytes);

inline Index round_up_to_page(Index bytes) {
  return checked_multiply(ceil_divide(bytes, page_bytes), page_bytes);
}

/// Returns the number of stretches in which a box lies in the file of its part.
Index stretch_count(const StoredPart& part, const Box& box);
/// Returns the extents of the largest boxes of a part that lie in it without a gap.
Indices dense_box(const Indices& extents, const Indices& order, Index cells_max);

}  // namespace tranship
