// What happens to an element on its way: copied, negated, added or subtracted. Copying and negating touch bits only;
// sums are exact to the bit on host and device alike: integers wrap, floats round to nearest even, and a sum that is
// not a number is the one positive quiet NaN of its type, whichever operand or instruction it came from. Complex
// numbers come as two parts, an extra innermost dimension.
#pragma once

#include <tranship/kernels/half.hpp>
#include <tranship/kernels/shared.hpp>

namespace tranship {

enum class Move : unsigned char {
  copy,                ///< target = source
  negate,              ///< target = -source; a float gets its sign bit flipped, zero and NaN too
  accumulate,          ///< target += source
  accumulate_negated,  ///< target -= source
};

/// How the bits of a number are understood. Signed and unsigned integers share one, for both wrap around alike.
enum class Arithmetic : unsigned char {
  none,  ///< only copied: bool, or bytes of any meaning
  i8,
  i16,
  i32,
  i64,
  f16,
  bf16,
  f32,
  f64,
  f128,  ///< long double of the host; a device copies and negates it, and cannot add it
};

/// Size in bytes of the numbers of an arithmetic; 0 for none.
TRANSHIP_SHARED inline int width_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::none:
      return 0;
    case Arithmetic::i8:
      return 1;
    case Arithmetic::i16:
    case Arithmetic::f16:
    case Arithmetic::bf16:
      return 2;
    case Arithmetic::i32:
    case Arithmetic::f32:
      return 4;
    case Arithmetic::i64:
    case Arithmetic::f64:
      return 8;
    case Arithmetic::f128:
      return 16;
  }
  return 0;
}

/// Whether elements of `width` bytes can be moved so on the host. Callers refuse what cannot; a kernel asked for it
/// traps.
TRANSHIP_SHARED inline bool can_move(Move move, Arithmetic arithmetic, int width) {
  if (move == Move::copy) return width == 1 || width == 2 || width == 4 || width == 8 || width == 16;
  return width > 0 && width == width_of(arithmetic);
}

namespace detail {

// A number type says how values are read, added, subtracted and written, and which byte holds the sign of a float.

template <class Unsigned>
struct Integer {
  using Value = Unsigned;
  static constexpr int width = sizeof(Unsigned);

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return load<Value>(from); }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) { store(value, to); }
  TRANSHIP_SHARED static Value add(Value a, Value b) { return static_cast<Value>(a + b); }
  TRANSHIP_SHARED static Value subtract(Value a, Value b) { return static_cast<Value>(a - b); }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    write(static_cast<Value>(0u - read(source)), target);
  }
};

template <class Unsigned>
TRANSHIP_SHARED inline void flip_sign(const unsigned char* source, unsigned char* target) {
  constexpr Unsigned sign = static_cast<Unsigned>(Unsigned(1) << (8 * sizeof(Unsigned) - 1));
  store(static_cast<Unsigned>(load<Unsigned>(source) ^ sign), target);
}

template <class Float, class Unsigned>
struct Real {
  using Value = Float;
  static constexpr int width = sizeof(Float);
  static_assert(sizeof(Float) == sizeof(Unsigned));

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return load<Value>(from); }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) {
    store(value == value ? value : static_cast<Value>(__builtin_nanf("")), to);
  }
  TRANSHIP_SHARED static Value add(Value a, Value b) { return a + b; }
  TRANSHIP_SHARED static Value subtract(Value a, Value b) { return a - b; }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    flip_sign<Unsigned>(source, target);
  }
};

template <float (*decode)(unsigned short), unsigned short (*encode)(float)>
struct Half {
  using Value = float;
  static constexpr int width = 2;

  TRANSHIP_SHARED static Value read(const unsigned char* from) { return decode(load<unsigned short>(from)); }
  TRANSHIP_SHARED static void write(Value value, unsigned char* to) { store(encode(value), to); }
  TRANSHIP_SHARED static Value add(Value a, Value b) { return a + b; }
  TRANSHIP_SHARED static Value subtract(Value a, Value b) { return a - b; }
  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    flip_sign<unsigned short>(source, target);
  }
};

