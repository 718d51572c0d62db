#include "tranship/file/engine/block_grid.hpp"

#include <algorithm>
#include <cmath>

namespace tranship {
namespace {

// How much longer than the square root runs of the target may be, at the cost of those of the source.
constexpr Index skew_max = 4;

/// Lets the box grow from the fastest dimension on until it has `run` cells in a stretch, or `cells_max` in all.
void grow(const Indices& extents, const Indices& order, Index run, Index cells_max, Indices& box) {
  for (int k = order.size() - 1; k >= 0 && run > 1; --k) {
    const int d = order[k];
    const Index others = checked_product(box) / box[d];
    const Index room = std::max<Index>(1, cells_max / others);
    box[d] = std::max(box[d], std::min({extents[d], run, room}));
    if (box[d] < extents[d]) return;
    run = ceil_divide(run, extents[d]);
  }
}

}  // namespace

BlockGrid::BlockGrid(const BlockGridOptions& options)
    : extents_(options.extents),
      order_(options.source_order),
      box_(Indices::filled(options.extents.size(), 1)),
      counts_(Indices::filled(options.extents.size(), 0)) {
  if (checked_product(extents_) == 0) return;
  if (!(options.source_order == options.target_order)) {
    const auto run = static_cast<Index>(std::sqrt(static_cast<double>(options.cells_max)));
    const Index target_run = std::max(run, std::min(skew_max * run, options.target_run_wanted));
    grow(extents_, options.target_order, target_run, options.cells_max, box_);
    grow(extents_, options.source_order, run, options.cells_max, box_);
  }
  grow(extents_, options.target_order, options.cells_max, options.cells_max, box_);
  count_ = 1;
  for (int d = 0; d < extents_.size(); ++d) {
    counts_[d] = ceil_divide(extents_[d], box_[d]);
    box_[d] = ceil_divide(extents_[d], counts_[d]);  // no sliver at the end
    counts_[d] = ceil_divide(extents_[d], box_[d]);
    count_ = checked_multiply(count_, counts_[d]);
  }
}

Box BlockGrid::box(Index number) const {
  Box out{extents_, extents_};
  for (int k = order_.size() - 1; k >= 0; --k) {
    const int d = order_[k];
    out.lower[d] = number % counts_[d] * box_[d];
    out.upper[d] = std::min(extents_[d], out.lower[d] + box_[d]);
    number /= counts_[d];
  }
  return out;
}

}  // namespace tranship
