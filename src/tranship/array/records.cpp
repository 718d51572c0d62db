#include <algorithm>

#include <tranship/array/records.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

Grid with_inner_axis(const Grid& grid) {
  Indices extents = grid.extents();
  extents.push_back(1);
  GridOptions options{.replicas = grid.replicas(), .first = grid.first(), .stride = grid.stride()};
  // The new axis comes last; the replica's number is one more.
  for (const int axis : grid.order()) options.order.push_back(axis == grid.dims() ? axis + 1 : axis);
  if (!options.order.empty()) options.order.push_back(grid.dims());
  if (grid.ranks_listed()) options.ranks = grid.ranks();
  return Grid(extents, std::move(options));
}

MemoryLayout with_inner_dimension(MemoryLayout memory, int dims, Index units) {
  if (memory.align != 1)
    throw_error(ErrorCode::unsupported, "a memory layout with align {} of elements that are moved as bytes",
                memory.align);
  if (memory.parts == ComplexParts::split)
    throw_error(ErrorCode::unsupported, "a memory layout in 2 planes of elements that are moved as bytes, not complex");
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

ElementType RecordSize::unit() const noexcept {
  switch (std::min<std::size_t>(alignment, 8)) {
    case 8:
      return ElementType::u64;
    case 4:
      return ElementType::u32;
    case 2:
      return ElementType::u16;
    default:
      return ElementType::u8;
  }
}

ArraySpec spec_of_records(const Distribution& d, RecordSize size) {
  if (d.dims() == dims_max)
    throw_error(ErrorCode::unsupported, "an array of {} dimensions of elements that are moved as bytes: at most {}",
                d.dims(), dims_max - 1);
  Indices extents = d.extents();
  extents.push_back(size.units());
  const MemoryLayout memory = with_inner_dimension(d.memory(), d.dims(), size.units());
  if (d.is_indexed()) {
    std::vector<IndexedPart> parts;
    for (Index i = 0; i < d.grid().size(); ++i) parts.push_back(d.indexed_part(i));
    return {size.unit(), Distribution::indexed(extents, d.indexed_dims(), d.grid(), std::move(parts), memory)};
  }
  std::vector<Partition> partitions;
  for (int k = 0; k < d.dims(); ++k) partitions.push_back(d.axis(k).partition());
  partitions.push_back(whole());
  return {size.unit(), Distribution(extents, with_inner_axis(d.grid()), std::move(partitions), memory)};
}

StridedView view_of_records(const ArraySpec& spec, Rank rank, void* data, const Indices& extents,
                            const Indices& strides) {
  const Index units = spec.distribution.extents()[spec.distribution.dims() - 1];
  const Indices local = spec.distribution.local_extents(rank);
  StridedView out{.data = data, .type = spec.type, .extents = extents, .strides = strides};
  for (Index& stride : out.strides) stride = checked_multiply(stride, units);
  out.extents.push_back(local[local.size() - 1]);
  out.strides.push_back(1);
  return out;
}

RecordShape shape_of_records(const Distribution& distribution, const StridedView& view, RecordSize size) {
  RecordShape out{.distribution = std::make_shared<const Distribution>(distribution)};
  for (int d = 0; d + 1 < view.dims(); ++d) {
    out.extents.push_back(view.extents[d]);
    out.strides.push_back(view.strides[d] / size.units());
  }
  return out;
}

}  // namespace tranship
