// Elementwise functions of several kinds of elements or of more than two operands; fills, clips, swaps, indexed copies.
#include <tranship/face/vsip/operations.hpp>

using namespace tranship::vsip;

namespace {

template <class V>
void swap_elements(const char* call, const V* a, const V* b) {
  if (!conform_in_place(call, a, b)) return;
  each(
      [](auto x, auto y) {
        const auto kept = x.load();
        x.store(y.load());
        y.store(kept);
      },
      *a, *b);
}

template <class V, class W>
void polar(const char* call, const V* a, const W* magnitude, const W* angle) {
  if (!conform_in_place(call, magnitude, a) || !conform_in_place(call, angle, a) ||
      !apart(call, Sharing::nothing, *magnitude, *angle))
    return;
  each(
      [](auto from, auto size, auto direction) {
        const auto z = from.load().standard();
        size.store(std::abs(z));
        direction.store(std::arg(z));
      },
      *a, *magnitude, *angle);
}

template <class V, class T>
void average(const char* call, T alpha, const V* a, const V* r) {
  map(
      call, [alpha](auto x, auto before) { return alpha * x + (T(1) - alpha) * before; }, r, a, r);
}

template <class V>
void ramp(const char* call, typename V::Element first, typename V::Element step, const V* r) {
  if (!usable_view(call, r)) return;
  using T = typename V::Element;
  const auto to = place_of(*r);
  for (vsip_index i = 0; i < r->dimensions[0].length; ++i) {
    T value;
    if constexpr (std::is_integral_v<T>)
      value = T(Wide<T>(first) + Wide<T>(Wide<T>(i) * Wide<T>(step)));
    else
      value = first + T(i) * step;
    to.data[std::ptrdiff_t(i) * to.strides[0]] = value;
  }
}

template <class V>
void clip(const char* call, const V* a, typename V::Element t1, typename V::Element t2, typename V::Element c1,
          typename V::Element c2, const V* r) {
  map(
      call, [=](auto x) { return x <= t1  ? c1
                                 : x < t2 ? x
                                          : c2; }, r, a);
}

template <class V>
void invert_clip(const char* call, const V* a, typename V::Element t1, typename V::Element t2, typename V::Element t3,
                 typename V::Element c1, typename V::Element c2, const V* r) {
  map(
      call, [=](auto x) { return x < t1    ? x
                                 : x < t2  ? c1
                                 : x <= t3 ? c2
                                           : x; }, r, a);
}

/// Rotates so that element n/2 comes first.
template <class V>
void rotate_halves(const V& view) {
  const vsip_length n = view.dimensions[0].length;
  if (n < 2) return;
  const vsip_length shift = n - n / 2;
  vsip_length moved = 0;
  for (vsip_index start = 0; moved < n; ++start) {  // one cycle of the rotation after the other
    auto carried = reference(view, {start}).load();
    vsip_index at = start;
    do {
      at = (at + shift) % n;
      const auto target = reference(view, {at});
      const auto next = target.load();
      target.store(carried);
      carried = next;
      ++moved;
    } while (at != start);
  }
}

template <class V>
void swap_halves(const char* call, const V* a) {
  if (!usable_view(call, a)) return;
  if constexpr (V::dims == 1) {
    rotate_halves(*a);
  } else {
    for (int along = 0; along < 2; ++along)
      for (vsip_index i = 0; i < a->dimensions[1 - along].length; ++i) {
        View<typename V::Block, 1> line;
        line.block = a->block;
        line.offset = a->offset + i * vsip_offset(a->dimensions[1 - along].stride);
        line.dimensions = {a->dimensions[along]};
        rotate_halves(line);
      }
  }
}

std::array<vsip_index, 1> position(vsip_scalar_vi index) {
  return {index};
}
std::array<vsip_index, 2> position(vsip_scalar_mi index) {
  return {index.r, index.c};
}

template <class V, class I>
bool indices_inside(const char* call, const V& view, const I& indices) {
  bool inside = true;
  if constexpr (checking)
    each_in_order(
        [&](auto, auto index) {
          for (int d = 0; d < V::dims && inside; ++d)
            inside = index_below(call, position(index)[d], view.dimensions[d].length);
        },
        indices);
  return inside;
}

template <class V, class I, class W>
void gather(const char* call, const V* a, const I* index, const W* r) {
  if (!usable_view(call, a) || !conform_in_place(call, r, index) || !indices_inside(call, *a, *index) ||
      !apart(call, Sharing::nothing, *r, *a))
    return;
  each_in_order([&](auto i, auto from) { reference(*r, i).store(reference(*a, position(from)).load()); }, *index);
}

template <class V, class W, class I>
void scatter(const char* call, const V* a, const W* r, const I* index) {
  if (!usable_view(call, r) || !conform(call, index, a) || !indices_inside(call, *r, *index) ||
      !apart(call, Sharing::nothing, *r, *a, *index))
    return;
  each_in_order([&](auto i, auto to) { reference(*r, position(to)).store(reference(*a, i).load()); }, *index);
}

}  // namespace

