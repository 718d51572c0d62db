// Sums, means, extremes and dot products. Sums of float are accumulated in double.
#include <algorithm>

#include <tranship/face/vsip/operations.hpp>

using namespace tranship::vsip;

namespace {

template <class T>
struct Accumulated {
  using Type =
      std::conditional_t<std::is_floating_point_v<T>, double, Wide<std::conditional_t<std::is_integral_v<T>, T, int>>>;
};

/// Returns the sum of f(element).
template <class S, class F, class V>
S sum(F f, const V& view) {
  S total{};
  each([&total, f](auto from) { total = total + f(from.load()); }, view);
  return total;
}

template <class T>
double wide(T a) {
  return a;
}
template <class T>
Cx<double> wide(Cx<T> a) {
  return {double(a.r), double(a.i)};
}
template <class T>
double squared(T a) {
  return double(a) * double(a);
}
template <class T>
double squared(Cx<T> a) {
  return double(a.r) * double(a.r) + double(a.i) * double(a.i);
}

template <class V>
double count_of(const V& view) {
  double count = 1;
  for (const auto& d : view.dimensions) count *= double(d.length);
  return count;
}

template <class V>
typename V::Element total(const char* call, const V* a) {
  using T = typename V::Element;
  if (!usable_view(call, a)) return T{};
  if constexpr (V::Block::complex) {
    const auto s = sum<Cx<double>>([](auto x) { return wide(x); }, *a);
    return {decltype(T::r)(s.r), decltype(T::r)(s.i)};
  } else {
    using S = typename Accumulated<T>::Type;
    return T(sum<S>([](auto x) { return S(x); }, *a));
  }
}

template <class V>
typename V::Element mean(const char* call, const V* a) {
  using T = typename V::Element;
  if (!usable_view(call, a)) return T{};
  if constexpr (V::Block::complex) {
    const auto s = sum<Cx<double>>([](auto x) { return wide(x); }, *a) / count_of(*a);
    return {decltype(T::r)(s.r), decltype(T::r)(s.i)};
  } else {
    return T(sum<double>([](auto x) { return double(x); }, *a) / count_of(*a));
  }
}

template <class T, class V>
T sum_of_squares(const char* call, const V* a) {
  return usable_view(call, a) ? T(sum<double>([](auto x) { return squared(x); }, *a)) : T{};
}
template <class T, class V>
T mean_of_squares(const char* call, const V* a) {
  return usable_view(call, a) ? T(sum<double>([](auto x) { return squared(x); }, *a) / count_of(*a)) : T{};
}

void set_index(vsip_index* to, const std::array<vsip_index, 1>& index) {
  *to = index[0];
}
void set_index(vsip_scalar_mi* to, const std::array<vsip_index, 2>& index) {
  *to = {index[0], index[1]};
}

/// Returns the key of the first element that no later element is better than; 0 for a view without elements.
template <class K, class F, class B, class V, class I>
K extreme(const char* call, F key, B better, const V* a, I* index) {
  if (!usable_view(call, a)) return K{};
  K best{};
  bool any = false;
  each_in_order(
      [&](auto at, auto value) {
        const K k = key(value);
        if (any && !better(k, best)) return;
        any = true;
        best = k;
        if (index) set_index(index, at);
      },
      *a);
  return best;
}

template <class V, class F>
vsip_index first_that_holds(const char* call, vsip_index from, F* holds, const V* a, const V* b) {
  if (!given(call, "function", reinterpret_cast<const void*>(holds)) || !conform(call, a, b)) return 0;
  vsip_index i = from;
  while (i < a->dimensions[0].length && !holds(reference(*a, {i}).load(), reference(*b, {i}).load())) ++i;
  return i;
}

constexpr auto itself = [](auto x) { return x; };
constexpr auto square = [](auto x) { return x.square(); };
constexpr auto larger = [](auto a, auto b) { return a > b; };
constexpr auto smaller = [](auto a, auto b) { return a < b; };

template <class V>
auto dot(const char* call, bool conjugated, const V* a, const V* b) {
  using T = typename V::Element;
  if (!conform(call, a, b)) return T{};
  using S = std::conditional_t<V::Block::complex, Cx<double>, double>;
  S s{};
  each(
      [&s, conjugated](auto x, auto y) {
        const auto right = wide(y.load());
        s = s + wide(x.load()) * (conjugated ? conjugate(right) : right);
      },
      *a, *b);
  if constexpr (V::Block::complex)
    return T{decltype(T::r)(s.r), decltype(T::r)(s.i)};
  else
    return T(s);
}

template <class V>
vsip_scalar_vi count_true(const char* call, const V* a) {
  return usable_view(call, a) ? sum<vsip_scalar_vi>([](auto x) { return vsip_scalar_vi(x != 0); }, *a) : 0;
}
template <class V>
vsip_scalar_vi element_count(const V& view) {
  vsip_scalar_vi count = 1;
  for (const auto& d : view.dimensions) count *= d.length;
  return count;
}

vsip_scalar_vi as_element(const std::array<vsip_index, 1>& index) {
  return index[0];
}
vsip_scalar_mi as_element(const std::array<vsip_index, 2>& index) {
  return {index[0], index[1]};
}

template <class V, class R>
vsip_length indices_of_true(const char* call, const V* a, R* r) {
  const vsip_scalar_vi count = count_true(call, a);
  if (count == 0 || !living_view(call, r)) return 0;
  if (checking && count > r->dimensions[0].length) {
    report(call, "%zu elements are true, and the vector for their indices has a length of %zu", count,
           r->dimensions[0].length);
    return 0;
  }
  if (!usable_view(call, r)) return 0;
  vsip_index next = 0;
  // Walks along the smaller stride, so that neighbours in memory come together.
  V walked = *a;
  bool turned = false;
  if constexpr (V::dims == 2) {
    turned = std::abs(a->dimensions[0].stride) < std::abs(a->dimensions[1].stride);
    if (turned) std::swap(walked.dimensions[0], walked.dimensions[1]);
  }
  each_in_order(
      [&](auto at, auto value) {
        if (turned) std::reverse(at.begin(), at.end());
        if (value) reference(*r, {next++}).store(as_element(at));
      },
      walked);
  r->dimensions[0].length = count;
  return count;
}

}  // namespace

