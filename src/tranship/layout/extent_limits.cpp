#include "tranship/layout/extent_limits.hpp"

#include <tranship/layout/layout_error.hpp>
#include <tranship/layout/partition.hpp>

namespace tranship {

void check_extents(const Indices& extents) {
  for (int d = 0; d < extents.size(); ++d)
    if (extents[d] > extent_max)
      throw LayoutError(make_error(ErrorCode::overflow, "extent {} of dimension {}; at most {} is possible", extents[d],
                                   d, extent_max),
                        LayoutValue::extents, std::size_t(d));
  checked_product(extents);
}

void check_bytes(ElementType type, const Indices& extents) {
  Index bytes;
  if (__builtin_mul_overflow(checked_product(extents), Index(size_bytes(type)), &bytes))
    throw_error(ErrorCode::overflow, "the bytes of {}[{}], {} for each element, do not fit in 63 bits", name_of(type),
                to_string(extents), size_bytes(type));
}

}  // namespace tranship
