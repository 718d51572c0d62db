#include "tranship/kernels/host/reduce.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include <tranship/kernels/host/element_moves.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/kernels/host/inlined.hpp>
#include <tranship/kernels/host/packet_unit.hpp>

// GCC notes that vectors wider than the baseline's are passed in another way. All of these are inlined, so none is
// passed.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace tranship::detail {
namespace {

/// Computes `to` op= `from`, bit by bit.
template <class Op>
void combine_bits(std::byte* to, const std::byte* from, std::size_t bytes, Op op) {
  std::size_t i = 0;
  for (; i + sizeof(std::uint64_t) <= bytes; i += sizeof(std::uint64_t)) {
    std::uint64_t a, b;
    std::memcpy(&a, to + i, sizeof a);
    std::memcpy(&b, from + i, sizeof b);
    a = op(a, b);
    std::memcpy(to + i, &a, sizeof a);
  }
  for (; i < bytes; ++i) to[i] = std::byte(op(std::uint64_t(to[i]), std::uint64_t(from[i])));
}

// Vectors of a number combine with the same operators as the number itself.
struct Sum {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a += b;
  }
};
struct Product {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a *= b;
  }
};
/// A NaN on either side makes the result NaN (arithmetic.hpp).
struct Minimum {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a = ((b < a) | (b != b)) ? b : a;
  }
};
struct Maximum {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a = ((a < b) | (b != b)) ? b : a;
  }
};
struct BitAnd {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a &= b;
  }
};
struct BitOr {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a |= b;
  }
};
struct BitXor {
  template <class V>
  TRANSHIP_INLINE static void apply(V& a, const V& b) {
    a ^= b;
  }
};

template <class T, std::size_t Bytes>
struct Lanes {
  typedef T Type __attribute__((vector_size(Bytes)));
};
template <class T>
struct Lanes<T, sizeof(T)> {
  using Type = T;
};

template <class T>
constexpr bool is_float = false;
template <>
constexpr bool is_float<float> = true;
template <>
constexpr bool is_float<double> = true;

/// Makes all NaN results equal, whatever operation made them.
template <class T, class V>
TRANSHIP_INLINE void make_equal(V& all) {
  if constexpr (is_float<T>) {
    const V none = V{} + static_cast<T>(__builtin_nanf(""));
    all = all == all ? all : none;
  }
}

/// Combines `Count` vectors of `Bytes` bytes, from byte `at` of all arrays on.
template <class T, class Op, std::size_t Bytes, std::size_t Count>
TRANSHIP_INLINE void combine_at(const CombinedArrays& arrays, std::size_t at) {
  using V = typename Lanes<T, Bytes>::Type;
  V all[Count];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) __builtin_memcpy(&all[i], arrays.sources[0] + at + i * Bytes, Bytes);
  for (std::size_t s = 1; s < arrays.source_count; ++s) {
    const std::byte* const from = arrays.sources[s] + at;
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Count; ++i) {
      V next;
      __builtin_memcpy(&next, from + i * Bytes, Bytes);
      Op::apply(all[i], next);
    }
  }
#pragma GCC unroll 4
  for (std::size_t i = 0; i < Count; ++i) make_equal<T>(all[i]);
  for (std::size_t t = 0; t < arrays.target_count; ++t)
#pragma GCC unroll 4
    for (std::size_t i = 0; i < Count; ++i) __builtin_memcpy(arrays.targets[t] + at + i * Bytes, &all[i], Bytes);
}

template <class T, class Op, std::size_t Bytes>
TRANSHIP_INLINE void combine_arrays(const CombinedArrays& arrays) {
  std::size_t at = 0;
  for (; at + 4 * Bytes <= arrays.bytes; at += 4 * Bytes) combine_at<T, Op, Bytes, 4>(arrays, at);
  for (; at + 16 <= arrays.bytes; at += 16) combine_at<T, Op, 16, 1>(arrays, at);
  for (; at < arrays.bytes; at += sizeof(T)) combine_at<T, Op, sizeof(T), 1>(arrays, at);
}

