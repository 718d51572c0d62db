#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include <tranship/kernels/half.hpp>
#include <tranship/kernels/strided_copy.hpp>

#include "kernels/reference.hpp"
#include "support/thinned.hpp"

namespace tranship {
namespace {

using reference::Random;

/// One element moved by the kernel.
template <class T>
T moved(ElementMap how, Arithmetic arithmetic, T source, T target) {
  move(CopyBlock{}, how, arithmetic, sizeof(T), &source, &target);
  return target;
}

/// The same by the reference.
template <class T>
T referred(ElementMap how, Arithmetic arithmetic, T source, T target) {
  reference::apply(how, arithmetic, sizeof(T), reinterpret_cast<const unsigned char*>(&source),
                   reinterpret_cast<unsigned char*>(&target));
  return target;
}

bool is_nan_f16(unsigned bits) {
  return (bits & 0x7fffu) > 0x7c00u;
}
bool is_nan_bf16(unsigned bits) {
  return (bits & 0x7fffu) > 0x7f80u;
}

TEST(Half, every_f16_decodes_exactly_and_comes_back) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = float_of_f16(static_cast<unsigned short>(bits));
    if (is_nan_f16(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(f16_of_float(value), 0x7e00);
    } else {
      ASSERT_EQ(value, reference::decode(reference::f16_format, bits)) << bits;
      ASSERT_EQ(std::signbit(value), bits >= 0x8000u);
      ASSERT_EQ(f16_of_float(value), bits);
    }
  }
}

TEST(Half, every_bf16_decodes_exactly_and_comes_back) {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const float value = float_of_bf16(static_cast<unsigned short>(bits));
    if (is_nan_bf16(bits)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(bf16_of_float(value), 0x7fc0);
    } else {
      ASSERT_EQ(value, reference::decode(reference::bf16_format, bits)) << bits;
      ASSERT_EQ(std::signbit(value), bits >= 0x8000u);
      ASSERT_EQ(bf16_of_float(value), bits);
    }
  }
}

