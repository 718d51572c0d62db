#include "tranship/array/adjoint.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

void check_can_combine(const NamedArray& array, Combine combine) {
  const bool is_struct = array.array.inner_dims > 0;
  const bool adds_bools = array.array.spec->type == ElementType::bool8 && combine == Combine::sum;
  if (adds_bools || is_struct)
    throw_error(ErrorCode::invalid_use, "{}: elements {} cannot be combined by {}{} (rank {})", array.name,
                is_struct ? "that are moved as bytes" : "of type bool8", name_of(combine),
                combine == Combine::sum ? ", as an adjoint does" : "", array.array.world->rank());
}

}  // namespace tranship
