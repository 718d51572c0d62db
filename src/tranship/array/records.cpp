#include "tranship/array/records.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/layout/inner_dimension.hpp>

namespace tranship {

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
    throw_error(ErrorCode::unsupported,
                "the array has {}; with elements that are moved as bytes, at most {} are supported",
                amount(d.dims(), "dimension"), dims_max - 1);
  const MemoryLayout& memory = d.memory();
  if (memory.align != 1)
    throw_error(ErrorCode::unsupported, "elements that are moved as bytes cannot have a memory layout with align {}",
                memory.align);
  if (memory.parts == ComplexParts::split)
    throw_error(ErrorCode::unsupported,
                "elements that are moved as bytes are not complex: they cannot have a memory layout in 2 planes");
  return {size.unit(), with_inner_dimension(d, size.units())};
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
