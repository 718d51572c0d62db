#include "tranship/file/engine/run_plan.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <tranship/file/engine/part_plan.hpp>
#include <tranship/file/engine/round_shape.hpp>

namespace tranship {
namespace {

constexpr Index boxes_between_max = Index(1) << 16;
// Its head, and what the file system keeps of it.
constexpr Index pages_of_a_file = 4;

Index round_up_to_page(Index bytes) {
  return checked_multiply(ceil_divide(bytes, page_bytes), page_bytes);
}

/// An intermediate in a file from an offset on, cut at these bounds. Its boxes begin at pages, so that none of those is
/// written in part.
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

/// The bounds of boxes of equal extents.
std::vector<std::vector<Index>> bounds_of(const Indices& extents, const Indices& box) {
  std::vector<std::vector<Index>> out;
  for (int d = 0; d < extents.size(); ++d) {
    auto& along = out.emplace_back();
    const Index count = ceil_divide(extents[d], box[d]);
    for (Index n = 0; n <= count; ++n) along.push_back(extents[d] * n / count);
  }
  return out;
}

/// These bounds and those of the rounds that write the boxes, unless that makes too many boxes.
std::vector<std::vector<Index>> cut_at_rounds(std::vector<std::vector<Index>> bounds, const BlockPlan& writing) {
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
  std::vector<BlockPlan> to_between;
  for (std::size_t n = 0; n < arrays_; ++n) {
    const BlockJob job{&sources[n], &wanted[n]};
    [[maybe_unused]] const PartPlanner refuses(job.source->spec, job.wanted->spec);  // plans that are too large
    BlockPlan straight(job, memory_bytes);
    if (const Indices box = straight.box_between(memory_bytes); box.size() > 0) {
      auto bounds = bounds_of(wanted[n].spec.distribution.extents(), box);
      StoredParts& between = between_.emplace_back(boxes_between(sources[n], bounds, intermediate_bytes_));
      bounds = cut_at_rounds(std::move(bounds), BlockPlan({&sources[n], &between}, memory_bytes));
      between = boxes_between(sources[n], bounds, intermediate_bytes_);
      BlockPlan first({&sources[n], &between}, memory_bytes), second({&between, &wanted[n]}, memory_bytes);
      // All elements are written and read once more.
      if (2 + first.overhead() + second.overhead() < straight.overhead()) {
        const StoredPart& last = between.parts.back();
        intermediate_bytes_ =
            round_up_to_page(last.offset_bytes + between.part_bytes(static_cast<Index>(between.parts.size()) - 1));
        plans_.push_back(std::move(second));
        to_between.push_back(std::move(first));
        continue;
      }
      between_.pop_back();
    }
    plans_.push_back(std::move(straight));
  }
  std::move(to_between.begin(), to_between.end(), std::back_inserter(plans_));
}

void RunPlan::use_intermediate(const std::shared_ptr<FileSet>& file) {
  for (StoredParts& between : between_) between.files = file;
}

Index RunPlan::bytes_read_max() const {
  std::set<std::pair<const FileSet*, Index>> files;
  for (const BlockPlan& plan : plans_)
    for (const StoredParts* array : {plan.job().source, plan.job().wanted})
      for (const StoredPart& part : array->parts) files.emplace(array->files.get(), part.file);
  Index out = checked_multiply(static_cast<Index>(files.size()), pages_of_a_file * page_bytes);
  for (const BlockPlan& plan : plans_) out = checked_add(out, checked_add(plan.bytes_read(), plan.bytes_read_back()));
  return out;
}

}  // namespace tranship
