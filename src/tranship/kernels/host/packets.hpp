// Private: packets, 8 bytes of which 4 are data and 4 a flag, so that data says by itself that it has come.
//
// A packet is written and read whole: two of them go in one vector, whose aligned halves of 8 bytes are single accesses
// on every processor that has such vectors.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tranship::detail {

/// Data is made and taken in units of so many bytes: `packets` has twice as many, aligned to 16.
inline constexpr std::size_t packet_unit_bytes = 16;

/// Stores are seen in their order with those that the caller makes before.
void pack(std::byte* packets, const std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept;
/// Takes units until one has another flag, and returns the bytes of data that it has taken. Acquire.
std::size_t unpack(const std::byte* packets, std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept;
/// Takes all of them, whatever their flags.
void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept;

}  // namespace tranship::detail
