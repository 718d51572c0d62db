#include "tranship/array/mdspan.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

void detail::check_mdspan_rank(std::size_t rank, int dims) {
  if (int(rank) != dims)
    throw_error(ErrorCode::invalid_use, "a view of {} of a local array of {}", amount(rank, "dimension"), dims);
}

void detail::refuse_mdspan_stride(std::size_t d, Index theirs, Index mine) {
  throw_error(ErrorCode::invalid_use,
              "a view with stride {} in dimension {} of a local array with stride {}: take one with strides (as "
              "std::layout_stride)",
              theirs, d, mine);
}

}  // namespace tranship
