// Detail: How a move treats an element: it copies or negates it, or combines it with the target's. Copying and negating
// touch only bits. Combinations give the same bits on host and device: integers wrap, floats round to nearest even, and
// any NaN result is the positive quiet NaN of its type, whatever the operands. A complex number is moved as two parts,
// in an extra innermost dimension; so it can be added, but not multiplied.
#pragma once

#include <tranship/base/reduction.hpp>
#include <tranship/kernels/half.hpp>
#include <tranship/kernels/shared.hpp>

namespace tranship {

/// How the bits of a number are interpreted.
enum class Arithmetic : unsigned char {
  none,   ///< only copied: bytes of any meaning
  bool8,  ///< nonzero is true; sum is "or", product is "and", false is less than true; cannot be negated
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f128,  ///< long double of the host; a device only copies and negates it, and code of NVRTC only copies it
};

/// Returns the size in bytes of the numbers of an arithmetic; 0 for none.
TRANSHIP_SHARED inline int width_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::none:
      return 0;
    case Arithmetic::bool8:
    case Arithmetic::i8:
    case Arithmetic::u8:
      return 1;
    case Arithmetic::i16:
    case Arithmetic::u16:
    case Arithmetic::f16:
    case Arithmetic::bf16:
      return 2;
    case Arithmetic::i32:
    case Arithmetic::u32:
    case Arithmetic::f32:
      return 4;
    case Arithmetic::i64:
    case Arithmetic::u64:
    case Arithmetic::f64:
      return 8;
    case Arithmetic::f128:
      return 16;
  }
  return 0;
}

/// Returns true if the host can move elements of `width` bytes in this way. Callers must check it; a kernel that gets
/// an impossible move traps.
TRANSHIP_SHARED inline bool can_move(ElementMap move, Arithmetic arithmetic, int width) {
  if (move == ElementMap::copy) return width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
  if (arithmetic == Arithmetic::bool8 && (move == ElementMap::negate || move == ElementMap::accumulate_negated))
    return false;
  return width > 0 && width == width_of(arithmetic);
}

namespace detail {

// A number type defines how values are read, combined and written, its lowest and highest values, and which byte holds
// the sign of a float.

/// Everything but the order works on unsigned integers, the `Wrapping` type.
template <class T, class Unsigned>
struct Integer {
  using Value = T;
  using Wrapping = Integer<Unsigned, Unsigned>;
  static constexpr int width = sizeof(T);

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return load<Value>(from); }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) { store(value, to); }
  TRANSHIP_SHARED static Value add(Value a, Value b) { return static_cast<Value>(a + b); }
  TRANSHIP_SHARED static Value subtract(Value a, Value b) { return static_cast<Value>(a - b); }
  // Shorts would be promoted to ints, whose product may overflow.
  TRANSHIP_SHARED static Value multiply(Value a, Value b) { return static_cast<Value>(1u * a * b); }
  TRANSHIP_SHARED static Value minimum(Value a, Value b) { return b < a ? b : a; }
  TRANSHIP_SHARED static Value maximum(Value a, Value b) { return a < b ? b : a; }
  TRANSHIP_SHARED static Value lowest() { return static_cast<Value>(T(-1) > T(0) ? 0 : ~(Unsigned(-1) / 2)); }
  TRANSHIP_SHARED static Value highest() { return static_cast<Value>(~static_cast<Unsigned>(lowest())); }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    write(static_cast<Value>(0u - read(source)), target);
  }
};

struct Flag {
  using Value = bool;
  using Wrapping = Flag;
  static constexpr int width = 1;

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return *from != 0; }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) { *to = value; }
  TRANSHIP_SHARED static Value add(Value a, Value b) { return a | b; }
  TRANSHIP_SHARED static Value multiply(Value a, Value b) { return a & b; }
  TRANSHIP_SHARED static Value minimum(Value a, Value b) { return a & b; }
  TRANSHIP_SHARED static Value maximum(Value a, Value b) { return a | b; }
  TRANSHIP_SHARED static Value lowest() { return false; }
  TRANSHIP_SHARED static Value highest() { return true; }
};

template <class Unsigned>
TRANSHIP_SHARED inline void flip_sign(const unsigned char* source, unsigned char* target) {
  constexpr Unsigned sign = static_cast<Unsigned>(Unsigned(1) << (8 * sizeof(Unsigned) - 1));
  store(static_cast<Unsigned>(load<Unsigned>(source) ^ sign), target);
}

inline constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u);
inline constexpr float quiet_nan = __builtin_bit_cast(float, 0x7fc00000u);

