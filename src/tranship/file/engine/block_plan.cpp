#include "tranship/file/engine/block_plan.hpp"

#include <algorithm>

#include <tranship/file/engine/box_blocks.hpp>
#include <tranship/file/engine/row_blocks.hpp>

namespace tranship {
namespace {

// Blocks that are larger than the caches gain nothing.
constexpr Index block_bytes_max_ever = Index(1) << 20;

/// Returns the number of consecutive cells of a box in the file of its part.
Index stretch_cells(const StoredPart& part, const Box& box) {
  const Indices order = dimension_order(part.order, box.dims());
  Index out = 1;
  for (int k = box.dims() - 1; k >= 0; --k) {
    const int d = static_cast<int>(order[k]);
    out *= box[d].length();
    if (box[d].length() != part.extents[d]) break;
  }
  return out;
}

/// Upper bound on the bytes of the pages in which a box of a part lies.
Index pages_read(const StoredPart& part, const Box& box, Index width) {
  const Indices strides = view_of(part, ElementType::u8, nullptr).strides;
  Index reach = 1;
  for (int d = 0; d < box.dims(); ++d) reach += (box[d].length() - 1) * strides[d];
  const Index stretch = std::max<Index>(1, stretch_cells(part, box));
  return std::min(box.count() / stretch * (stretch * width + 2 * (page_bytes - 1)),
                  reach * width + 2 * (page_bytes - 1));
}

}  // namespace

Index stretch_count(const StoredPart& part, const Box& box) {
  return box.count() / std::max<Index>(1, stretch_cells(part, box));
}

Indices dense_box(const Indices& extents, const Indices& order, Index cells_max) {
  Indices out = Indices::filled(extents.size(), 1);
  for (int k = extents.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(order[k]);
    out[d] = std::clamp<Index>(cells_max, 1, std::max<Index>(1, extents[d]));
    if (out[d] < extents[d]) break;
    cells_max /= out[d];
  }
  return out;
}

BlockPlan::BlockPlan(const BlockJob& job, Index memory_bytes)
    : job_(job),
      width_(size_bytes(job.wanted->spec.type)),
      block_cells_max_(std::max<Index>(1, std::min(memory_bytes / blocks_in_memory, block_bytes_max_ever) / width_)) {}

Index BlockPlan::slab_bytes_read() const {
  Index out = 0;
  for (Index round = 0; round < round_count_; ++round)
    for (const SlabBox& piece : slab(round))
      out = checked_add(out, pages_read(job_.source->parts[piece.part], piece.box, width_));
  return out;
}

Index BlockPlan::bytes_read_back() const {
  Index out = 0;
  for (Index part = 0; part < static_cast<Index>(job_.wanted->parts.size()); ++part) {
    const StoredPart& file = job_.wanted->parts[part];
    for (Index number = 0, count = block_count(part); number < count; ++number) {
      const Box block = box(part, number);
      out = checked_add(
          out, std::min(checked_multiply(stretch_count(file, block), 2 * page_bytes), pages_read(file, block, width_)));
    }
  }
  return out;
}

std::unique_ptr<const BlockPlan> plan_blocks(const BlockJob& job, Index memory_bytes) {
  if (RowMoves::are_needed(job)) return std::make_unique<RowBlocks>(job, std::make_shared<RowMoves>(job), memory_bytes);
  return std::make_unique<BoxBlocks>(job, memory_bytes);
}

}  // namespace tranship
