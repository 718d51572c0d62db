// The brute force that the kernels are measured against: one element at a time, in the order of the block as given,
// with arithmetic done another way. Buffers carry poisoned guards, and whole buffers are compared.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship::reference {

using Bytes = std::vector<unsigned char>;
using Random = std::mt19937_64;

inline int below(Random& random, int bound) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(bound));
}

inline constexpr Arithmetic numbers[] = {Arithmetic::bool8, Arithmetic::i8,  Arithmetic::u8,   Arithmetic::i16,
                                         Arithmetic::u16,   Arithmetic::i32, Arithmetic::u32,  Arithmetic::i64,
                                         Arithmetic::u64,   Arithmetic::f16, Arithmetic::bf16, Arithmetic::f32,
                                         Arithmetic::f64,   Arithmetic::f128};
inline constexpr int number_count = std::size(numbers);
inline constexpr ElementMap moves[] = {
    ElementMap::copy,     ElementMap::negate,  ElementMap::accumulate, ElementMap::accumulate_negated,
    ElementMap::multiply, ElementMap::minimum, ElementMap::maximum};

/// Those that the arithmetic has.
inline std::vector<ElementMap> moves_of(Arithmetic arithmetic) {
  std::vector<ElementMap> out;
  for (const ElementMap move : moves)
    if (can_move(move, arithmetic, width_of(arithmetic))) out.push_back(move);
  return out;
}

inline ElementMap random_move(Random& random, Arithmetic arithmetic) {
  const std::vector<ElementMap> from = moves_of(arithmetic);
  return from[below(random, int(from.size()))];
}
inline constexpr int widths[] = {1, 2, 4, 8, 16};

/// A 16-bit float, described by numbers.
struct HalfFormat {
  int fraction_bits;
  int exponent_min;
  int exponent_max;
};
inline constexpr HalfFormat f16_format{10, -14, 15};
inline constexpr HalfFormat bf16_format{7, -126, 127};

inline double decode(HalfFormat format, unsigned bits) {
  const int fraction = bits & ((1u << format.fraction_bits) - 1);
  const int exponent = (bits & 0x7fffu) >> format.fraction_bits;
  const int exponent_all_ones = format.exponent_max - format.exponent_min + 2;
  double value;
  if (exponent == exponent_all_ones)
    value = fraction ? std::nan("") : INFINITY;
  else if (exponent == 0)
    value = std::ldexp(fraction, format.exponent_min - format.fraction_bits);
  else
    value =
        std::ldexp(fraction + (1 << format.fraction_bits), format.exponent_min + exponent - 1 - format.fraction_bits);
  return bits & 0x8000u ? -value : value;
}

inline unsigned encode(HalfFormat format, double value) {
  const unsigned infinity = (format.exponent_max - format.exponent_min + 2u) << format.fraction_bits;
  if (std::isnan(value)) return infinity | 1u << (format.fraction_bits - 1);
  const unsigned sign = std::signbit(value) ? 0x8000u : 0;
  value = std::fabs(value);
  if (value == 0) return sign;
  if (std::isinf(value)) return sign | infinity;
  const int exponent = std::max(std::ilogb(value), format.exponent_min);
  // Units in the last place, 2^fraction_bits more than the fraction for a normal number; a carry moves up the exponent.
  const auto units = static_cast<unsigned>(std::nearbyint(std::ldexp(value, format.fraction_bits - exponent)));
  const unsigned bits = (static_cast<unsigned>(exponent - format.exponent_min) << format.fraction_bits) + units;
  return sign | std::min(bits, infinity);
}

/// a + b rounded to odd: a later rounding to fewer bits is then the rounding of the exact sum.
inline double sum_rounded_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double b_part = sum - a;
  const double rest = (a - (sum - b_part)) + (b - b_part);
  std::uint64_t bits;
  std::memcpy(&bits, &sum, 8);
  return rest != 0 && bits % 2 == 0 ? std::nextafter(sum, rest > 0 ? INFINITY : -INFINITY) : sum;
}

inline std::uint64_t read_integer(const unsigned char* from, int width) {
  std::uint64_t value = 0;
  for (int i = width - 1; i >= 0; --i) value = value << 8 | from[i];
  return value;
}

inline void write_integer(std::uint64_t value, int width, unsigned char* to) {
  for (int i = 0; i < width; ++i) to[i] = static_cast<unsigned char>(value >> (8 * i));
}

inline bool is_order(ElementMap move) {
  return move == ElementMap::minimum || move == ElementMap::maximum;
}

/// The minimum or maximum of values in which equal ones and the NaNs come last.
template <class T>
T chosen(ElementMap move, T target, T source) {
  if (target != target || source != source) return std::numeric_limits<T>::quiet_NaN();
  return (move == ElementMap::minimum ? target > source : target < source) ? source : target;
}

