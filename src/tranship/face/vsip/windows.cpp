// Window functions. The Chebyshev window is the inverse DFT of a Chebyshev polynomial of degree n - 1 (C. L. Dolph,
// 1946); the Kaiser window uses the modified Bessel function of order 0 by its power series.
#include <algorithm>
#include <numbers>
#include <vector>

#include <tranship/face/vsip/fft.hpp>
#include <tranship/face/vsip/guarded.hpp>
#include <tranship/face/vsip/loops.hpp>

using namespace tranship::vsip;

namespace {

constexpr double pi = std::numbers::pi;

/// Sets element i of the new vector w to value(i). The window is symmetric, so only its first half is computed.
template <class F, class V>
V* window(V* w, vsip_length n, F value) {
  if (!w) return nullptr;
  for (vsip_index i = 0; i < (n + 1) / 2; ++i) {
    const auto v = typename V::Element(value(double(i)));
    reference(*w, {i}).store(v);
    reference(*w, {n - 1 - i}).store(v);
  }
  return w;
}

/// Returns i / (n - 1), the position in a window of n elements. A window of one element is at its middle.
double position(double i, vsip_length n) {
  return n > 1 ? i / double(n - 1) : 0.5;
}

double bessel_i0(double x) {
  double term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-18; ++k) {
    term *= (x / (2 * k)) * (x / (2 * k));
    sum += term;
  }
  return sum;
}

/// Returns the Chebyshev polynomial of this degree at cosh(reach) * cos(angle), which is not negative. Uses half
/// angles, because near 1 the argument itself has too few digits.
double chebyshev(double degree, double reach, double angle) {
  const double up = std::sinh(reach / 2), down = std::sin(angle / 2);
  const double above = up * up * std::cos(angle) - down * down;  // half of the amount by which the argument exceeds 1
  if (above >= 0) return std::cosh(degree * 2 * std::asinh(std::sqrt(above)));
  return std::cos(degree * 2 * std::asin(std::sqrt(-above)));
}

/// Returns the samples of the window, in the vector that `create` makes; NULL when memory is short.
template <class F>
auto chebyshev_window(vsip_length n, double ripple_db, F create) {
  using W = decltype(create());
  if (n < 2) return window(create(), n, [](double) { return 1.0; });
  return guarded<W>(nullptr, [&]() -> W {
    const auto degree = double(n - 1);
    const double reach = std::acosh(std::pow(10.0, std::abs(ripple_db) / 20)) / degree;
    // This phase puts the middle of the window at (n - 1) / 2.
    std::vector<double> spectrum(n / 2 * 2 + 2), samples(n);
    for (vsip_index k = 0; k <= n / 2; ++k) {
      const double angle = pi * double(k) / double(n);
      const double value = (k % 2 ? -1 : 1) * chebyshev(degree, reach, angle);
      spectrum[2 * k] = value * std::cos(angle);
      spectrum[2 * k + 1] = value * std::sin(angle);
    }
    if (!real_signal(n, spectrum.data(), samples.data())) return nullptr;
    const double peak = *std::max_element(samples.begin(), samples.end());
    return window(create(), n, [&](double i) { return samples[std::size_t(i)] / peak; });
  });
}

}  // namespace

#define TRANSHIP_DEFINE(T)                                                                               \
  vsip_vview_##T* vsip_vcreate_blackman_##T(vsip_length n, vsip_memory_hint hint) {                      \
    return window(vsip_vcreate_##T(n, hint), n, [n](double i) {                                          \
      const double x = 2 * pi * position(i, n);                                                          \
      return 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x);                                          \
    });                                                                                                  \
  }                                                                                                      \
  vsip_vview_##T* vsip_vcreate_cheby_##T(vsip_length n, vsip_scalar_##T ripple, vsip_memory_hint hint) { \
    return chebyshev_window(n, double(ripple), [=] { return vsip_vcreate_##T(n, hint); });               \
  }                                                                                                      \
  vsip_vview_##T* vsip_vcreate_hanning_##T(vsip_length n, vsip_memory_hint hint) {                       \
    return window(vsip_vcreate_##T(n, hint), n,                                                          \
                  [n](double i) { return 0.5 * (1 - std::cos(2 * pi * (i + 1) / double(n + 1))); });     \
  }                                                                                                      \
  vsip_vview_##T* vsip_vcreate_hamming_##T(vsip_length n, vsip_memory_hint hint) {                       \
    return window(vsip_vcreate_##T(n, hint), n,                                                          \
                  [n](double i) { return 0.54 - 0.46 * std::cos(2 * pi * position(i, n)); });            \
  }                                                                                                      \
  vsip_vview_##T* vsip_vcreate_kaiser_##T(vsip_length n, vsip_scalar_##T beta, vsip_memory_hint hint) {  \
    return window(vsip_vcreate_##T(n, hint), n, [n, b = double(beta)](double i) {                        \
      const double x = 2 * position(i, n) - 1;                                                           \
      return bessel_i0(b * std::sqrt(std::max(0.0, 1 - x * x))) / bessel_i0(b);                          \
    });                                                                                                  \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