template <class T, class Op>
std::size_t combine_packets(const CombinedPackets& packets) {
  using V = typename Lanes<T, packet_unit_bytes>::Type;
  const CombinedPackets pair = packets;  // loads it into registers before the first unit arrives
  std::size_t at = 0;
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  for (; at < pair.bytes; at += packet_unit_bytes) {
    V first, second;
    if (!await_packet_unit(pair.packets + 2 * at, reinterpret_cast<std::byte*>(&second), pair.flag, pair.looks)) break;
    __builtin_memcpy(&first, pair.plain + at, sizeof first);
    if (pair.packets_come_first) std::swap(first, second);
    Op::apply(first, second);
    make_equal<T>(first);
    __builtin_memcpy(pair.target + at, &first, sizeof first);
  }
  __atomic_signal_fence(__ATOMIC_ACQ_REL);
  return at;
}

struct Vectors {
  void (*arrays)(const CombinedArrays&) = nullptr;
  std::size_t (*packets)(const CombinedPackets&) = nullptr;
};

template <class T, class Op>
void combine_16(const CombinedArrays& arrays) {
  combine_arrays<T, Op, 16>(arrays);
}
#if defined(__x86_64__)
template <class T, class Op>
[[gnu::target("avx2")]] void combine_32(const CombinedArrays& arrays) {
  combine_arrays<T, Op, 32>(arrays);
}
#endif
template <class T, class Op>
Vectors vectors() {
#if defined(__x86_64__)
  if (copy_method(0).simd == Simd::bytes32) return {&combine_32<T, Op>, &combine_packets<T, Op>};
#endif
  return {&combine_16<T, Op>, &combine_packets<T, Op>};
}

/// Sums and products of integers wrap, so they use unsigned integers.
template <class T, class Unsigned>
Vectors vectors_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return vectors<Unsigned, Sum>();
    case Reduction::product:
      if constexpr (sizeof(T) >= 4) return vectors<Unsigned, Product>();
      return {};  // their products are ints, which may overflow
    case Reduction::minimum:
      return vectors<T, Minimum>();
    case Reduction::maximum:
      return vectors<T, Maximum>();
    default:
      return {};
  }
}

Vectors vectors_of(Reduction reduction, Arithmetic arithmetic) {
  switch (reduction) {
    case Reduction::bit_and:
      return vectors<std::uint8_t, BitAnd>();
    case Reduction::bit_or:
      return vectors<std::uint8_t, BitOr>();
    case Reduction::bit_xor:
      return vectors<std::uint8_t, BitXor>();
    default:
      break;
  }
  switch (arithmetic) {
    case Arithmetic::i8:
      return vectors_of<std::int8_t, std::uint8_t>(reduction);
    case Arithmetic::u8:
      return vectors_of<std::uint8_t, std::uint8_t>(reduction);
    case Arithmetic::i16:
      return vectors_of<std::int16_t, std::uint16_t>(reduction);
    case Arithmetic::u16:
      return vectors_of<std::uint16_t, std::uint16_t>(reduction);
    case Arithmetic::i32:
      return vectors_of<std::int32_t, std::uint32_t>(reduction);
    case Arithmetic::u32:
      return vectors_of<std::uint32_t, std::uint32_t>(reduction);
    case Arithmetic::i64:
      return vectors_of<std::int64_t, std::uint64_t>(reduction);
    case Arithmetic::u64:
      return vectors_of<std::uint64_t, std::uint64_t>(reduction);
    case Arithmetic::f32:
      return vectors_of<float, float>(reduction);
    case Arithmetic::f64:
      return vectors_of<double, double>(reduction);
    default:
      return {};
  }
}

}  // namespace

static_assert(int(Reduction::sum) == int(Combine::sum) && int(Reduction::product) == int(Combine::product) &&
              int(Reduction::minimum) == int(Combine::minimum) && int(Reduction::maximum) == int(Combine::maximum));