#define TRANSHIP_VIEWS(S, T)                                                                                          \
  void vsip_c##S##rsdiv_##T(const vsip_c##S##view_##T* a, vsip_scalar_##T s, const vsip_c##S##view_##T* r) {          \
    map(                                                                                                              \
        "vsip_c" #S "rsdiv_" #T, [s](auto x) { return x / s; }, r, a);                                                \
  }                                                                                                                   \
  void vsip_##S##sdiv_##T(const vsip_##S##view_##T* a, vsip_scalar_##T s, const vsip_##S##view_##T* r) {              \
    map(                                                                                                              \
        "vsip_" #S "sdiv_" #T, [s](auto x) { return x / s; }, r, a);                                                  \
  }                                                                                                                   \
  void vsip_cr##S##sub_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* b, const vsip_c##S##view_##T* r) { \
    map("vsip_cr" #S "sub_" #T, op_sub, r, a, b);                                                                     \
  }                                                                                                                   \
  void vsip_cr##S##div_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* b, const vsip_c##S##view_##T* r) { \
    map("vsip_cr" #S "div_" #T, op_div, r, a, b);                                                                     \
  }                                                                                                                   \
  void vsip_c##S##mag_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* r) {                                \
    map(                                                                                                              \
        "vsip_c" #S "mag_" #T, [](auto x) { return std::abs(x.standard()); }, r, a);                                  \
  }                                                                                                                   \
  void vsip_##S##cmagsq_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* r) {                              \
    map(                                                                                                              \
        "vsip_" #S "cmagsq_" #T, [](auto x) { return x.square(); }, r, a);                                            \
  }                                                                                                                   \
  void vsip_##S##arg_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* r) {                                 \
    map(                                                                                                              \
        "vsip_" #S "arg_" #T, [](auto x) { return std::atan2(x.i, x.r); }, r, a);                                     \
  }                                                                                                                   \
  void vsip_##S##real_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* r) {                                \
    map(                                                                                                              \
        "vsip_" #S "real_" #T, [](auto x) { return x.r; }, r, a);                                                     \
  }                                                                                                                   \
  void vsip_##S##imag_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* r) {                                \
    map(                                                                                                              \
        "vsip_" #S "imag_" #T, [](auto x) { return x.i; }, r, a);                                                     \
  }                                                                                                                   \
  void vsip_##S##cmaxmgsq_##T(const vsip_c##S##view_##T* a, const vsip_c##S##view_##T* b,                             \
                              const vsip_##S##view_##T* r) {                                                          \
    map(                                                                                                              \
        "vsip_" #S "cmaxmgsq_" #T, [](auto x, auto y) { return op_max(x.square(), y.square()); }, r, a, b);           \
  }                                                                                                                   \
  void vsip_##S##cminmgsq_##T(const vsip_c##S##view_##T* a, const vsip_c##S##view_##T* b,                             \
                              const vsip_##S##view_##T* r) {                                                          \
    map(                                                                                                              \
        "vsip_" #S "cminmgsq_" #T, [](auto x, auto y) { return op_min(x.square(), y.square()); }, r, a, b);           \
  }                                                                                                                   \
  void vsip_##S##cmplx_##T(const vsip_##S##view_##T* a, const vsip_##S##view_##T* b, const vsip_c##S##view_##T* r) {  \
    map(                                                                                                              \
        "vsip_" #S "cmplx_" #T,                                                                                       \
        [](auto x, auto y) {                                                                                          \
          return Cx<vsip_scalar_##T>{x, y};                                                                           \
        },                                                                                                            \
        r, a, b);                                                                                                     \
  }                                                                                                                   \
  void vsip_##S##euler_##T(const vsip_##S##view_##T* a, const vsip_c##S##view_##T* r) {                               \
    map(                                                                                                              \
        "vsip_" #S "euler_" #T,                                                                                       \
        [](auto x) {                                                                                                  \
          return Cx<vsip_scalar_##T>{std::cos(x), std::sin(x)};                                                       \
        },                                                                                                            \
        r, a);                                                                                                        \
  }                                                                                                                   \
  void vsip_##S##rect_##T(const vsip_##S##view_##T* magnitude, const vsip_##S##view_##T* angle,                       \
                          const vsip_c##S##view_##T* r) {                                                             \
    map(                                                                                                              \
        "vsip_" #S "rect_" #T,                                                                                        \
        [](auto x, auto y) {                                                                                          \
          return Cx<vsip_scalar_##T>{x * std::cos(y), x * std::sin(y)};                                               \
        },                                                                                                            \
        r, magnitude, angle);                                                                                         \
  }                                                                                                                   \
  void vsip_##S##polar_##T(const vsip_c##S##view_##T* a, const vsip_##S##view_##T* magnitude,                         \
                           const vsip_##S##view_##T* angle) {                                                         \
    polar("vsip_" #S "polar_" #T, a, magnitude, angle);                                                               \
  }