template <class T, class Wide>
void combine_real(ElementMap move, const unsigned char* source, unsigned char* target, int value_bytes) {
  T a, b;
  std::memcpy(&a, target, sizeof a);
  std::memcpy(&b, source, sizeof b);
  const Wide x = a, y = b;
  T out = is_order(move)                   ? chosen(move, a, b)
          : move == ElementMap::multiply   ? static_cast<T>(x * y)
          : move == ElementMap::accumulate ? static_cast<T>(x + y)
                                           : static_cast<T>(x - y);
  if (std::isnan(out)) out = std::numeric_limits<T>::quiet_NaN();
  std::memcpy(target, &out, value_bytes);
}

inline bool is_float(Arithmetic arithmetic) {
  return arithmetic >= Arithmetic::f16;
}

inline bool is_signed_integer(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::i8 || arithmetic == Arithmetic::i16 || arithmetic == Arithmetic::i32 ||
         arithmetic == Arithmetic::i64;
}

/// The value of an integer of any sign.
inline __int128 value_of(Arithmetic arithmetic, int width, std::uint64_t bits) {
  const __int128 value = bits;
  return is_signed_integer(arithmetic) && bits >> (8 * width - 1) ? value - (__int128(1) << (8 * width)) : value;
}

inline void combine_integer(ElementMap move, Arithmetic arithmetic, int width, const unsigned char* source,
                            unsigned char* target) {
  const std::uint64_t a = read_integer(target, width), b = read_integer(source, width);
  const bool is_less = value_of(arithmetic, width, b) < value_of(arithmetic, width, a);
  const std::uint64_t out = move == ElementMap::negate                 ? 0 - b
                            : move == ElementMap::accumulate           ? a + b
                            : move == ElementMap::accumulate_negated   ? a - b
                            : move == ElementMap::multiply             ? a * b
                            : is_less == (move == ElementMap::minimum) ? b
                                                                       : a;
  write_integer(out, width, target);
}

inline void combine_half(ElementMap move, HalfFormat format, const unsigned char* source, unsigned char* target) {
  const double a = decode(format, static_cast<unsigned>(read_integer(target, 2)));
  const double b = decode(format, static_cast<unsigned>(read_integer(source, 2)));
  const double out = is_order(move)                   ? chosen(move, a, b)
                     : move == ElementMap::multiply   ? a * b  // exact
                     : move == ElementMap::accumulate ? sum_rounded_to_odd(a, b)
                                                      : sum_rounded_to_odd(a, -b);
  write_integer(encode(format, out), 2, target);
}

/// One element.
inline void apply(ElementMap move, Arithmetic arithmetic, int width, const unsigned char* source,
                  unsigned char* target) {
  if (move == ElementMap::copy) {
    for (int i = 0; i < width; ++i) target[i] = source[i];
  } else if (move == ElementMap::negate && is_float(arithmetic)) {
    for (int i = 0; i < width; ++i) target[i] = source[i];
    target[arithmetic == Arithmetic::f128 ? 9 : width - 1] ^= 0x80;
  } else if (arithmetic == Arithmetic::bool8) {
    const bool is_or = move == ElementMap::accumulate || move == ElementMap::maximum;
    *target = is_or ? *target || *source : *target && *source;
  } else if (!is_float(arithmetic)) {
    combine_integer(move, arithmetic, width, source, target);
  } else if (width == 2) {
    combine_half(move, arithmetic == Arithmetic::f16 ? f16_format : bf16_format, source, target);
  } else if (arithmetic == Arithmetic::f32) {
    combine_real<float, double>(move, source, target, 4);  // 53 bits: the second rounding does no harm
  } else if (arithmetic == Arithmetic::f64) {
    combine_real<double, double>(move, source, target, 8);
  } else {
    combine_real<long double, long double>(move, source, target, 10);
  }
}

/// All elements of a block in its order.
inline void apply(const CopyBlock& block, ElementMap move, Arithmetic arithmetic, int width,
                  const unsigned char* source, unsigned char* target, int d = 0) {
  if (d == block.dims) return apply(move, arithmetic, width, source, target);
  for (long long i = 0; i < block.extents[d]; ++i)
    apply(block, move, arithmetic, width, source + i * block.source_strides[d], target + i * block.target_strides[d],
          d + 1);
}

/// The bytes that one side of a block touches, relative to its base: [lowest, highest).
struct Reach {
  long long lowest = 0;
  long long highest = 0;
};

