// Detail: Reduction, how a collective operation combines values, and ElementMap, what a copy does to each element.
// Kernels use both, and are also compiled at run time, so this header includes no standard library.
#pragma once

namespace tranship {

/// Sums, products and orders follow base/combine.hpp: integers wrap; for bools the sum is "or" and the product is
/// "and"; NaNs propagate. The last three take only integers and bools.
enum class Reduction : unsigned char { sum, product, minimum, maximum, bit_and, bit_or, bit_xor };

#if !defined(__CUDACC_RTC__)  // only messages of the host need names
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

/// How a copy treats each element. Plans choose it, and kernels apply it.
enum class ElementMap : unsigned char {
  copy,                ///< target = source
  negate,              ///< target = -source; flips the sign bit of a float, also of zero and NaN
  accumulate,          ///< target += source
  accumulate_negated,  ///< target -= source
  multiply,            ///< target *= source
  minimum,             ///< the source if it is less; NaN if either is NaN; the target stays if both are zeros
  maximum,             ///< the source if it is greater; NaN and zeros as for the minimum
};

}  // namespace tranship
