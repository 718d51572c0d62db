// Private: Sizes in whole units: pages, cache lines.
#pragma once

#include <cstddef>

#include <unistd.h>

namespace tranship {

/// The page size of this machine: 4 KiB, 16 KiB or 64 KiB.
inline std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// The smallest multiple of `unit` that is not less.
constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}
constexpr std::size_t round_down(std::size_t bytes, std::size_t unit) noexcept {
  return bytes / unit * unit;
}

}  // namespace tranship