TEST(Half, known_values) {
  EXPECT_EQ(float_of_f16(0x3c00), 1.0f);
  EXPECT_EQ(float_of_f16(0x7bff), 65504.0f);
  EXPECT_EQ(float_of_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(f16_of_float(65519.996f), 0x7bff);
  EXPECT_EQ(f16_of_float(65520.0f), 0x7c00);
  EXPECT_EQ(f16_of_float(0x1p-25f), 0x0000);
  EXPECT_EQ(f16_of_float(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(f16_of_float(-0.0f), 0x8000);
  EXPECT_EQ(f16_of_float(0x1.ff8p-15f + 0x1p-26f), 0x03ff);
  EXPECT_EQ(f16_of_float(0x1.ffcp-15f), 0x0400);  // a tie that carries into the normal numbers
  EXPECT_EQ(float_of_bf16(0x3f80), 1.0f);
  EXPECT_EQ(bf16_of_float(0x1.01p0f), 0x3f80);
  EXPECT_EQ(bf16_of_float(0x1.03p0f), 0x3f82);
  EXPECT_EQ(bf16_of_float(0x1.fffffep127f), 0x7f80);
}

TEST(Half, floats_round_to_the_nearest_even_half) {
  const auto expect = [](float value) {
    ASSERT_EQ(f16_of_float(value), reference::encode(reference::f16_format, value)) << value;
    ASSERT_EQ(bf16_of_float(value), reference::encode(reference::bf16_format, value)) << value;
  };
  // Halfway between every two neighbours, and next to halfway on both sides.
  for (unsigned bits = 0; bits < 65536; ++bits) {
    for (auto decode : {float_of_f16, float_of_bf16}) {
      const float here = decode(static_cast<unsigned short>(bits));
      const float next = decode(static_cast<unsigned short>(bits + 1));
      if (!std::isfinite(here) || !std::isfinite(next)) continue;
      const float middle = here / 2 + next / 2;
      for (float value : {here, middle, std::nextafter(middle, here), std::nextafter(middle, next)}) expect(value);
      if (HasFatalFailure()) return;
    }
  }
  Random random(10);
  for (int i = 0; i < (test::is_sanitized ? 100'000 : 1'000'000); ++i) {
    expect(__builtin_bit_cast(float, static_cast<std::uint32_t>(random())));
    if (HasFatalFailure()) return;
  }
}

TEST(Arithmetic, halves_are_combined_as_if_rounded_once) {
  const unsigned short others_f16[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x1401, 0xb801, 0x3c00, 0x3c01,
                                       0xbc01, 0x6801, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7c01, 0xfe00};
  const unsigned short others_bf16[] = {0x0000, 0x8000, 0x0001, 0x807f, 0x0080, 0x3801, 0xbb81, 0x3f80, 0x3f81,
                                        0xbf81, 0x4301, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xffc0};
  test::Thinned thinned(11);
  for (unsigned bits = 0; bits < 65536; ++bits) {
    if (!thinned.takes_next()) continue;
    const auto a = static_cast<unsigned short>(bits);
    for (ElementMap how : {ElementMap::accumulate, ElementMap::accumulate_negated, ElementMap::multiply,
                           ElementMap::minimum, ElementMap::maximum}) {
      for (unsigned short b : others_f16)
        ASSERT_EQ(moved(how, Arithmetic::f16, a, b), referred(how, Arithmetic::f16, a, b)) << a << ' ' << b;
      for (unsigned short b : others_bf16)
        ASSERT_EQ(moved(how, Arithmetic::bf16, a, b), referred(how, Arithmetic::bf16, a, b)) << a << ' ' << b;
    }
  }
  Random random(11);
  for (int i = 0; i < 1'000'000; ++i) {
    const auto a = static_cast<unsigned short>(random());
    const auto b = static_cast<unsigned short>(a + reference::below(random, 0x3000) - 0x1800);
    const auto c = static_cast<unsigned short>(random());
    for (Arithmetic arithmetic : {Arithmetic::f16, Arithmetic::bf16}) {
      ASSERT_EQ(moved(ElementMap::accumulate, arithmetic, a, b), referred(ElementMap::accumulate, arithmetic, a, b))
          << a << ' ' << b;
      ASSERT_EQ(moved(ElementMap::multiply, arithmetic, a, c), referred(ElementMap::multiply, arithmetic, a, c))
          << a << ' ' << c;
    }
  }
}

TEST(Arithmetic, bytes_wrap_around_exhaustively) {
  for (int a = 0; a < 256; ++a)
    for (int b = 0; b < 256; ++b) {
      const auto source = static_cast<unsigned char>(a);
      const auto target = static_cast<unsigned char>(b);
      ASSERT_EQ(moved(ElementMap::accumulate, Arithmetic::i8, source, target), (a + b) % 256);
      ASSERT_EQ(moved(ElementMap::accumulate_negated, Arithmetic::i8, source, target), (b - a + 256) % 256);
      ASSERT_EQ(moved(ElementMap::negate, Arithmetic::i8, source, target), (256 - a) % 256);
    }
}

TEST(Arithmetic, integers_wrap_around) {
  EXPECT_EQ(moved<std::int16_t>(ElementMap::negate, Arithmetic::i16, INT16_MIN, 0), INT16_MIN);
  EXPECT_EQ(moved<std::int16_t>(ElementMap::accumulate, Arithmetic::i16, 1, INT16_MAX), INT16_MIN);
  EXPECT_EQ(moved<std::int32_t>(ElementMap::negate, Arithmetic::i32, INT32_MIN, 0), INT32_MIN);
  EXPECT_EQ(moved<std::int32_t>(ElementMap::accumulate, Arithmetic::i32, 1, INT32_MAX), INT32_MIN);
  EXPECT_EQ(moved<std::int64_t>(ElementMap::negate, Arithmetic::i64, INT64_MIN, 0), INT64_MIN);
  EXPECT_EQ(moved<std::int64_t>(ElementMap::accumulate_negated, Arithmetic::i64, 1, INT64_MIN), INT64_MAX);
  EXPECT_EQ(moved<std::uint64_t>(ElementMap::accumulate, Arithmetic::i64, 2, UINT64_MAX), 1u);
  EXPECT_EQ(moved<std::int64_t>(ElementMap::negate, Arithmetic::i64, 5, 77), -5);
}

TEST(Arithmetic, negation_flips_the_sign_bit_of_every_float) {
  const auto bits_of = [](auto value) { return __builtin_bit_cast(std::uint64_t, value); };
  EXPECT_EQ(moved(ElementMap::negate, Arithmetic::f64, 0x7ff0000000000001u, std::uint64_t{3}), 0xfff0000000000001u);
  EXPECT_EQ(bits_of(moved(ElementMap::negate, Arithmetic::f64, -0.0, 1.0)), bits_of(0.0));
  EXPECT_EQ(moved(ElementMap::negate, Arithmetic::f64, 1.5, 0.0), -1.5);
  EXPECT_EQ(moved(ElementMap::negate, Arithmetic::f32, 0x7f800001u, 3u), 0xff800001u);
  EXPECT_EQ(moved(ElementMap::negate, Arithmetic::f32, 1.5f, 0.0f), -1.5f);
  EXPECT_EQ(moved(ElementMap::negate, Arithmetic::f128, 1.5L, 0.0L), -1.5L);
  EXPECT_TRUE(std::signbit(moved(ElementMap::negate, Arithmetic::f128, 0.0L, 1.0L)));
  for (unsigned bits = 0; bits < 65536; ++bits)
    for (Arithmetic arithmetic : {Arithmetic::f16, Arithmetic::bf16})
      ASSERT_EQ(moved(ElementMap::negate, arithmetic, static_cast<std::uint16_t>(bits), std::uint16_t{7}),
                bits ^ 0x8000u);
}

TEST(Arithmetic, floats_add_and_subtract) {
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f32, 1.25f, 2.5f), 3.75f);
  EXPECT_EQ(moved(ElementMap::accumulate_negated, Arithmetic::f32, 1.25f, 2.5f), 1.25f);
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f64, 0x1p-53, 1.0), 1.0);
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f64, 0x1.8p-53, 1.0), 0x1.0000000000001p0);
  EXPECT_EQ(moved(ElementMap::accumulate_negated, Arithmetic::f64, 0x1p-1074, 0x1p-1022), 0x0.fffffffffffffp-1022);
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f128, 0x1p-63L, 1.0L), 1.0L + 0x1p-63L);
  EXPECT_EQ(moved(ElementMap::accumulate_negated, Arithmetic::f128, 0x1p-64L, 1.0L), 1.0L - 0x1p-64L);
}

