#include "tranship/base/strided_view.hpp"

namespace tranship {

Indices row_major_strides(const Indices& extents) {
  Indices order;
  for (int d = 0; d < extents.size(); ++d) order.push_back(d);
  return dense_strides(extents, order);
}

Indices dense_strides(const Indices& extents, const Indices& order) {
  Indices strides = Indices::filled(extents.size(), 1);
  Index next = 1;
  for (int k = order.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(order[k]);
    strides[d] = next;
    next = checked_multiply(next, extents[d] > 0 ? extents[d] : 1);
  }
  return strides;
}

}  // namespace tranship
