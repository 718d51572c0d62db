// Detail: Reduction, how a collective operation combines values, and ElementMap, what happens to an element on its way.
// Kernels know both, so this includes no standard library: it is also compiled while a program runs.
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

/// What happens to an element on its way: plans say it, and kernels do it.
enum class ElementMap : unsigned char {
  copy,                ///< target = source
  negate,              ///< target = -source; a float gets its sign bit flipped, zero and NaN too
  accumulate,          ///< target += source
  accumulate_negated,  ///< target -= source
  multiply,            ///< target *= source
  minimum,             ///< the source where it is less; with a NaN, a NaN; of zeros of either sign the target's stays
  maximum,             ///< the source where it is greater; with a NaN, a NaN; of zeros as for the minimum
};

}  // namespace tranship
