#include "tranship/array/adjoint.hpp"

#include <tranship/base/fail.hpp>

namespace tranship {

void check_can_add(const NamedArray& array) {
  const bool is_bool = array.array.spec->type == ElementType::bool8, is_struct = array.array.inner_dims > 0;
  if (is_bool || is_struct)
    throw_error(ErrorCode::invalid_use, "{} has elements {}, which have no addition: an adjoint adds (rank {})",
                array.name, is_bool ? "bool8" : "that are moved as bytes", array.array.world->rank());
}

}  // namespace tranship
