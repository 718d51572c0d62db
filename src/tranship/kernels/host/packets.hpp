// Private: packets of 8 bytes, 4 of data and 4 of a flag, so that data itself tells that it has arrived.
//
// A packet is written and read whole. Two packets go in one vector; processors that have such vectors access each of
// its aligned halves of 8 bytes atomically.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tranship::detail {

/// Data is packed and taken in units of this many bytes. `packets` has twice as many bytes, aligned to 16.
inline constexpr std::size_t packet_unit_bytes = 16;

/// Writes packets. The stores become visible in order, after the caller's earlier stores.
void pack(std::byte* packets, const std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept;
/// Takes units until one has another flag, and returns the bytes of data taken. Acquires.
std::size_t unpack(const std::byte* packets, std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept;
/// Takes all units, whatever their flags.
void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept;

}  // namespace tranship::detail
