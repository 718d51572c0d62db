// Private: The meaning of each elementwise function: one function object for every element type that has it.
#pragma once

#include <tranship/face/vsip/loops.hpp>

namespace tranship::vsip {

/// Integers wrap around, so they are computed in unsigned types.
template <class T>
using Wide = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

#define TRANSHIP_UNARY(NAME, EXPRESSION)         \
  inline constexpr auto op_##NAME = [](auto a) { \
    using T = decltype(a);                       \
    return T(EXPRESSION);                        \
  };
TRANSHIP_UNARY(acos, std::acos(a))
TRANSHIP_UNARY(asin, std::asin(a))
TRANSHIP_UNARY(atan, std::atan(a))
TRANSHIP_UNARY(cos, std::cos(a))
TRANSHIP_UNARY(cosh, std::cosh(a))
TRANSHIP_UNARY(exp10, std::pow(T(10), a))
TRANSHIP_UNARY(log10, std::log10(a))
TRANSHIP_UNARY(rsqrt, T(1) / std::sqrt(a))
TRANSHIP_UNARY(sin, std::sin(a))
TRANSHIP_UNARY(sinh, std::sinh(a))
TRANSHIP_UNARY(sq, a* a)
TRANSHIP_UNARY(tan, std::tan(a))
TRANSHIP_UNARY(tanh, std::tanh(a))
#undef TRANSHIP_UNARY

// Functions of real and of complex numbers.
#define TRANSHIP_UNARY(NAME)                     \
  struct Op_##NAME {                             \
    template <class T>                           \
    T operator()(T a) const {                    \
      return std::NAME(a);                       \
    }                                            \
    template <class T>                           \
    Cx<T> operator()(Cx<T> a) const {            \
      return Cx<T>::of(std::NAME(a.standard())); \
    }                                            \
  };                                             \
  inline constexpr Op_##NAME op_##NAME;
TRANSHIP_UNARY(exp)
TRANSHIP_UNARY(log)
TRANSHIP_UNARY(sqrt)
#undef TRANSHIP_UNARY
struct Op_recip {
  template <class T>
  T operator()(T a) const {
    return T(1) / a;
  }
  template <class T>
  Cx<T> operator()(Cx<T> a) const {
    return T(1) / a;
  }
};
inline constexpr Op_recip op_recip;
inline constexpr auto op_conj = [](auto a) { return conjugate(a); };

template <class T>
T negative(T a) {
  if constexpr (std::is_integral_v<T>)
    return T(Wide<T>(0) - Wide<T>(a));
  else
    return -a;
}
template <class T>
T magnitude(T a) {
  return a < T(0) ? negative(a) : a;
}
template <>
inline float magnitude(float a) {
  return std::fabs(a);
}
template <>
inline double magnitude(double a) {
  return std::fabs(a);
}
inline constexpr auto op_neg = [](auto a) { return negative(a); };
inline constexpr auto op_mag = [](auto a) { return magnitude(a); };
inline constexpr auto op_not = [](auto a) { return decltype(a)(~a); };

#define TRANSHIP_ARITHMETIC(NAME, SIGN)       \
  struct Op_##NAME {                          \
    template <class A, class B>               \
    auto operator()(A a, B b) const {         \
      if constexpr (std::is_integral_v<A>)    \
        return A(Wide<A>(a) SIGN Wide<A>(b)); \
      else                                    \
        return a SIGN b;                      \
    }                                         \
  };                                          \
  inline constexpr Op_##NAME op_##NAME;
TRANSHIP_ARITHMETIC(add, +)
TRANSHIP_ARITHMETIC(sub, -)
TRANSHIP_ARITHMETIC(mul, *)
#undef TRANSHIP_ARITHMETIC
inline constexpr auto op_div = [](auto a, auto b) { return a / b; };
// Conversions to whole numbers. Halves go to the even neighbour, in the rounding mode with which programs start.
inline constexpr auto op_floor = [](auto a) { return std::floor(a); };
inline constexpr auto op_ceil = [](auto a) { return std::ceil(a); };
inline constexpr auto op_round = [](auto a) { return std::nearbyint(a); };
inline constexpr auto op_jmul = [](auto a, auto b) { return a * conjugate(b); };
inline constexpr auto op_atan2 = [](auto a, auto b) { return std::atan2(a, b); };
inline constexpr auto op_hypot = [](auto a, auto b) { return std::hypot(a, b); };
inline constexpr auto op_max = [](auto a, auto b) { return a < b ? b : a; };
inline constexpr auto op_min = [](auto a, auto b) { return b < a ? b : a; };
inline constexpr auto op_maxmg = [](auto a, auto b) { return op_max(magnitude(a), magnitude(b)); };
inline constexpr auto op_minmg = [](auto a, auto b) { return op_min(magnitude(a), magnitude(b)); };
inline constexpr auto op_and = [](auto a, auto b) { return decltype(a)(a & b); };
inline constexpr auto op_or = [](auto a, auto b) { return decltype(a)(a | b); };
inline constexpr auto op_xor = [](auto a, auto b) { return decltype(a)(a ^ b); };
// Functions of Boolean values: every value but zero is true.
inline constexpr auto logic_and = [](vsip_scalar_bl a, vsip_scalar_bl b) { return vsip_scalar_bl(a && b); };
inline constexpr auto logic_or = [](vsip_scalar_bl a, vsip_scalar_bl b) { return vsip_scalar_bl(a || b); };
inline constexpr auto logic_xor = [](vsip_scalar_bl a, vsip_scalar_bl b) { return vsip_scalar_bl(!a != !b); };
inline constexpr auto op_leq = [](auto a, auto b) { return vsip_scalar_bl(a == b); };
inline constexpr auto op_lne = [](auto a, auto b) { return vsip_scalar_bl(a != b); };
inline constexpr auto op_lgt = [](auto a, auto b) { return vsip_scalar_bl(a > b); };
inline constexpr auto op_lge = [](auto a, auto b) { return vsip_scalar_bl(a >= b); };
inline constexpr auto op_llt = [](auto a, auto b) { return vsip_scalar_bl(a < b); };
inline constexpr auto op_lle = [](auto a, auto b) { return vsip_scalar_bl(a <= b); };

}  // namespace tranship::vsip