TEST(Arithmetic, a_sum_that_is_not_a_number_is_one_quiet_nan) {
  const auto infinity_f32 = std::numeric_limits<float>::infinity();
  EXPECT_EQ(
      __builtin_bit_cast(std::uint32_t, moved(ElementMap::accumulate, Arithmetic::f32, -infinity_f32, infinity_f32)),
      0x7fc00000u);
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f32, 0xff812345u, 0x3f800000u), 0x7fc00000u);
  EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::f32, 0x3f800000u, 0xffc12345u), 0x7fc00000u);
  EXPECT_EQ(
      moved(ElementMap::accumulate_negated, Arithmetic::f64, std::uint64_t{0xfff8000000000123u}, std::uint64_t{0}),
      0x7ff8000000000000u);
  EXPECT_EQ(moved<std::uint16_t>(ElementMap::accumulate, Arithmetic::f16, 0xfc00, 0x7c00), 0x7e00);
  EXPECT_EQ(moved<std::uint16_t>(ElementMap::accumulate, Arithmetic::bf16, 0xff80, 0x7f80), 0x7fc0);
  const long double sum = moved(ElementMap::accumulate, Arithmetic::f128, -std::nanl("9"), 1.0L);
  EXPECT_TRUE(std::isnan(sum));
  EXPECT_FALSE(std::signbit(sum));
}

TEST(Arithmetic, integers_are_ordered_by_their_sign) {
  EXPECT_EQ(moved<std::int8_t>(ElementMap::minimum, Arithmetic::i8, -1, 1), -1);
  EXPECT_EQ(moved<std::uint8_t>(ElementMap::minimum, Arithmetic::u8, 255, 1), 1);
  EXPECT_EQ(moved<std::int16_t>(ElementMap::maximum, Arithmetic::i16, INT16_MIN, 0), 0);
  EXPECT_EQ(moved<std::uint16_t>(ElementMap::maximum, Arithmetic::u16, 0x8000, 0), 0x8000);
  EXPECT_EQ(moved<std::int32_t>(ElementMap::minimum, Arithmetic::i32, INT32_MIN, INT32_MAX), INT32_MIN);
  EXPECT_EQ(moved<std::uint32_t>(ElementMap::minimum, Arithmetic::u32, 0x80000000u, 0x7fffffffu), 0x7fffffffu);
  EXPECT_EQ(moved<std::int64_t>(ElementMap::maximum, Arithmetic::i64, -1, 1), 1);
  EXPECT_EQ(moved<std::uint64_t>(ElementMap::maximum, Arithmetic::u64, UINT64_MAX, 1), UINT64_MAX);
}

