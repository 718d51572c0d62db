// Private: BlockPlan, how the parts of one array are cut into blocks, and in which rounds the blocks are assembled.
//
// A round makes blocks of any parts of the target. Where it gathers, it first reads a slab, boxes of the source, into
// memory, once, and its blocks are assembled from there; otherwise blocks are read straight from the files. There are
// two ways of cutting: by boxes of the array (box_blocks.hpp), and where a layout is given by lists, by rows
// (row_blocks.hpp).
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
  virtual ~BlockPlan() = default;
  BlockPlan(const BlockPlan&) = delete;
  BlockPlan& operator=(const BlockPlan&) = delete;

  /// What of the memory slabs take together, the window of a thread that reads blocks from files, and all that a thread
  /// takes.
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
  /// What a block takes of the source, where that is not simply what the plan of its part says (PartPlanner).
  virtual std::optional<PartPlan> moves_of(Index /*part*/, const Box& /*block*/) const { return std::nullopt; }

  /// Whether rounds read slabs.
  bool gathers() const noexcept { return gathers_; }
  /// Rounds are numbered in the order of the source.
  Index round_count() const noexcept { return round_count_; }
  virtual void for_each_block(Index round, FunctionRef<void(Index part, Index number)> f) const = 0;

  /// A box of a part of the source, in the slab of a round: dense in the order of its part.
  struct SlabBox {
    Index part = 0;
    Box box;
    Index offset_bytes = 0;
  };
  virtual std::vector<SlabBox> slab(Index round) const = 0;
  Index slab_bytes_max() const noexcept { return slab_bytes_max_; }

  /// A bound of the bytes that reading takes from the disk, with pages that are needed in part.
  virtual Index bytes_read() const = 0;
  /// A bound of the bytes of pages that are read again before more is written to them.
  Index bytes_read_back() const;

 protected:
  BlockPlan(const BlockJob& job, Index memory_bytes);

  /// A bound of the bytes that slabs take from the disk.
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

/// The way that the layouts ask for.
std::unique_ptr<const BlockPlan> plan_blocks(const BlockJob& job, Index memory_bytes);

inline Index round_up_to_page(Index bytes) {
  return checked_multiply(ceil_divide(bytes, page_bytes), page_bytes);
}

/// In how many stretches a box lies in the file of its part.
Index stretch_count(const StoredPart& part, const Box& box);
/// Extents of the largest boxes of a part that lie in it without a gap.
Indices dense_box(const Indices& extents, const Indices& order, Index cells_max);

}  // namespace tranship
