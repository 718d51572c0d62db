// Detail: How values of several places become one. Memories combine partial values, ranks what their ghosts hold.
#pragma once

#include <cstdint>

namespace tranship {

/// Integers wrap; of bools the sum is "or" and the product "and", and false is less than true; a minimum or maximum
/// with a NaN is a NaN. Complex numbers have no order.
enum class Combine : std::uint8_t { sum, product, minimum, maximum };

constexpr const char* name_of(Combine combine) noexcept {
  switch (combine) {
    case Combine::sum:
      return "sum";
    case Combine::product:
      return "product";
    case Combine::minimum:
      return "minimum";
    case Combine::maximum:
      return "maximum";
  }
  return "?";
}

}  // namespace tranship
