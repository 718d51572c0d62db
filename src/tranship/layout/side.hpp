// Detail: Which end of a dimension.
#pragma once

#include <cstdint>

namespace tranship {

enum class Side : std::uint8_t { low, high };

constexpr Side opposite(Side side) noexcept {
  return side == Side::low ? Side::high : Side::low;
}
constexpr const char* name_of(Side side) noexcept {
  return side == Side::low ? "low" : "high";
}

}  // namespace tranship