#define TRANSHIP_DEFINE(T) TRANSHIP_VIEWS(v, T) TRANSHIP_VIEWS(m, T)
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
#undef TRANSHIP_VIEWS

#define TRANSHIP_ROUND(N, A, B)                                                              \
  void vsip_v##N##_##A##_##B(const vsip_vview_##A* a, const vsip_vview_##B* r) {             \
    map(                                                                                     \
        "vsip_v" #N "_" #A "_" #B, [](auto x) { return vsip_scalar_##B(op_##N(x)); }, r, a); \
  }                                                                                          \
  void vsip_m##N##_##A##_##B(const vsip_mview_##A* a, const vsip_mview_##B* r) {             \
    map(                                                                                     \
        "vsip_m" #N "_" #A "_" #B, [](auto x) { return vsip_scalar_##B(op_##N(x)); }, r, a); \
  }
#define TRANSHIP_DEFINE(A, B) TRANSHIP_VSIP_ROUNDINGS(TRANSHIP_ROUND, A, B)
TRANSHIP_VSIP_ROUNDED_PAIRS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE

#define TRANSHIP_THREE(NAME, C, T, EXPRESSION)                                                       \
  void vsip_##C##v##NAME##_##T(const vsip_##C##vview_##T* a, const vsip_##C##vview_##T* b,           \
                               const vsip_##C##vview_##T* c, const vsip_##C##vview_##T* r) {         \
    map(                                                                                             \
        "vsip_" #C "v" #NAME "_" #T, [](auto x, auto y, auto z) { return EXPRESSION; }, r, a, b, c); \
  }
