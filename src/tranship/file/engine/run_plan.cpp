#include "tranship/file/engine/run_plan.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <tranship/file/engine/box_blocks.hpp>
#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/engine/round_shape.hpp>
#include <tranship/file/engine/row_blocks.hpp>

namespace tranship {
namespace {

constexpr Index boxes_between_max = Index(1) << 16;
// Pages of a file's head, and of what the file system keeps of it.
constexpr Index pages_of_a_file = 4;

/// Makes an intermediate that begins at an offset of a file and is cut at these bounds. Its boxes begin at pages, so
/// that no page is written in part.
StoredParts boxes_between(const StoredParts& source, const std::vector<std::vector<Index>>& bounds,
                          Index offset_bytes) {
  const Distribution& from = source.spec.distribution;
  Indices counts;
  std::vector<Partition> partitions;
  for (const std::vector<Index>& along : bounds) {
    counts.push_back(static_cast<Index>(along.size()) - 1);
    partitions.push_back(irregular(along));
  }
  const StoredOrder order = source.order();
  const Distribution between(from.extents(), Grid(counts), std::move(partitions),
                             {.order = dimension_order(order, from.dims())});
  StoredParts out{.spec = {source.spec.type, between}, .descr = source.descr};
  for (Index i = 0; i < between.grid().size(); ++i) {
    out.parts.push_back(
        {.offset_bytes = offset_bytes, .order = order, .extents = between.local_extents(between.grid().rank_at(i))});
    offset_bytes = round_up_to_page(checked_add(offset_bytes, out.part_bytes(i)));
  }
  return out;
}

/// Returns the bounds of boxes of equal extents.
std::vector<std::vector<Index>> bounds_of(const Indices& extents, const Indices& box) {
  std::vector<std::vector<Index>> out;
  for (int d = 0; d < extents.size(); ++d) {
    auto& along = out.emplace_back();
    const Index count = ceil_divide(extents[d], box[d]);
    for (Index n = 0; n <= count; ++n) along.push_back(extents[d] * n / count);
  }
  return out;
}

/// Adds the bounds of the rounds that write the boxes, unless that makes too many boxes.
std::vector<std::vector<Index>> cut_at_rounds(std::vector<std::vector<Index>> bounds, const BoxBlocks& writing) {
  Index boxes = 1;
  auto out = bounds;
  for (std::size_t d = 0; d < bounds.size(); ++d) {
    const std::vector<Index>& more = writing.round_bounds(static_cast<int>(d));
    out[d].clear();
    std::set_union(bounds[d].begin(), bounds[d].end(), more.begin(), more.end(), std::back_inserter(out[d]));
    boxes = checked_multiply(boxes, static_cast<Index>(out[d].size()) - 1);
  }
  return boxes <= boxes_between_max ? out : bounds;
}

}  // namespace

RunPlan::RunPlan(std::span<const StoredParts> sources, std::span<const StoredParts> wanted, Index memory_bytes)
    : arrays_(wanted.size()) {
  BlockPlans to_between;
  for (std::size_t n = 0; n < arrays_; ++n) {
    const BlockJob job{&sources[n], &wanted[n]};
    [[maybe_unused]] const PartPlanner refuses(job.source->spec, job.wanted->spec);  // checks sizes
    RowMoves::are_needed(job) ? add_rows(job, memory_bytes, to_between) : add_boxes(job, memory_bytes, to_between);
  }
  std::move(to_between.begin(), to_between.end(), std::back_inserter(plans_));
}

void RunPlan::add_boxes(const BlockJob& job, Index memory_bytes, BlockPlans& to_between) {
  auto straight = std::make_unique<BoxBlocks>(job, memory_bytes);
  if (const Indices box = straight->box_between(memory_bytes); box.size() > 0) {
    auto bounds = bounds_of(job.wanted->spec.distribution.extents(), box);
    StoredParts& between = between_.emplace_back(boxes_between(*job.source, bounds, intermediate_bytes_));
    bounds = cut_at_rounds(std::move(bounds), BoxBlocks({job.source, &between}, memory_bytes));
    between = boxes_between(*job.source, bounds, intermediate_bytes_);
    auto first = std::make_unique<BoxBlocks>(BlockJob{job.source, &between}, memory_bytes),
         second = std::make_unique<BoxBlocks>(BlockJob{&between, job.wanted}, memory_bytes);
    // With an intermediate, all elements are written and read once more.
    if (2 + first->overhead() + second->overhead() < straight->overhead())
      return keep_between(to_between, std::move(first), std::move(second));
    between_.pop_back();
  }
  plans_.push_back(std::move(straight));
}

void RunPlan::add_rows(const BlockJob& job, Index memory_bytes, BlockPlans& to_between) {
  const auto moves = std::make_shared<const RowMoves>(job);
  auto straight = std::make_unique<RowBlocks>(job, moves, memory_bytes);
  const auto bytes = static_cast<double>(moves->wanted.count() * moves->inner * size_bytes(job.wanted->spec.type));
  if (!job.source->parts.empty() && straight->cost_bytes() > 3 * bytes) {
    if (auto rows = rows_between(job, *moves, memory_bytes, intermediate_bytes_)) {
      StoredParts& between = between_.emplace_back(std::move(rows->parts));
      auto first = std::make_unique<RowBlocks>(BlockJob{job.source, &between}, rows->to, memory_bytes),
           second = std::make_unique<RowBlocks>(BlockJob{&between, job.wanted}, rows->from, memory_bytes, rows->second);
      if (bytes + first->cost_bytes() + second->cost_bytes() < straight->cost_bytes())
        return keep_between(to_between, std::move(first), std::move(second));
      between_.pop_back();
    }
  }
  plans_.push_back(std::move(straight));
}

void RunPlan::keep_between(BlockPlans& to_between, std::unique_ptr<const BlockPlan> first,
                           std::unique_ptr<const BlockPlan> second) {
  const StoredParts& between = between_.back();
  intermediate_bytes_ = round_up_to_page(between.parts.back().offset_bytes +
                                         between.part_bytes(static_cast<Index>(between.parts.size()) - 1));
  plans_.push_back(std::move(second));
  to_between.push_back(std::move(first));
}

void RunPlan::use_intermediate(const std::shared_ptr<FileSet>& file) {
  for (StoredParts& between : between_) between.files = file;
}

Index RunPlan::bytes_read_max() const {
  std::set<std::pair<const FileSet*, Index>> files;
  for (const auto& plan : plans_)
    for (const StoredParts* array : {plan->job().source, plan->job().wanted})
      for (const StoredPart& part : array->parts) files.emplace(array->files.get(), part.file);
  Index out = checked_multiply(static_cast<Index>(files.size()), pages_of_a_file * page_bytes);
  for (const auto& plan : plans_) out = checked_add(out, checked_add(plan->bytes_read(), plan->bytes_read_back()));
  return out;
}

}  // namespace tranship
