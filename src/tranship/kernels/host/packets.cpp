#include <cstring>

#include <tranship/base/sanitizers.hpp>
#include <tranship/kernels/host/packets.hpp>

#if defined(__x86_64__) && !defined(TRANSHIP_TSAN)
#define TRANSHIP_PACKET_VECTORS
#include <emmintrin.h>
#endif

namespace tranship::detail {

#if defined(TRANSHIP_PACKET_VECTORS)

// Stores are seen in order, and loads are made in order, by the processor; the fences are for the compiler.

void pack(std::byte* packets, const std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  const __m128i flags = _mm_set1_epi32(static_cast<int>(flag));
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  for (std::size_t at = 0; at < bytes; at += packet_unit_bytes) {
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + at));
    auto* const to = reinterpret_cast<__m128i*>(packets + 2 * at);
    _mm_store_si128(to, _mm_unpacklo_epi32(words, flags));
    _mm_store_si128(to + 1, _mm_unpackhi_epi32(words, flags));
  }
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
}

namespace {

struct Unit {
  __m128 low, high;
  __m128i data() const { return _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0))); }
  __m128i flags() const { return _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1))); }
};
Unit unit_at(const std::byte* packets) {
  const auto* const from = reinterpret_cast<const float*>(packets);
  return {_mm_load_ps(from), _mm_load_ps(from + 4)};
}

}  // namespace

std::size_t unpack(const std::byte* packets, std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  const __m128i wanted = _mm_set1_epi32(static_cast<int>(flag));
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  std::size_t at = 0;
  for (; at < bytes; at += packet_unit_bytes) {
    const Unit unit = unit_at(packets + 2 * at);
    if (_mm_movemask_epi8(_mm_cmpeq_epi32(unit.flags(), wanted)) != 0xffff) break;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(data + at), unit.data());
  }
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  return at;
}

void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept {
  for (std::size_t at = 0; at < bytes; at += packet_unit_bytes)
    _mm_storeu_si128(reinterpret_cast<__m128i*>(data + at), unit_at(packets + 2 * at).data());
}

#else

void pack(std::byte* packets, const std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  auto* const words = reinterpret_cast<std::uint64_t*>(packets);
  for (std::size_t at = 0; at < bytes; at += 4) {
    std::uint32_t value;
    std::memcpy(&value, data + at, sizeof value);
    __atomic_store_n(words + at / 4, std::uint64_t(flag) << 32 | value, __ATOMIC_RELEASE);
  }
}

std::size_t unpack(const std::byte* packets, std::byte* data, std::size_t bytes, std::uint32_t flag) noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(packets);
  for (std::size_t at = 0; at < bytes; at += 4) {
    const std::uint64_t word = __atomic_load_n(words + at / 4, __ATOMIC_ACQUIRE);
    if (word >> 32 != flag) return at / packet_unit_bytes * packet_unit_bytes;
    const auto value = static_cast<std::uint32_t>(word);
    std::memcpy(data + at, &value, sizeof value);
  }
  return bytes;
}

void unpack_any(const std::byte* packets, std::byte* data, std::size_t bytes) noexcept {
  const auto* const words = reinterpret_cast<const std::uint64_t*>(packets);
  for (std::size_t at = 0; at < bytes; at += 4) {
    const auto value = static_cast<std::uint32_t>(__atomic_load_n(words + at / 4, __ATOMIC_RELAXED));
    std::memcpy(data + at, &value, sizeof value);
  }
}

#endif

}  // namespace tranship::detail
