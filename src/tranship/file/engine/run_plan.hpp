// Private: RunPlan, which decides how the arrays of one run get from their source to their target: directly, or through
// an intermediate if stretches would be too short on both sides.
//
// An intermediate is a file of the same elements in boxes that a round can hold, or in groups of rows if a layout is
// given by lists, each in the order of the source. It is written in long stretches while the source is read, and read
// box by box while the target is written: everything moves twice, but no page is moved of which little is needed.
#pragma once

#include <deque>
#include <span>
#include <vector>

#include <tranship/file/engine/block_plan.hpp>

namespace tranship {

class RunPlan {
 public:
  /// Array n of the target is made of array n of the sources. Both outlive the plan. Throws as PartPlanner does.
  RunPlan(std::span<const StoredParts> sources, std::span<const StoredParts> wanted, Index memory_bytes);
  RunPlan(const RunPlan&) = delete;
  RunPlan& operator=(const RunPlan&) = delete;

  /// All plans: first those that make the target, by array, then those that make intermediates.
  std::span<const std::unique_ptr<const BlockPlan>> plans() const noexcept { return plans_; }
  std::span<const std::unique_ptr<const BlockPlan>> targets() const noexcept { return plans().first(arrays_); }
  std::span<const std::unique_ptr<const BlockPlan>> intermediates() const noexcept { return plans().subspan(arrays_); }

  /// Size of the file in which intermediates lie; 0 if none is needed.
  Index intermediate_bytes() const noexcept { return intermediate_bytes_; }
  void use_intermediate(const std::shared_ptr<FileSet>& file);

  /// Upper bound on the bytes that are read from disks, including pages that are needed in part and pages of the target
  /// that two rounds write in part.
  Index bytes_read_max() const;

 private:
  /// Adds the two plans through an intermediate, or the one plan without it.
  void add_boxes(const BlockJob& job, Index memory_bytes, BlockPlans& to_between);
  void add_rows(const BlockJob& job, Index memory_bytes, BlockPlans& to_between);
  void keep_between(BlockPlans& to_between, std::unique_ptr<const BlockPlan> first,
                    std::unique_ptr<const BlockPlan> second);

  std::size_t arrays_;
  std::deque<StoredParts> between_;
  BlockPlans plans_;
  Index intermediate_bytes_ = 0;
};

}  // namespace tranship
