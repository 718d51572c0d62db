#include "tranship/layout/inner_dimension.hpp"

namespace tranship {
namespace {

Grid with_inner_axis(const Grid& grid) {
  Indices extents = grid.extents();
  extents.push_back(1);
  GridOptions options{.replicas = grid.replicas(), .first = grid.first(), .stride = grid.stride()};
  // The new axis comes last, so the number of the replica axis grows by one.
  for (const int axis : grid.order()) options.order.push_back(axis == grid.dims() ? axis + 1 : axis);
  if (!options.order.empty()) options.order.push_back(grid.dims());
  if (grid.ranks_listed()) options.ranks = grid.ranks();
  return Grid(extents, std::move(options));
}

MemoryLayout with_units(MemoryLayout memory, int dims, Index units) {
  if (!memory.order.empty()) memory.order.push_back(dims);
  if (!memory.spacing.empty()) memory.spacing.push_back(1);
  if (!memory.strides.empty()) {
    for (Index& stride : memory.strides) stride = checked_multiply(stride, units);
    memory.strides.push_back(1);
  }
  memory.offset = checked_multiply(memory.offset, units);
  return memory;
}

}  // namespace

Distribution with_inner_dimension(const Distribution& d, Index units) {
  Indices extents = d.extents();
  extents.push_back(units);
  MemoryLayout memory = with_units(d.memory(), d.dims(), units);
  if (d.is_indexed()) {
    std::vector<IndexedPart> parts;
    for (Index i = 0; i < d.grid().size(); ++i) parts.push_back(d.indexed_part(i));
    return Distribution::indexed(extents, d.indexed_dims(), d.grid(), std::move(parts), std::move(memory));
  }
  std::vector<Partition> partitions;
  for (int k = 0; k < d.dims(); ++k) partitions.push_back(d.axis(k).partition());
  partitions.push_back(whole());
  return Distribution(extents, with_inner_axis(d.grid()), std::move(partitions), std::move(memory));
}

}  // namespace tranship