/// Common to all floats. A minimum or maximum with a NaN on either side is a NaN.
template <class Float>
struct FloatValues {
  using Value = Float;

  TRANSHIP_SHARED static Value add(Value a, Value b) { return a + b; }
  TRANSHIP_SHARED static Value subtract(Value a, Value b) { return a - b; }
  TRANSHIP_SHARED static Value multiply(Value a, Value b) { return a * b; }
  TRANSHIP_SHARED static Value minimum(Value a, Value b) { return ((b < a) | (b != b)) ? b : a; }
  TRANSHIP_SHARED static Value maximum(Value a, Value b) { return ((a < b) | (b != b)) ? b : a; }
  TRANSHIP_SHARED static Value lowest() { return -highest(); }
  TRANSHIP_SHARED static Value highest() { return static_cast<Value>(infinity); }
};

template <class Float, class Unsigned>
struct Real : FloatValues<Float> {
  using Value = Float;
  using Wrapping = Real;
  static constexpr int width = sizeof(Float);
  static_assert(sizeof(Float) == sizeof(Unsigned));

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return load<Value>(from); }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) {
    store(value == value ? value : static_cast<Value>(quiet_nan), to);
  }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    flip_sign<Unsigned>(source, target);
  }
};

/// `decode` and `encode` are those of half.hpp. Those of f16 are one instruction each on a device, which gives the same
/// bits except those of NaNs.
template <float (*decode)(unsigned short), unsigned short (*encode)(float)>
struct Half : FloatValues<float> {
  using Wrapping = Half;
  static constexpr int width = 2;

  TRANSHIP_SHARED static Value read(const unsigned char* from) {
    const auto half = load<unsigned short>(from);
#if defined(__CUDA_ARCH__)
    if constexpr (decode == float_of_f16) {
      float value;
      asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
      return value;
    }
#endif
    return decode(half);
  }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) {
#if defined(__CUDA_ARCH__)
    if constexpr (encode == f16_of_float) {
      unsigned short half;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
      return store(value == value ? half : encode(quiet_nan), to);
    }
#endif
    store(encode(value), to);
  }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    flip_sign<unsigned short>(source, target);
  }
};

#if !defined(TRANSHIP_DEVICE_ONLY)
/// long double. The x87 format has 10 bytes of value and 6 of padding. A combination keeps the target's padding, and a
/// negation copies the source's, so no byte depends on the contents of a register.
struct Extended : FloatValues<long double> {
  using Wrapping = Extended;
  static constexpr int width = 16;
  static constexpr int value_bytes = __LDBL_MANT_DIG__ == 64 ? 10 : 16;

  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    copy_bytes(target, source, width);
    target[value_bytes - 1] ^= 0x80;
  }
#if !defined(__CUDA_ARCH__)
  static_assert(sizeof(Value) == width && (__LDBL_MANT_DIG__ == 64 || __LDBL_MANT_DIG__ == 113));
  static Value read(const unsigned char* from) {
    return load<Value>(from);
  }
  static void write(Value value, unsigned char* to) {
    if (value != value) value = __builtin_nanl("");
    copy_bytes(to, &value, value_bytes);
  }
#endif
};
#endif

// The loops are instantiated by an element type: its width in bytes, and how one element moves.

template <int Width>
struct CopyElement {
  static constexpr int width = Width;
  static constexpr bool is_copy = true;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    copy_element<Width>(target, source);
  }
};

template <class Number>
struct NegateElement {
  static constexpr int width = Number::width;
  static constexpr bool is_copy = false;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    Number::negate(source, target);
  }
};

template <class Number, ElementMap move>
struct CombineElement {
  static constexpr int width = Number::width;
  static constexpr bool is_copy = false;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    const typename Number::Value a = Number::read(target), b = Number::read(source);
    if constexpr (move == ElementMap::accumulate) Number::write(Number::add(a, b), target);
    if constexpr (move == ElementMap::accumulate_negated) Number::write(Number::subtract(a, b), target);
    if constexpr (move == ElementMap::multiply) Number::write(Number::multiply(a, b), target);
    if constexpr (move == ElementMap::minimum) Number::write(Number::minimum(a, b), target);
    if constexpr (move == ElementMap::maximum) Number::write(Number::maximum(a, b), target);
  }
};

/// Calls `loop(element)` with the element type that copies `width` bytes.
template <class Loop>
TRANSHIP_SHARED inline void with_copy_element(int width, const Loop& loop) {
  switch (width) {
    case 1:
      return loop(CopyElement<1>{});
    case 2:
      return loop(CopyElement<2>{});
    case 4:
      return loop(CopyElement<4>{});
    case 8:
      return loop(CopyElement<8>{});
    case 16:
      return loop(CopyElement<16>{});
  }
  trap();
}

