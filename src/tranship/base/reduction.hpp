// Detail: Reduction, how a collective operation combines values. Kernels know it, too.
#pragma once

namespace tranship {

/// Sums, products and orders as base/combine.hpp defines them: integers wrap, of bools the sum is "or" and the product
/// "and", and NaNs stay. The last three take integers and bools.
enum class Reduction : unsigned char { sum, product, minimum, maximum, bit_and, bit_or, bit_xor };

#if !defined(__CUDACC_RTC__)  // only messages of the host use it
constexpr const char* name_of(Reduction reduction) noexcept {
  switch (reduction) {
    case Reduction::sum:
      return "sum";
    case Reduction::product:
      return "product";
    case Reduction::minimum:
      return "minimum";
    case Reduction::maximum:
      return "maximum";
    case Reduction::bit_and:
      return "bit_and";
    case Reduction::bit_or:
      return "bit_or";
    case Reduction::bit_xor:
      return "bit_xor";
  }
  return "?";
}
#endif

}  // namespace tranship