#define TRANSHIP_VIEWS(S, I, T)                                                          \
  vsip_scalar_##T vsip_##S##sumval_##T(const vsip_##S##view_##T* a) {                    \
    return total("vsip_" #S "sumval_" #T, a);                                            \
  }                                                                                      \
  vsip_scalar_##T vsip_##S##maxval_##T(const vsip_##S##view_##T* a, I* index) {          \
    return extreme<vsip_scalar_##T>("vsip_" #S "maxval_" #T, itself, larger, a, index);  \
  }                                                                                      \
  vsip_scalar_##T vsip_##S##minval_##T(const vsip_##S##view_##T* a, I* index) {          \
    return extreme<vsip_scalar_##T>("vsip_" #S "minval_" #T, itself, smaller, a, index); \
  }
#define TRANSHIP_DEFINE(T) TRANSHIP_VIEWS(v, vsip_index, T) TRANSHIP_VIEWS(m, vsip_scalar_mi, T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#undef TRANSHIP_VIEWS

#define TRANSHIP_VIEWS(S, I, T)                                                               \
  vsip_scalar_##T vsip_##S##sumsqval_##T(const vsip_##S##view_##T* a) {                       \
    return sum_of_squares<vsip_scalar_##T>("vsip_" #S "sumsqval_" #T, a);                     \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##meanval_##T(const vsip_##S##view_##T* a) {                        \
    return mean("vsip_" #S "meanval_" #T, a);                                                 \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##meansqval_##T(const vsip_##S##view_##T* a) {                      \
    return mean_of_squares<vsip_scalar_##T>("vsip_" #S "meansqval_" #T, a);                   \
  }                                                                                           \
  vsip_cscalar_##T vsip_c##S##sumval_##T(const vsip_c##S##view_##T* a) {                      \
    return total("vsip_c" #S "sumval_" #T, a);                                                \
  }                                                                                           \
  vsip_cscalar_##T vsip_c##S##meanval_##T(const vsip_c##S##view_##T* a) {                     \
    return mean("vsip_c" #S "meanval_" #T, a);                                                \
  }                                                                                           \
  vsip_scalar_##T vsip_c##S##meansqval_##T(const vsip_c##S##view_##T* a) {                    \
    return mean_of_squares<vsip_scalar_##T>("vsip_c" #S "meansqval_" #T, a);                  \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##maxmgval_##T(const vsip_##S##view_##T* a, I* index) {             \
    return extreme<vsip_scalar_##T>("vsip_" #S "maxmgval_" #T, op_mag, larger, a, index);     \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##minmgval_##T(const vsip_##S##view_##T* a, I* index) {             \
    return extreme<vsip_scalar_##T>("vsip_" #S "minmgval_" #T, op_mag, smaller, a, index);    \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##cmaxmgsqval_##T(const vsip_c##S##view_##T* a, I* index) {         \
    return extreme<vsip_scalar_##T>("vsip_" #S "cmaxmgsqval_" #T, square, larger, a, index);  \
  }                                                                                           \
  vsip_scalar_##T vsip_##S##cminmgsqval_##T(const vsip_c##S##view_##T* a, I* index) {         \
    return extreme<vsip_scalar_##T>("vsip_" #S "cminmgsqval_" #T, square, smaller, a, index); \
  }