/// Calls `f(number)` with the number type of an arithmetic; traps for none.
template <class F>
TRANSHIP_SHARED inline void with_number(Arithmetic arithmetic, const F& f) {
  switch (arithmetic) {
    case Arithmetic::none:
      break;
    case Arithmetic::bool8:
      return f(Flag{});
    case Arithmetic::i8:
      return f(Integer<signed char, unsigned char>{});
    case Arithmetic::u8:
      return f(Integer<unsigned char, unsigned char>{});
    case Arithmetic::i16:
      return f(Integer<short, unsigned short>{});
    case Arithmetic::u16:
      return f(Integer<unsigned short, unsigned short>{});
    case Arithmetic::i32:
      return f(Integer<int, unsigned>{});
    case Arithmetic::u32:
      return f(Integer<unsigned, unsigned>{});
    case Arithmetic::i64:
      return f(Integer<long long, unsigned long long>{});
    case Arithmetic::u64:
      return f(Integer<unsigned long long, unsigned long long>{});
    case Arithmetic::f16:
      return f(Half<float_of_f16, f16_of_float>{});
    case Arithmetic::bf16:
      return f(Half<float_of_bf16, bf16_of_float>{});
    case Arithmetic::f32:
      return f(Real<float, unsigned>{});
    case Arithmetic::f64:
      return f(Real<double, unsigned long long>{});
    case Arithmetic::f128:
#if !defined(TRANSHIP_DEVICE_ONLY)
      return f(Extended{});
#else
      break;
#endif
  }
  trap();
}

/// A number type without `read` is only copied and negated.
template <class Number, class Loop>
TRANSHIP_SHARED inline void with_number_element(ElementMap move, const Loop& loop) {
  using Wrapping = typename Number::Wrapping;
  constexpr bool has_sign = requires {
    &Number::negate;
  };
  constexpr bool has_values = requires {
    &Number::read;
  };
  if constexpr (has_sign)
    if (move == ElementMap::negate) return loop(NegateElement<Wrapping>{});
  if constexpr (has_sign && has_values)
    if (move == ElementMap::accumulate_negated) return loop(CombineElement<Wrapping, ElementMap::accumulate_negated>{});
  if constexpr (has_values) {
    if (move == ElementMap::accumulate) return loop(CombineElement<Wrapping, ElementMap::accumulate>{});
    if (move == ElementMap::multiply) return loop(CombineElement<Wrapping, ElementMap::multiply>{});
    if (move == ElementMap::minimum) return loop(CombineElement<Number, ElementMap::minimum>{});
    if (move == ElementMap::maximum) return loop(CombineElement<Number, ElementMap::maximum>{});
  }
  trap();
}

/// Calls `loop(element)` with the element type of a move; traps unless `can_move` returns true.
template <class Loop>
TRANSHIP_SHARED inline void with_element(ElementMap move, Arithmetic arithmetic, int width, const Loop& loop) {
  if (!can_move(move, arithmetic, width)) trap();
  if (move == ElementMap::copy) return with_copy_element(width, loop);
  with_number(arithmetic, [&](auto number) { with_number_element<decltype(number)>(move, loop); });
}

template <class Number>
TRANSHIP_SHARED inline typename Number::Value identity(ElementMap move) {
  switch (move) {
    case ElementMap::accumulate:
    case ElementMap::accumulate_negated:
      return 0;
    case ElementMap::multiply:
      return 1;
    case ElementMap::minimum:
      return Number::highest();
    case ElementMap::maximum:
      return Number::lowest();
    case ElementMap::copy:
    case ElementMap::negate:
      break;
  }
  trap();
}

}  // namespace detail

/// Writes the identity of a combination: 0 for a sum, 1 for a product, the highest value for a minimum, the lowest for
/// a maximum (infinities for floats). Padding becomes zeros. Traps if the move does not combine or the arithmetic has
/// no numbers.
TRANSHIP_SHARED inline void write_identity(ElementMap move, Arithmetic arithmetic, void* target) {
  detail::with_number(arithmetic, [&](auto number) {
    using Number = decltype(number);
    const unsigned char zeros[Number::width] = {};
    detail::copy_bytes(target, zeros, Number::width);
    if constexpr (requires { &Number::read; })
      Number::write(detail::identity<Number>(move), static_cast<unsigned char*>(target));
    else
      detail::trap();
  });
}

}  // namespace tranship
