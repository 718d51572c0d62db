#include <complex>
#include <cstring>
#include <limits>
#include <type_traits>

#include <tranship/base/fail.hpp>
#include <tranship/kernels/half.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship::detail {
namespace {

/// How a number is kept in memory and what it is computed in.
template <class T>
struct Plain {
  using Stored = T;
  using Value = T;
  static Value decode(Stored stored) { return stored; }
  static Stored encode(Value value) { return value; }
};
template <float (*to_float)(unsigned short), unsigned short (*of_float)(float)>
struct Half {
  using Stored = unsigned short;
  using Value = float;
  static Value decode(Stored stored) { return to_float(stored); }
  static Stored encode(Value value) { return of_float(value); }
};

template <class T>
constexpr bool is_float = std::is_floating_point_v<T>;

template <Combine combine, class T>
T identity() {
  using Limits = std::numeric_limits<T>;
  if constexpr (combine == Combine::sum) return T(0);
  if constexpr (combine == Combine::product) return T(1);
  if constexpr (combine == Combine::minimum) return is_float<T> ? Limits::infinity() : Limits::max();
  if constexpr (combine == Combine::maximum) return is_float<T> ? -Limits::infinity() : Limits::lowest();
}

template <Combine combine, class T>
T combined(T a, T b) {
  if constexpr (std::is_same_v<T, bool>) {
    return combine == Combine::sum || combine == Combine::maximum ? a || b : a && b;
  } else if constexpr (std::is_integral_v<T> && (combine == Combine::sum || combine == Combine::product)) {
    // Integers wrap; narrow ones must not be promoted to signed ones that overflow.
    const auto x = static_cast<std::uint64_t>(std::int64_t(a)), y = static_cast<std::uint64_t>(std::int64_t(b));
    return static_cast<T>(combine == Combine::sum ? x + y : x * y);
  } else if constexpr (combine == Combine::sum) {
    return a + b;
  } else if constexpr (combine == Combine::product) {
    return a * b;
  } else {
    if constexpr (is_float<T>) {
      if (a != a) return a;
      if (b != b) return b;
    }
    return (combine == Combine::minimum ? b < a : a < b) ? b : a;
  }
}

template <Combine combine, class Number>
struct Rows {
  using Stored = typename Number::Stored;

  static void fill(Index count, void* target) {
    const Stored element = Number::encode(identity<combine, typename Number::Value>());
    for (Index i = 0; i < count; ++i)
      std::memcpy(static_cast<char*>(target) + i * Index(sizeof element), &element, sizeof element);
  }
  static void add(Index count, const void* source, void* target) {
    for (Index i = 0; i < count; ++i) {
      Stored a, b;
      auto* at = static_cast<char*>(target) + i * Index(sizeof a);
      std::memcpy(&a, at, sizeof a);
      std::memcpy(&b, static_cast<const char*>(source) + i * Index(sizeof b), sizeof b);
      a = Number::encode(combined<combine>(Number::decode(a), Number::decode(b)));
      std::memcpy(at, &a, sizeof a);
    }
  }
};

/// Calls f(number type) for the type of an element.
template <class F>
void with_number(ElementType type, F&& f) {
  switch (type) {
    case ElementType::bool8:
      return f(Plain<bool>());
    case ElementType::i8:
      return f(Plain<std::int8_t>());
    case ElementType::u8:
      return f(Plain<std::uint8_t>());
    case ElementType::i16:
      return f(Plain<std::int16_t>());
    case ElementType::u16:
      return f(Plain<std::uint16_t>());
    case ElementType::f16:
      return f(Half<float_of_f16, f16_of_float>());
    case ElementType::bf16:
      return f(Half<float_of_bf16, bf16_of_float>());
    case ElementType::i32:
      return f(Plain<std::int32_t>());
    case ElementType::u32:
      return f(Plain<std::uint32_t>());
    case ElementType::f32:
      return f(Plain<float>());
    case ElementType::i64:
      return f(Plain<std::int64_t>());
    case ElementType::u64:
      return f(Plain<std::uint64_t>());
    case ElementType::f64:
      return f(Plain<double>());
    case ElementType::f128:
      return f(Plain<long double>());
    case ElementType::c64:
      return f(Plain<std::complex<float>>());
    case ElementType::c128:
      return f(Plain<std::complex<double>>());
    case ElementType::c256:
      return f(Plain<std::complex<long double>>());
  }
}

/// Calls f(rows) for a combination of elements of a type.
template <class F>
void with_rows(Combine combine, ElementType type, F&& f) {
  TRANSHIP_ASSERT(can_combine(combine, type));
  with_number(type, [&](auto number) {
    using Number = decltype(number);
    constexpr bool has_order = std::is_arithmetic_v<typename Number::Value>;
    if (combine == Combine::sum) return f(Rows<Combine::sum, Number>());
    if (combine == Combine::product) return f(Rows<Combine::product, Number>());
    if constexpr (has_order) {
      if (combine == Combine::minimum)
        f(Rows<Combine::minimum, Number>());
      else
        f(Rows<Combine::maximum, Number>());
    }
  });
}

}  // namespace

bool can_combine(Combine combine, ElementType type) {
  return !is_complex(type) || combine == Combine::sum || combine == Combine::product;
}

void write_identity(Combine combine, ElementType type, Index count, void* target) {
  with_rows(combine, type, [&](auto rows) { rows.fill(count, target); });
}

void combine_row(Combine combine, ElementType type, Index count, const void* source, void* target) {
  with_rows(combine, type, [&](auto rows) { rows.add(count, source, target); });
}

}  // namespace tranship::detail
