#include "tranship/kernels/host/packets.hpp"

#include <cstring>

#include <tranship/kernels/host/packet_unit.hpp>

namespace tranship::detail {

#if defined(TRANSHIP_PACKET_VECTORS)

void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += packet_unit_bytes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(data + at), PacketUnit::at(packets + 2 * at).data());
}

#else

void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(packets);
  for (std::size_t at = 0; at < bytes; at += 4) {
    const auto value = static_cast<std::uint32_t>(__atomic_load_n(words + at / 4, __ATOMIC_RELAXED));
    std::memcpy(data + at, &value, sizeof value);
  }
}

#endif

// The processor keeps the order of vector loads and stores; these fences are for the compiler.

void pack(std::byte* packets, const std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  for (std::size_t at = 0; at < bytes; at += packet_unit_bytes) pack_unit(packets + 2 * at, data + at, flag);
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
}

std::size_t unpack(const std::byte* packets, std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  std::size_t at = 0;
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  while (at < bytes && take_packet_unit(packets + 2 * at, data + at, flag)) at += packet_unit_bytes;
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  return at;
}

}  // namespace tranship::detail