TEST(Arithmetic, products_wrap_around) {
  EXPECT_EQ(moved<std::int8_t>(ElementMap::multiply, Arithmetic::i8, -128, -1), -128);
  EXPECT_EQ(moved<std::uint16_t>(ElementMap::multiply, Arithmetic::u16, 0xffff, 0xffff), 1) << "an int would overflow";
  EXPECT_EQ(moved<std::int32_t>(ElementMap::multiply, Arithmetic::i32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(moved<std::uint64_t>(ElementMap::multiply, Arithmetic::u64, 1ull << 63, 3), 1ull << 63);
}

TEST(Arithmetic, bools_know_or_and_and) {
  for (const unsigned char a : {0, 1, 2, 255})
    for (const unsigned char b : {0, 1, 2, 255}) {
      EXPECT_EQ(moved(ElementMap::accumulate, Arithmetic::bool8, a, b), a || b);
      EXPECT_EQ(moved(ElementMap::maximum, Arithmetic::bool8, a, b), a || b);
      EXPECT_EQ(moved(ElementMap::multiply, Arithmetic::bool8, a, b), a && b);
      EXPECT_EQ(moved(ElementMap::minimum, Arithmetic::bool8, a, b), a && b);
    }
}

TEST(Arithmetic, a_minimum_with_a_nan_is_one_quiet_nan) {
  for (const ElementMap how : {ElementMap::minimum, ElementMap::maximum, ElementMap::multiply})
    for (const std::uint32_t nan : {0x7f800001u, 0xffc12345u}) {
      EXPECT_EQ(moved(how, Arithmetic::f32, nan, 0x3f800000u), 0x7fc00000u);
      EXPECT_EQ(moved(how, Arithmetic::f32, 0x3f800000u, nan), 0x7fc00000u);
      EXPECT_EQ(moved<std::uint16_t>(how, Arithmetic::f16, 0xfe01, 0x3c00), 0x7e00);
      EXPECT_EQ(moved<std::uint16_t>(how, Arithmetic::bf16, 0x3f80, 0xff81), 0x7fc0);
      EXPECT_TRUE(std::isnan(moved(how, Arithmetic::f128, std::nanl(""), 1.0L)));
      EXPECT_TRUE(std::isnan(moved(how, Arithmetic::f128, 1.0L, std::nanl(""))));
    }
  EXPECT_TRUE(std::signbit(moved(ElementMap::minimum, Arithmetic::f64, 0.0, -0.0))) << "the target's zero stays";
  EXPECT_FALSE(std::signbit(moved(ElementMap::minimum, Arithmetic::f64, -0.0, 0.0)));
}

TEST(Arithmetic, the_identity_changes_nothing) {
  Random random(17);
  for (const Arithmetic arithmetic : reference::numbers)
    for (const ElementMap how :
         {ElementMap::accumulate, ElementMap::multiply, ElementMap::minimum, ElementMap::maximum}) {
      const int width = width_of(arithmetic);
      const auto numbers = reference::random_numbers(random, 1'000 * width, arithmetic);
      for (int i = 0; i < 1'000; ++i) {
        // What a combination leaves: true as 1, a NaN as the quiet one, no zero below zero.
        unsigned char number[16] = {}, identity[16], other[16];
        std::memcpy(number, &numbers[i * width], arithmetic == Arithmetic::f128 ? 10 : width);
        write_identity(how, arithmetic, identity);
        const unsigned char zero[16] = {};
        move(CopyBlock{}, ElementMap::accumulate, arithmetic, width, zero, number);
        std::memcpy(other, number, width);
        move(CopyBlock{}, how, arithmetic, width, identity, other);
        ASSERT_EQ(std::memcmp(other, number, width), 0) << int(arithmetic) << ' ' << int(how);
        move(CopyBlock{}, how, arithmetic, width, number, identity);
        ASSERT_EQ(std::memcmp(identity, number, width), 0) << int(arithmetic) << ' ' << int(how);
      }
    }
}

TEST(Arithmetic, random_numbers_are_combined_like_the_reference) {
  Random random(12);
  for (Arithmetic arithmetic : reference::numbers) {
    const int width = width_of(arithmetic);
    for (ElementMap how : reference::moves_of(arithmetic)) {
      const int count = 20'000;
      const auto source = reference::random_numbers(random, count * width, arithmetic);
      auto target = reference::random_numbers(random, count * width, arithmetic);
      auto expected = target;
      for (int i = 0; i < count; ++i) {
        move(CopyBlock{}, how, arithmetic, width, &source[i * width], &target[i * width]);
        reference::apply(how, arithmetic, width, &source[i * width], &expected[i * width]);
      }
      ASSERT_EQ(target, expected) << "arithmetic " << static_cast<int>(arithmetic) << " move " << static_cast<int>(how);
    }
  }
}

TEST(Arithmetic, says_what_can_be_moved) {
  for (int width = -1; width <= 33; ++width) {
    const bool is_width = width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
    EXPECT_EQ(can_move(ElementMap::copy, Arithmetic::none, width), is_width);
    EXPECT_FALSE(can_move(ElementMap::negate, Arithmetic::none, width));
    EXPECT_EQ(can_move(ElementMap::accumulate, Arithmetic::bf16, width), width == 2);
    EXPECT_EQ(can_move(ElementMap::negate, Arithmetic::f128, width), width == 16);
    EXPECT_EQ(can_move(ElementMap::maximum, Arithmetic::bool8, width), width == 1);
    EXPECT_FALSE(can_move(ElementMap::negate, Arithmetic::bool8, width));
    EXPECT_FALSE(can_move(ElementMap::accumulate_negated, Arithmetic::bool8, width));
  }
}

}  // namespace
}  // namespace tranship