/// long double. The x87 format has 10 bytes of value and 6 of padding: a sum leaves the padding of the target as it is,
/// a negation copies that of the source, so that no byte depends on what a register held.
struct Extended {
  using Value = long double;
  static constexpr int width = 16;
  static constexpr int value_bytes = __LDBL_MANT_DIG__ == 64 ? 10 : 16;

  TRANSHIP_SHARED static void negate(const unsigned char* source, unsigned char* target) {
    __builtin_memcpy(target, source, width);
    target[value_bytes - 1] ^= 0x80;
  }
#if !defined(__CUDA_ARCH__)
  static_assert(sizeof(Value) == width && (__LDBL_MANT_DIG__ == 64 || __LDBL_MANT_DIG__ == 113));
  static Value read(const unsigned char* from) {
    return load<Value>(from);
  }
  static void write(Value value, unsigned char* to) {
    if (value != value) value = __builtin_nanl("");
    __builtin_memcpy(to, &value, value_bytes);
  }
  static Value add(Value a, Value b) {
    return a + b;
  }
  static Value subtract(Value a, Value b) {
    return a - b;
  }
#endif
};

// An element type is what the loops are instantiated by: how many bytes, and how one of them moves.

template <int Width>
struct CopyElement {
  static constexpr int width = Width;
  static constexpr bool is_copy = true;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    __builtin_memcpy(target, source, Width);
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

template <class Number>
struct AddElement {
  static constexpr int width = Number::width;
  static constexpr bool is_copy = false;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    Number::write(Number::add(Number::read(target), Number::read(source)), target);
  }
};

template <class Number>
struct SubtractElement {
  static constexpr int width = Number::width;
  static constexpr bool is_copy = false;
  TRANSHIP_SHARED static void apply(const unsigned char* source, unsigned char* target) {
    Number::write(Number::subtract(Number::read(target), Number::read(source)), target);
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

template <class Number, class Loop>
TRANSHIP_SHARED inline void with_number_element(Move move, const Loop& loop) {
  switch (move) {
    case Move::copy:
      break;
    case Move::negate:
      return loop(NegateElement<Number>{});
    case Move::accumulate:
      return loop(AddElement<Number>{});
    case Move::accumulate_negated:
      return loop(SubtractElement<Number>{});
  }
  trap();
}

/// Calls `loop(element)` with the element type of a move; traps unless `can_move`.
template <class Loop>
TRANSHIP_SHARED inline void with_element(Move move, Arithmetic arithmetic, int width, const Loop& loop) {
  if (!can_move(move, arithmetic, width)) trap();
  if (move == Move::copy) return with_copy_element(width, loop);
  switch (arithmetic) {
    case Arithmetic::none:
      break;
    case Arithmetic::i8:
      return with_number_element<Integer<unsigned char>>(move, loop);
    case Arithmetic::i16:
      return with_number_element<Integer<unsigned short>>(move, loop);
    case Arithmetic::i32:
      return with_number_element<Integer<unsigned>>(move, loop);
    case Arithmetic::i64:
      return with_number_element<Integer<unsigned long long>>(move, loop);
    case Arithmetic::f16:
      return with_number_element<Half<float_of_f16, f16_of_float>>(move, loop);
    case Arithmetic::bf16:
      return with_number_element<Half<float_of_bf16, bf16_of_float>>(move, loop);
    case Arithmetic::f32:
      return with_number_element<Real<float, unsigned>>(move, loop);
    case Arithmetic::f64:
      return with_number_element<Real<double, unsigned long long>>(move, loop);
    case Arithmetic::f128:
#if defined(__CUDA_ARCH__)
      if (move == Move::negate) return loop(NegateElement<Extended>{});
      break;
#else
      return with_number_element<Extended>(move, loop);
#endif
  }
  trap();
}

}  // namespace detail
}  // namespace tranship