#define TRANSHIP_DEFINE(C, T)                                                                                          \
  TRANSHIP_THREE(am, C, T, (x + y) * z)                                                                                \
  TRANSHIP_THREE(ma, C, T, x* y + z)                                                                                   \
  TRANSHIP_THREE(msb, C, T, x* y - z)                                                                                  \
  TRANSHIP_THREE(sbm, C, T, (x - y) * z)                                                                               \
  void vsip_##C##vsam_##T(const vsip_##C##vview_##T* a, vsip_##C##scalar_##T s, const vsip_##C##vview_##T* c,          \
                          const vsip_##C##vview_##T* r) {                                                              \
    map(                                                                                                               \
        "vsip_" #C "vsam_" #T, [s](auto x, auto z) { return (x + value_of(s)) * z; }, r, a, c);                        \
  }                                                                                                                    \
  void vsip_##C##vsma_##T(const vsip_##C##vview_##T* a, vsip_##C##scalar_##T s, const vsip_##C##vview_##T* c,          \
                          const vsip_##C##vview_##T* r) {                                                              \
    map(                                                                                                               \
        "vsip_" #C "vsma_" #T, [s](auto x, auto z) { return x * value_of(s) + z; }, r, a, c);                          \
  }                                                                                                                    \
  void vsip_##C##vmsa_##T(const vsip_##C##vview_##T* a, const vsip_##C##vview_##T* b, vsip_##C##scalar_##T s,          \
                          const vsip_##C##vview_##T* r) {                                                              \
    map(                                                                                                               \
        "vsip_" #C "vmsa_" #T, [s](auto x, auto y) { return x * y + value_of(s); }, r, a, b);                          \
  }                                                                                                                    \
  void vsip_##C##vsmsa_##T(const vsip_##C##vview_##T* a, vsip_##C##scalar_##T s, vsip_##C##scalar_##T t,               \
                           const vsip_##C##vview_##T* r) {                                                             \
    map(                                                                                                               \
        "vsip_" #C "vsmsa_" #T, [s, t](auto x) { return x * value_of(s) + value_of(t); }, r, a);                       \
  }                                                                                                                    \
  void vsip_##C##vgather_##T(const vsip_##C##vview_##T* a, const vsip_vview_vi* index, const vsip_##C##vview_##T* r) { \
    gather("vsip_" #C "vgather_" #T, a, index, r);                                                                     \
  }                                                                                                                    \
  void vsip_##C##mgather_##T(const vsip_##C##mview_##T* a, const vsip_vview_mi* index, const vsip_##C##vview_##T* r) { \
    gather("vsip_" #C "mgather_" #T, a, index, r);                                                                     \
  }                                                                                                                    \
  void vsip_##C##vscatter_##T(const vsip_##C##vview_##T* a, const vsip_##C##vview_##T* r,                              \
                              const vsip_vview_vi* index) {                                                            \
    scatter("vsip_" #C "vscatter_" #T, a, r, index);                                                                   \
  }                                                                                                                    \
  void vsip_##C##mscatter_##T(const vsip_##C##vview_##T* a, const vsip_##C##mview_##T* r,                              \
                              const vsip_vview_mi* index) {                                                            \
    scatter("vsip_" #C "mscatter_" #T, a, r, index);                                                                   \
  }
TRANSHIP_DEFINE(, f)
TRANSHIP_DEFINE(, d)
TRANSHIP_DEFINE(c, f)
TRANSHIP_DEFINE(c, d)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(T)                                                                               \
  void vsip_vswap_##T(const vsip_vview_##T* a, const vsip_vview_##T* b) {                                \
    swap_elements("vsip_vswap_" #T, a, b);                                                               \
  }                                                                                                      \
  void vsip_vgather_##T(const vsip_vview_##T* a, const vsip_vview_vi* index, const vsip_vview_##T* r) {  \
    gather("vsip_vgather_" #T, a, index, r);                                                             \
  }                                                                                                      \
  void vsip_vscatter_##T(const vsip_vview_##T* a, const vsip_vview_##T* r, const vsip_vview_vi* index) { \
    scatter("vsip_vscatter_" #T, a, r, index);                                                           \
  }
TRANSHIP_VSIP_INTEGERS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
void vsip_vgather_vi(const vsip_vview_vi* a, const vsip_vview_vi* index, const vsip_vview_vi* r) {
  gather("vsip_vgather_vi", a, index, r);
}
void vsip_vgather_mi(const vsip_vview_mi* a, const vsip_vview_vi* index, const vsip_vview_mi* r) {
  gather("vsip_vgather_mi", a, index, r);
}

#define TRANSHIP_VIEWS(S, C, T)                                                                \
  void vsip_##C##S##expoavg_##T(vsip_scalar_##T alpha, const vsip_##C##S##view_##T* a,         \
                                const vsip_##C##S##view_##T* r) {                              \
    average("vsip_" #C #S "expoavg_" #T, alpha, a, r);                                         \
  }                                                                                            \
  void vsip_##C##S##swap_##T(const vsip_##C##S##view_##T* a, const vsip_##C##S##view_##T* b) { \
    swap_elements("vsip_" #C #S "swap_" #T, a, b);                                             \
  }                                                                                            \
  void vsip_##C##S##freqswap_##T(const vsip_##C##S##view_##T* a) {                             \
    swap_halves("vsip_" #C #S "freqswap_" #T, a);                                              \
  }
#define TRANSHIP_DEFINE(C, T) TRANSHIP_VIEWS(v, C, T) TRANSHIP_VIEWS(m, C, T)
TRANSHIP_DEFINE(, f)
TRANSHIP_DEFINE(, d)
TRANSHIP_DEFINE(c, f)
TRANSHIP_DEFINE(c, d)
#undef TRANSHIP_DEFINE

#define TRANSHIP_DEFINE(C, T)                                                      \
  void vsip_##C##vfill_##T(vsip_##C##scalar_##T s, const vsip_##C##vview_##T* r) { \
    map(                                                                           \
        "vsip_" #C "vfill_" #T, [s] { return value_of(s); }, r);                   \
  }                                                                                \
  void vsip_##C##mfill_##T(vsip_##C##scalar_##T s, const vsip_##C##mview_##T* r) { \
    map(                                                                           \
        "vsip_" #C "mfill_" #T, [s] { return value_of(s); }, r);                   \
  }
TRANSHIP_VSIP_MATRICES(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
void vsip_vfill_vi(vsip_scalar_vi s, const vsip_vview_vi* r) {
  map(
      "vsip_vfill_vi", [s] { return s; }, r);
}

#define TRANSHIP_DEFINE(T)                                                                                    \
  void vsip_vramp_##T(vsip_scalar_##T first, vsip_scalar_##T step, const vsip_vview_##T* r) {                 \
    ramp("vsip_vramp_" #T, first, step, r);                                                                   \
  }                                                                                                           \
  void vsip_vclip_##T(const vsip_vview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T c1,    \
                      vsip_scalar_##T c2, const vsip_vview_##T* r) {                                          \
    clip("vsip_vclip_" #T, a, t1, t2, c1, c2, r);                                                             \
  }                                                                                                           \
  void vsip_mclip_##T(const vsip_mview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T c1,    \
                      vsip_scalar_##T c2, const vsip_mview_##T* r) {                                          \
    clip("vsip_mclip_" #T, a, t1, t2, c1, c2, r);                                                             \
  }                                                                                                           \
  void vsip_vinvclip_##T(const vsip_vview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T t3, \
                         vsip_scalar_##T c1, vsip_scalar_##T c2, const vsip_vview_##T* r) {                   \
    invert_clip("vsip_vinvclip_" #T, a, t1, t2, t3, c1, c2, r);                                               \
  }                                                                                                           \
  void vsip_minvclip_##T(const vsip_mview_##T* a, vsip_scalar_##T t1, vsip_scalar_##T t2, vsip_scalar_##T t3, \
                         vsip_scalar_##T c1, vsip_scalar_##T c2, const vsip_mview_##T* r) {                   \
    invert_clip("vsip_minvclip_" #T, a, t1, t2, t3, c1, c2, r);                                               \
  }
TRANSHIP_VSIP_FLOATS(TRANSHIP_DEFINE)
TRANSHIP_VSIP_INTEGERS(TRANSHIP_DEFINE)
#undef TRANSHIP_DEFINE
void vsip_vramp_vi(vsip_scalar_vi first, vsip_scalar_vi step, const vsip_vview_vi* r) {
  ramp("vsip_vramp_vi", first, step, r);
}
#undef TRANSHIP_ROUND
#undef TRANSHIP_THREE
#undef TRANSHIP_VIEWS
