#include "tranship/array/mdspan.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

void detail::check_mdspan_rank(std::size_t rank, int dims) {
  if (int(rank) != dims)
    throw_error(ErrorCode::invalid_use, "the view has {}, the local array has {}", amount(rank, "dimension"), dims);
}

void detail::refuse_mdspan_stride(std::size_t d, Index theirs, Index mine) {
  throw_error(ErrorCode::invalid_use,
              "the view has stride {} in dimension {}, the local array has stride {}: use a layout with strides "
              "(std::layout_stride)",
              theirs, d, mine);
}

}  // namespace tranship
