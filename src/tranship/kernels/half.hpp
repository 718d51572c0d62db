// Detail: Converts the two 16-bit floats, as bits, from and to f32. The conversion from 16 bits is exact. The
// conversion to 16 bits rounds to nearest even, keeps the sign of zero, overflows to infinity, and turns every NaN into
// the positive quiet NaN of the type. A sum or product of two f16 or bf16 may be computed in f32: with 24 bits (at
// least 2p + 2) the second rounding is harmless.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// IEEE half precision: 1 sign, 5 exponent, 10 fraction bits.
TRANSHIP_SHARED inline float float_of_f16(unsigned short half) {
  const unsigned sign = (half & 0x8000u) << 16;
  const unsigned magnitude = half & 0x7fffu;
  if (magnitude < 0x400u) {  // zero and subnormals count units of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return sign ? -value : value;
  }
  // The exponent bias changes from 15 to 127; the largest exponent means infinity or NaN in both.
  const unsigned rebias = magnitude < 0x7c00u ? 127u - 15u : 255u - 31u;
  return __builtin_bit_cast(float, sign | ((magnitude << 13) + (rebias << 23)));
}

TRANSHIP_SHARED inline unsigned short f16_of_float(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  const unsigned sign = bits >> 16 & 0x8000u;
  const unsigned magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return 0x7e00;
  if (magnitude >= 0x477ff000u) return static_cast<unsigned short>(sign | 0x7c00u);  // 65520 and more, halfway to 2^16
  if (magnitude < 0x38800000u) {
    // Below 2^-14 the result counts units of 2^-24, which is also the unit of floats in [0.5, 1): the addition rounds.
    const float aligned = __builtin_bit_cast(float, magnitude) + 0.5f;
    return static_cast<unsigned short>(sign | (__builtin_bit_cast(unsigned, aligned) - 0x3f000000u));
  }
  const unsigned rounded = magnitude + 0xfffu + (magnitude >> 13 & 1u);
  return static_cast<unsigned short>(sign | (rounded - ((127u - 15u) << 23)) >> 13);
}

/// bfloat16 is the upper half of an f32.
TRANSHIP_SHARED inline float float_of_bf16(unsigned short half) {
  return __builtin_bit_cast(float, static_cast<unsigned>(half) << 16);
}

TRANSHIP_SHARED inline unsigned short bf16_of_float(float value) {
  const unsigned bits = __builtin_bit_cast(unsigned, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fc0;
  return static_cast<unsigned short>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

}  // namespace tranship
