#include "tranship/file/engine/run_plan.hpp"

#include <algorithm>

#include <tranship/file/engine/part_plan.hpp>

namespace tranship {
namespace {

constexpr Index page_bytes = 4096;

Index round_up_to_page(Index bytes) {
  return checked_multiply(ceil_divide(bytes, page_bytes), page_bytes);
}

/// The boxes of an intermediate, in a file from an offset on.
StoredParts boxes_between(const StoredParts& source, const Indices& box, Index offset_bytes) {
  const Distribution& from = source.spec.distribution;
  Indices counts;
  for (int d = 0; d < from.dims(); ++d) counts.push_back(ceil_divide(from.extents()[d], box[d]));
  MemoryLayout memory;
  const NpyOrder order = source.parts.front().order;
  if (order == NpyOrder::fortran)
    for (int d = from.dims() - 1; d >= 0; --d) memory.order.push_back(d);
  const Distribution between(from.extents(), Grid(counts),
                             std::vector<Partition>(static_cast<std::size_t>(from.dims()), block(Remainder::ceil)),
                             memory);
  StoredParts out{.spec = {source.spec.type, between}, .descr = source.descr};
  for (Index i = 0; i < between.grid().size(); ++i) {
    out.parts.push_back(
        {.offset_bytes = offset_bytes, .order = order, .extents = between.local_extents(between.grid().rank_at(i))});
    offset_bytes = round_up_to_page(checked_add(offset_bytes, out.part_bytes(i)));
  }
  return out;
}

}  // namespace

RunPlan::RunPlan(std::span<const StoredParts> sources, std::span<const StoredParts> wanted, Index memory_bytes)
    : arrays_(wanted.size()) {
  std::vector<BlockPlan> to_between;
  for (std::size_t n = 0; n < arrays_; ++n) {
    const BlockJob job{&sources[n], &wanted[n]};
    PartPlanner(job.source->spec, job.wanted->spec);
    BlockPlan straight(job, memory_bytes);
    if (const Indices box = straight.box_between(memory_bytes); box.size() > 0) {
      StoredParts& between = between_.emplace_back(boxes_between(sources[n], box, intermediate_bytes_));
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
  Index out = 0;
  for (const BlockPlan& plan : plans_) out = checked_add(out, checked_add(plan.bytes_read(), plan.bytes_read_back()));
  return out;
}

}  // namespace tranship
