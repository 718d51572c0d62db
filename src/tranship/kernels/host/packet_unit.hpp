// Private: one unit of packets (packets.hpp): 16 bytes of data in 32 bytes of memory. It is taken once all of it has
// arrived.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/host/packets.hpp>

#if defined(__x86_64__) && !defined(TRANSHIP_TSAN)
#define TRANSHIP_PACKET_VECTORS
#include <emmintrin.h>
#endif

namespace tranship::detail {

#if defined(TRANSHIP_PACKET_VECTORS)

struct PacketUnit {
  __m128 low, high;

  static PacketUnit at(const std::byte* packets) noexcept {
    const auto* const from = reinterpret_cast<const float*>(packets);
    return {_mm_load_ps(from), _mm_load_ps(from + 4)};
  }
  __m128i data() const noexcept { return _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))); }
  bool has(__m128i flag) const noexcept {
    const __m128i flags = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    return _mm_movemask_epi8(_mm_cmpeq_epi32(flags, flag)) == 0xffff;
  }
};

#endif

/// Stores one unit. Its stores become visible in order. The processor guarantees this for vectors, and the caller must
/// keep the compiler from reordering with a signal fence.
[[gnu::always_inline]] inline void pack_unit(std::byte* packets, const std::byte* data, std::uint32_t flag) noexcept {
#if defined(TRANSHIP_PACKET_VECTORS)
  // Loads halves: the caller may just have stored one of them, and a load of both would wait for that store.
  const __m128i flags = _mm_set1_epi32(static_cast<int>(flag));
  auto* const to = reinterpret_cast<__m128i*>(packets);
  _mm_store_si128(to, _mm_unpacklo_epi32(_mm_loadu_si64(data), flags));
  _mm_store_si128(to + 1, _mm_unpacklo_epi32(_mm_loadu_si64(data + 8), flags));
#else
  auto* const words = reinterpret_cast<std::uint64_t*>(packets);
  for (std::size_t i = 0; i < packet_unit_bytes / 4; ++i) {
    std::uint32_t value;
    std::memcpy(&value, data + 4 * i, sizeof value);
    __atomic_store_n(words + i, std::uint64_t(flag) << 32 | value, __ATOMIC_RELEASE);
  }
#endif
}

/// Returns true, with the data in `data`, if all packets of the unit have the flag. Its loads are made in order; with
/// vectors the processor guarantees this, and the caller must add a signal fence for the compiler.
[[gnu::always_inline]] inline bool take_packet_unit(const std::byte* packets, std::byte* data,
                                                    std::uint32_t flag) noexcept {
#if defined(TRANSHIP_PACKET_VECTORS)
  const PacketUnit unit = PacketUnit::at(packets);
  if (!unit.has(_mm_set1_epi32(static_cast<int>(flag)))) return false;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(data), unit.data());
#else
  const auto* const words = reinterpret_cast<const std::uint64_t*>(packets);
  for (std::size_t i = 0; i < packet_unit_bytes / 4; ++i) {
    const std::uint64_t word = __atomic_load_n(words + i, __ATOMIC_ACQUIRE);
    if (word >> 32 != flag) return false;
    const auto value = static_cast<std::uint32_t>(word);
    std::memcpy(data + 4 * i, &value, sizeof value);
  }
#endif
  return true;
}

/// Tries take_packet_unit() up to `looks` times. The caller fences around it in the same way.
[[gnu::always_inline]] inline bool await_packet_unit(const std::byte* packets, std::byte* data, std::uint32_t flag,
                                                     int looks) noexcept {
  bool has_come = take_packet_unit(packets, data, flag);
  while (!has_come && --looks > 0) {
    __atomic_signal_fence(__ATOMIC_ACQ_REL);
    has_come = take_packet_unit(packets, data, flag);
  }
  return has_come;
}

}  // namespace tranship::detail
