// Private: Rounds sizes to whole units such as pages and cache lines.
#pragma once

#include <cstddef>

#include <unistd.h>

namespace tranship {

/// Returns the page size of this machine: 4 KiB, 16 KiB or 64 KiB.
inline std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Returns the smallest multiple of `unit` that is not less than `bytes`.
constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}
constexpr std::size_t round_down(std::size_t bytes, std::size_t unit) noexcept {
  return bytes / unit * unit;
}

}  // namespace tranship