bool can_reduce(Reduction reduction, ElementType type) noexcept {
  if (is_complex(type)) return reduction == Reduction::sum;
  if (reduction <= Reduction::maximum) return can_combine(static_cast<Combine>(reduction), type);
  const std::string_view kind = numpy_kind(type);
  return kind[0] == 'i' || kind[0] == 'u' || kind[0] == 'b';
}

void reduce_into(std::byte* to, const std::byte* from, std::size_t bytes, Reduction reduction, ElementType type) {
  switch (reduction) {
    case Reduction::bit_and:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a & b; });
    case Reduction::bit_or:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a | b; });
    case Reduction::bit_xor:
      return combine_bits(to, from, bytes, [](std::uint64_t a, std::uint64_t b) { return a ^ b; });
    case Reduction::sum:
    case Reduction::product:
    case Reduction::minimum:
    case Reduction::maximum:
      break;
  }
  const Arithmetic arithmetic = arithmetic_of(type);
  const int width = width_of(arithmetic);  // for complex numbers, the width of a part
  const CopyBlock block{.dims = 1,
                        .extents = {static_cast<long long>(bytes) / width},
                        .source_strides = {width},
                        .target_strides = {width}};
  move_on_host(block, map_of(*combine_of(reduction)), arithmetic, width, copy_method(0), from, to);
}

Combiner::Combiner(Reduction reduction, ElementType type) noexcept : reduction_(reduction), type_(type) {
  const Vectors found = vectors_of(reduction, arithmetic_of(type));
  vectors_ = found.arrays;
  packets_ = found.packets;
}

void Combiner::one_by_one(const CombinedArrays& arrays) const {
  constexpr std::size_t block_bytes = 4096;  // stays in the nearest cache together with as much of each source
  alignas(64) std::byte sum[block_bytes];    // a target may be a source that is read later
  for (std::size_t at = 0; at < arrays.bytes; at += block_bytes) {
    const std::size_t bytes = std::min(block_bytes, arrays.bytes - at);
    std::memcpy(sum, arrays.sources[0] + at, bytes);
    for (std::size_t s = 1; s < arrays.source_count; ++s)
      reduce_into(sum, arrays.sources[s] + at, bytes, reduction_, type_);
    for (std::size_t t = 0; t < arrays.target_count; ++t) std::memcpy(arrays.targets[t] + at, sum, bytes);
  }
}

void combine_for_peers(const Combiner& combine, const CombinedForPeers& arrays, WriteChoice& choice) {
  const auto combine_into = [&](std::span<std::byte* const> targets, std::size_t bytes) {
    combine({.sources = arrays.sources.data(),
             .source_count = arrays.sources.size(),
             .targets = targets.data(),
             .target_count = targets.size(),
             .bytes = bytes});
  };
  const auto move_on = [&](std::size_t bytes) {
    for (const std::byte*& source : arrays.sources) source += bytes;
    for (std::byte*& target : arrays.targets) target += bytes;
  };
  constexpr auto strip_bytes = std::size_t(write_sample_bytes);
  alignas(64) std::byte strip[strip_bytes];
  std::byte* const result = strip;
  // Combines into the nearest cache and copies from there to all targets. A sample is one strip.
  const auto combine_strip = [&](const WrittenPart& part, std::size_t bytes) {
    combine_into({&result, 1}, bytes);
    if (part.clock) part.clock->restart();
    for (std::size_t i = 0; i < arrays.targets.size(); ++i)
      write_row(arrays.targets[i], strip, static_cast<long long>(bytes),
                arrays.is_of_peer(i) ? part.stores : Stores::plain);
    move_on(bytes);
  };
  const PeerWrite what{.bytes = static_cast<long long>(arrays.bytes), .rows = static_cast<int>(arrays.targets.size())};
  write_to_peer(what, choice, [&](const WrittenPart& part) {
    const auto bytes = static_cast<std::size_t>(part.bytes);
    if (!part.clock && part.stores == Stores::plain) {
      combine_into(arrays.targets, bytes);
      return move_on(bytes);
    }
    for (std::size_t done = 0; done < bytes; done += strip_bytes)
      combine_strip(part, std::min(strip_bytes, bytes - done));
  });
}

}  // namespace tranship::detail