#define TRANSHIP_DEFINE(T)                                                               \
  TRANSHIP_VIEWS(v, vsip_index, T)                                                       \
  TRANSHIP_VIEWS(m, vsip_scalar_mi, T)                                                   \
  vsip_scalar_##T vsip_vdot_##T(const vsip_vview_##T* a, const vsip_vview_##T* b) {      \
    return dot("vsip_vdot_" #T, false, a, b);                                            \
  }                                                                                      \
  vsip_cscalar_##T vsip_cvdot_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b) {  \
    return dot("vsip_cvdot_" #T, false, a, b);                                           \
  }                                                                                      \
  vsip_cscalar_##T vsip_cvjdot_##T(const vsip_cvview_##T* a, const vsip_cvview_##T* b) { \
    return dot("vsip_cvjdot_" #T, true, a, b);                                           \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

vsip_scalar_vi vsip_vmaxval_vi(const vsip_vview_vi* a, vsip_index* index) {
  return extreme<vsip_scalar_vi>("vsip_vmaxval_vi", itself, larger, a, index);
}
vsip_scalar_vi vsip_vminval_vi(const vsip_vview_vi* a, vsip_index* index) {
  return extreme<vsip_scalar_vi>("vsip_vminval_vi", itself, smaller, a, index);
}

#define TRANSHIP_DEFINE(T)                                                                          \
  vsip_index vsip_vfirst_##T(vsip_index from, vsip_bool (*holds)(vsip_scalar_##T, vsip_scalar_##T), \
                             const vsip_vview_##T* a, const vsip_vview_##T* b) {                    \
    return first_that_holds("vsip_vfirst_" #T, from, holds, a, b);                                  \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
TRANSHIP_DEFINE(i)
TRANSHIP_DEFINE(li)
TRANSHIP_DEFINE(vi)
TRANSHIP_DEFINE(mi)
#undef TRANSHIP_DEFINE

vsip_scalar_bl vsip_valltrue_bl(const vsip_vview_bl* a) {
  return usable_view("vsip_valltrue_bl", a) && count_true("vsip_valltrue_bl", a) == element_count(*a);
}
vsip_scalar_bl vsip_malltrue_bl(const vsip_mview_bl* a) {
  return usable_view("vsip_malltrue_bl", a) && count_true("vsip_malltrue_bl", a) == element_count(*a);
}
vsip_scalar_bl vsip_vanytrue_bl(const vsip_vview_bl* a) {
  return count_true("vsip_vanytrue_bl", a) > 0;
}
vsip_scalar_bl vsip_manytrue_bl(const vsip_mview_bl* a) {
  return count_true("vsip_manytrue_bl", a) > 0;
}
vsip_scalar_vi vsip_vsumval_bl(const vsip_vview_bl* a) {
  return count_true("vsip_vsumval_bl", a);
}
vsip_scalar_vi vsip_msumval_bl(const vsip_mview_bl* a) {
  return count_true("vsip_msumval_bl", a);
}
vsip_length vsip_vindexbool(const vsip_vview_bl* a, vsip_vview_vi* r) {
  return indices_of_true("vsip_vindexbool", a, r);
}
vsip_length vsip_mindexbool(const vsip_mview_bl* a, vsip_vview_mi* r) {
  return indices_of_true("vsip_mindexbool", a, r);
}
#undef TRANSHIP_VIEWS
