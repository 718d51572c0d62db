// Private: Loops over views of the same lengths. Dense layouts get loops that the compiler vectorises; all other
// strides share one general loop. Invariant: an element of the output is written after the inputs of that element are
// read, so an output may be one of the inputs.
#pragma once

#include <cmath>
#include <complex>
#include <cstdlib>
#include <utility>

#include <tranship/face/vsip/checks.hpp>

namespace tranship::vsip {

/// A complex number by value. Unlike std::complex, its products do not test for infinities.
template <class T>
struct Cx {
  T r, i;
  friend Cx operator+(Cx a, Cx b) { return {a.r + b.r, a.i + b.i}; }
  friend Cx operator-(Cx a, Cx b) { return {a.r - b.r, a.i - b.i}; }
  friend Cx operator*(Cx a, Cx b) { return {a.r * b.r - a.i * b.i, a.r * b.i + a.i * b.r}; }
  friend Cx operator/(Cx a, Cx b) { return of(a.standard() / b.standard()); }
  friend Cx operator+(T a, Cx b) { return {a + b.r, b.i}; }
  friend Cx operator-(T a, Cx b) { return {a - b.r, -b.i}; }
  friend Cx operator-(Cx a, T b) { return {a.r - b, a.i}; }
  friend Cx operator*(T a, Cx b) { return {a * b.r, a * b.i}; }
  friend Cx operator/(T a, Cx b) { return of(a / b.standard()); }
  friend Cx operator/(Cx a, T b) { return {a.r / b, a.i / b}; }
  friend Cx operator-(Cx a) { return {-a.r, -a.i}; }
  std::complex<T> standard() const { return {r, i}; }
  static Cx of(std::complex<T> z) { return {z.real(), z.imag()}; }
  T square() const { return r * r + i * i; }
};
template <class T>
Cx<T> conjugate(Cx<T> a) {
  return {a.r, -a.i};
}
template <class T>
T conjugate(T a) {
  return a;
}

inline Cx<float> value_of(vsip_cscalar_f a) {
  return {a.r, a.i};
}
inline Cx<double> value_of(vsip_cscalar_d a) {
  return {a.r, a.i};
}
template <class T>
T value_of(T a) {
  return a;
}
inline vsip_cscalar_f scalar_of(Cx<float> a) {
  return {a.r, a.i};
}
inline vsip_cscalar_d scalar_of(Cx<double> a) {
  return {a.r, a.i};
}
template <class T>
T scalar_of(T a) {
  return a;
}

template <class T>
struct CxRef {
  T& r;
  T& i;
  Cx<T> load() const { return {r, i}; }
  void store(Cx<T> a) const { r = a.r, i = a.i; }
};
template <class T>
struct Ref {
  T& at;
  T load() const { return at; }
  void store(T a) const { at = a; }
};

enum class Density : unsigned char { general, interleaved, split };

template <Density D, class T>
Ref<T> element(const Place<T, 1>& p, std::ptrdiff_t i) {
  return {p.data[D == Density::general ? i * p.strides[0] : i]};
}
template <Density D, class T, class C>
CxRef<T> element(const ComplexPlace<T, C, 1>& p, std::ptrdiff_t i) {
  if constexpr (D == Density::interleaved) return {p.re[2 * i], p.re[2 * i + 1]};
  const std::ptrdiff_t at = D == Density::general ? i * p.strides[0] : i;
  return {p.re[at], p.im[at]};
}

template <class T>
bool is_dense(const Place<T, 1>& p, Density) {
  return p.strides[0] == 1;
}
template <class T, class C>
bool is_dense(const ComplexPlace<T, C, 1>& p, Density density) {
  return density == Density::interleaved ? p.strides[0] == 2 && p.im == p.re + 1 : p.strides[0] == 1;
}

template <Density D, class F, class... P>
void run_row(vsip_length n, F& f, const P&... p) {
  const auto count = std::ptrdiff_t(n);
  if constexpr (D == Density::general) {
    for (std::ptrdiff_t i = 0; i < count; ++i) f(element<D>(p, i)...);
  } else {
    // An output is an input or does not overlap it, so no iteration depends on another one.
#if defined(__clang__)
#pragma clang loop vectorize(assume_safety)
#else
#pragma GCC ivdep
#endif
    for (std::ptrdiff_t i = 0; i < count; ++i) f(element<D>(p, i)...);
  }
}

template <class F, class... P>
void row(vsip_length n, F& f, const P&... p) {
  if ((is_dense(p, Density::interleaved) && ...)) return run_row<Density::interleaved>(n, f, p...);
  if constexpr ((P::complex || ...))
    if ((is_dense(p, Density::split) && ...)) return run_row<Density::split>(n, f, p...);
  run_row<Density::general>(n, f, p...);
}

template <class T, int N>
Place<T, 1> row_of(const Place<T, N>& p, int outer, std::ptrdiff_t i, int inner) {
  return {p.data + i * p.strides[outer], {p.strides[inner]}};
}
template <class T, class C, int N>
ComplexPlace<T, C, 1> row_of(const ComplexPlace<T, C, N>& p, int outer, std::ptrdiff_t i, int inner) {
  return {p.re + i * p.strides[outer], p.im + i * p.strides[outer], {p.strides[inner]}};
}

/// Returns the lines of a matrix, with the stride from line to line first; a vector is one line.
template <class T>
Place<T, 2> lines_of(const Place<T, 1>& p, int) {
  return {p.data, {0, p.strides[0]}};
}
template <class T, class C>
ComplexPlace<T, C, 2> lines_of(const ComplexPlace<T, C, 1>& p, int) {
  return {p.re, p.im, {0, p.strides[0]}};
}
template <class P>
P lines_of(P p, int inner) {
  if (inner == 0) std::swap(p.strides[0], p.strides[1]);
  return p;
}

/// Shared by vectors and matrices, so there is one copy of the loops for each operation and kind of elements.
template <class F, class... P>
[[gnu::noinline]] void walk(vsip_length lines, vsip_length length, F f, const P&... p) {
  if (((p.strides[0] == p.strides[1] * std::ptrdiff_t(length)) && ...)) length *= std::exchange(lines, 1);
  for (std::ptrdiff_t i = 0; i < std::ptrdiff_t(lines); ++i) row(length, f, row_of(p, 0, i, 1)...);
}

/// Calls f with a reference to each element of every view; the views have the lengths of the first one, whose strides
/// choose the order.
template <class F, class V, class... W>
void each(F f, const V& first, const W&... others) {
  const auto& n = first.dimensions;
  if constexpr (V::dims == 1) {
    walk(1, n[0].length, f, lines_of(place_of(first), 0), lines_of(place_of(others), 0)...);
  } else {
    const int inner = std::abs(n[0].stride) < std::abs(n[1].stride) ? 0 : 1;
    walk(n[1 - inner].length, n[inner].length, f, lines_of(place_of(first), inner),
         lines_of(place_of(others), inner)...);
  }
}

/// Stores the result of f on the other elements into the first one. It is a named type so that views of all shapes
/// share one instance of each loop.
template <class F>
struct Stored {
  F f;
  template <class To, class... From>
  void operator()(To to, From... from) const {
    to.store(f(from.load()...));
  }
};
/// Computes f(s, x); a named type for the same reason.
template <class F, class S>
struct WithScalar {
  F f;
  S s;
  template <class X>
  auto operator()(X x) const {
    return f(s, x);
  }
};

/// Computes out = f(in...), element by element, after the checks.
template <class F, class V, class... W>
void map(const char* call, F f, const V* out, const W*... in) {
  if (conform_in_place(call, out, in...)) each(Stored<F>{f}, *out, *in...);
}
/// Computes out = f(s, in), element by element, after the checks.
template <class F, class S, class V, class W>
void map_scalar(const char* call, F f, S s, const V* out, const W* in) {
  map(call, WithScalar<F, S>{f, s}, out, in);
}

/// Returns element i of a vector, or (i, j) of a matrix, as a reference.
template <class V>
auto reference(const V& view, const std::array<vsip_index, V::dims>& index) {
  const auto place = place_of(view);
  std::ptrdiff_t at = 0;
  for (int d = 0; d < V::dims; ++d) at += std::ptrdiff_t(index[d]) * place.strides[d];
  if constexpr (V::Block::complex) {
    using T = typename V::Block::Part;
    return CxRef<T>{place.re[at], place.im[at]};
  } else {
    return Ref<typename V::Element>{place.data[at]};
  }
}

/// Calls f(index, value) for each element, in the order of indices.
template <class F, class V>
void each_in_order(F f, const V& view) {
  if constexpr (V::dims == 1) {
    const auto place = place_of(view);
    for (vsip_index i = 0; i < view.dimensions[0].length; ++i)
      f(std::array<vsip_index, 1>{i}, element<Density::general>(place, std::ptrdiff_t(i)).load());
  } else {
    const auto place = place_of(view);
    for (vsip_index i = 0; i < view.dimensions[0].length; ++i) {
      const auto along = row_of(place, 0, std::ptrdiff_t(i), 1);
      for (vsip_index j = 0; j < view.dimensions[1].length; ++j)
        f(std::array<vsip_index, 2>{i, j}, element<Density::general>(along, std::ptrdiff_t(j)).load());
    }
  }
}

}  // namespace tranship::vsip