inline Reach reach_of(const CopyBlock& block, const long long* strides, int width) {
  Reach reach{0, width};
  for (int d = 0; d < block.dims; ++d) {
    const long long last = strides[d] * (block.extents[d] - 1);
    if (block.extents[d] > 0) (last < 0 ? reach.lowest : reach.highest) += last;
  }
  return reach;
}

/// Random bytes, with numbers that tell roundings and special cases apart more often than chance would.
inline Bytes random_numbers(Random& random, std::size_t size_bytes, Arithmetic arithmetic) {
  Bytes bytes(size_bytes);
  for (std::size_t at = 0; at < size_bytes; at += 8) {
    const std::uint64_t some = random();
    std::memcpy(&bytes[at], &some, std::min<std::size_t>(8, size_bytes - at));
  }
  const int width = width_of(arithmetic);
  if (arithmetic == Arithmetic::bool8)
    for (unsigned char& byte : bytes)
      if (below(random, 2)) byte = 0;
  if (!is_float(arithmetic)) return bytes;
  // Exponents near one another, so that sums round; the rest stays wild.
  for (std::size_t i = 0; i + width <= size_bytes; i += width) {
    if (below(random, 8) == 0) continue;
    const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, std::nan("")};
    const bool is_special = below(random, 16) == 0;
    const double value =
        is_special ? specials[below(random, 5)]
                   : std::ldexp(static_cast<double>(static_cast<std::int64_t>(random())), -63 + below(random, 10));
    unsigned char* at = bytes.data() + i;
    if (width == 2) {
      write_integer(encode(arithmetic == Arithmetic::f16 ? f16_format : bf16_format, value), 2, at);
    } else if (width == 4) {
      const auto narrow = static_cast<float>(value);
      std::memcpy(at, &narrow, 4);
    } else if (width == 8) {
      std::memcpy(at, &value, 8);
    } else {
      const long double wide = is_special ? value : value + static_cast<long double>(random()) * 0x1p-120L;
      std::memcpy(at, &wide, 10);
    }
  }
  return bytes;
}

inline std::string describe(const CopyBlock& block) {
  std::string text = "extents/source/target strides:";
  for (int d = 0; d < block.dims; ++d)
    text += fmt::format(" {}/{}/{}", block.extents[d], block.source_strides[d], block.target_strides[d]);
  return text;
}

enum class Targets { distinct, any };

/// Up to 6 dimensions. Each side is laid out in an order of its own with random padding and signs, in whole elements or
/// in odd bytes; source strides may be zero. With `Targets::any`, target strides may be zero or overlap.
inline CopyBlock random_block(Random& random, int width, Targets targets) {
  CopyBlock block;
  block.dims = below(random, 7);
  for (int d = 0; d < block.dims; ++d) block.extents[d] = below(random, 40) == 0 ? 0 : 1 + below(random, 4);

  const auto lay_out = [&](long long* strides) {
    std::vector<int> order(block.dims);
    for (int d = 0; d < block.dims; ++d) order[d] = block.dims - 1 - d;
    if (below(random, 2)) std::shuffle(order.begin(), order.end(), random);
    const int padding_unit = below(random, 4) ? width : 1;
    const int padding_chance = 1 + below(random, 6);
    const int sign_chance = 1 + below(random, 6);
    long long stride = width;
    for (int d : order) {
      if (below(random, padding_chance + 1) == 0) stride += padding_unit * below(random, 4);
      strides[d] = below(random, sign_chance + 1) ? stride : -stride;
      stride *= std::max(block.extents[d], 1LL);
    }
  };
  const auto disturb = [&](long long* strides) {
    for (int d = 0; d < block.dims; ++d) {
      if (below(random, 3) == 0) strides[d] = 0;
      if (below(random, 6) == 0) strides[d] = width * (below(random, 9) - 4);
    }
  };
  lay_out(block.source_strides);
  lay_out(block.target_strides);
  if (below(random, 3) == 0) disturb(block.source_strides);
  if (targets == Targets::any && below(random, 2) == 0) disturb(block.target_strides);
  return block;
}

inline constexpr int guard_bytes = 48;

/// A buffer with guards on both sides of what a block reaches, and where the block's base lies in it.
struct Arena {
  Bytes bytes;
  std::size_t base = 0;

  unsigned char* at_base() { return bytes.data() + base; }
};

inline Arena arena_for(Random& random, const CopyBlock& block, const long long* strides, int width,
                       Arithmetic arithmetic) {
  const Reach reach = reach_of(block, strides, width);
  const int misalignment = below(random, 2) ? 0 : below(random, 16);
  const std::size_t base = static_cast<std::size_t>(guard_bytes + misalignment - reach.lowest);
  return {random_numbers(random, base + reach.highest + guard_bytes, arithmetic), base};
}

}  // namespace tranship::reference
