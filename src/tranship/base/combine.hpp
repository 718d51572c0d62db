// Detail: Combine, how several values of one cell become one: memories combine their partial values, and ranks combine
// what their ghosts hold.
#pragma once

#include <cstdint>
#include <optional>

#include <tranship/base/reduction.hpp>

namespace tranship {

/// The reductions that an element can undergo on its way from one memory to another: those of `Reduction` without the
/// bitwise ones, under the same numbers. Integers wrap. For bools the sum is "or", the product is "and", and false is
/// less than true. The minimum or maximum with a NaN is a NaN. Complex numbers have no minimum or maximum.
enum class Combine : std::uint8_t {
  sum = int(Reduction::sum),
  product = int(Reduction::product),
  minimum = int(Reduction::minimum),
  maximum = int(Reduction::maximum),
};

constexpr const char* name_of(Combine combine) noexcept {
  return name_of(static_cast<Reduction>(combine));
}

/// Returns the combination with the same name, or nothing for bitwise reductions.
constexpr std::optional<Combine> combine_of(Reduction reduction) noexcept {
  if (reduction > Reduction::maximum) return std::nullopt;
  return static_cast<Combine>(reduction);
}

/// Returns how a map combines, or nothing for maps that overwrite.
constexpr std::optional<Combine> combine_of(ElementMap map) noexcept {
  switch (map) {
    case ElementMap::copy:
    case ElementMap::negate:
      break;
    case ElementMap::accumulate:
    case ElementMap::accumulate_negated:
      return Combine::sum;
    case ElementMap::multiply:
      return Combine::product;
    case ElementMap::minimum:
      return Combine::minimum;
    case ElementMap::maximum:
      return Combine::maximum;
  }
  return std::nullopt;
}

/// Returns the map that applies this combination.
constexpr ElementMap map_of(Combine combine) noexcept {
  switch (combine) {
    case Combine::sum:
      return ElementMap::accumulate;
    case Combine::product:
      return ElementMap::multiply;
    case Combine::minimum:
      return ElementMap::minimum;
    case Combine::maximum:
      break;
  }
  return ElementMap::maximum;
}

}  // namespace tranship
