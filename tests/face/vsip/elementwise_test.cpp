// Every elementwise function of the tables of vsip.h, for every type, in every layout, beside plain double arithmetic.
#include <functional>

#include <gtest/gtest.h>

#include "layouts.hpp"

namespace {

using namespace vsip_test;
using Complex = std::complex<double>;

/// What the functions mean, of doubles and complex doubles.
#define REFERENCE(N, ...) [[maybe_unused]] constexpr auto ref_##N = __VA_ARGS__;
REFERENCE(acos, [](double a) { return std::acos(a); })
REFERENCE(asin, [](double a) { return std::asin(a); })
REFERENCE(atan, [](double a) { return std::atan(a); })
REFERENCE(cos, [](double a) { return std::cos(a); })
REFERENCE(cosh, [](double a) { return std::cosh(a); })
REFERENCE(exp, [](auto a) { return std::exp(a); })
REFERENCE(exp10, [](double a) { return std::exp(a * std::log(10.0)); })
REFERENCE(log, [](auto a) { return std::log(a); })
REFERENCE(log10, [](double a) { return std::log10(a); })
REFERENCE(mag, [](double a) { return a < 0 ? -a : a; })
REFERENCE(neg, [](auto a) { return -a; })
REFERENCE(recip, [](auto a) { return 1.0 / a; })
REFERENCE(rsqrt, [](double a) { return std::pow(a, -0.5); })
REFERENCE(sin, [](double a) { return std::sin(a); })
REFERENCE(sinh, [](double a) { return std::sinh(a); })
REFERENCE(sq, [](double a) { return a * a; })
REFERENCE(sqrt, [](auto a) { return std::sqrt(a); })
REFERENCE(tan, [](double a) { return std::tan(a); })
REFERENCE(tanh, [](double a) { return std::tanh(a); })
REFERENCE(conj, [](Complex a) { return std::conj(a); })
REFERENCE(add, [](auto a, auto b) { return a + b; })
REFERENCE(sub, [](auto a, auto b) { return a - b; })
REFERENCE(mul, [](auto a, auto b) { return a * b; })
REFERENCE(div, [](auto a, auto b) { return a / b; })
REFERENCE(jmul, [](Complex a, Complex b) { return a * std::conj(b); })
REFERENCE(atan2, [](double a, double b) { return std::atan2(a, b); })
REFERENCE(hypot, [](double a, double b) { return std::sqrt(a * a + b * b); })
REFERENCE(max, [](double a, double b) { return a > b ? a : b; })
REFERENCE(min, [](double a, double b) { return a > b ? b : a; })
REFERENCE(maxmg, [](double a, double b) { return std::fmax(std::fabs(a), std::fabs(b)); })
REFERENCE(minmg, [](double a, double b) { return std::fmin(std::fabs(a), std::fabs(b)); })
REFERENCE(and, [](double a, double b) { return double((long long)(a) & (long long)(b)); })
REFERENCE(or, [](double a, double b) { return double((long long)(a) | (long long)(b)); })
REFERENCE(xor, [](double a, double b) {
  return double((long long)(a) ^ (long long)(b));
})
REFERENCE(not, [](double a) { return double(-1 - (long long)(a)); })
REFERENCE(leq, [](double a, double b) { return double(a == b); })
REFERENCE(lne, [](double a, double b) { return double(!(a == b)); })
REFERENCE(lgt, [](double a, double b) { return double(b < a); })
REFERENCE(lge, [](double a, double b) { return double(!(a < b)); })
REFERENCE(llt, [](double a, double b) { return double(a < b); })
REFERENCE(lle, [](double a, double b) { return double(!(b < a)); })

/// A result as the element type holds it: integers wrap around.
template <class View>
auto stored(typename Calls<View>::Value value) {
  using Scalar = typename Calls<View>::Scalar;
  if constexpr (std::is_integral_v<Scalar>) {
    return double(Scalar((unsigned long long)((long long)(value))));
  } else {
    return value;
  }
}

template <class View>
constexpr double tolerance = std::is_same_v<typename Calls<View>::Scalar, float> ? 2e-5 : 1e-12;

template <class Out, class Call, class Reference, class... In>
void check_layouts(const char* name, Call call, Reference reference, vsip_length rows, const Layout& out_layout,
                   Array<In>&... in) {
  Array<Out> out(out_layout, rows, 7);
  call(out.view(), in.view()...);
  for (vsip_length i = 0; i < rows; ++i)
    for (vsip_length j = 0; j < 7; ++j) {
      const auto expected = stored<Out>(typename Calls<Out>::Value(reference(in.get(i, j)...)));
      ASSERT_TRUE(near(out.get(i, j), expected, tolerance<Out>))
          << name << " to " << out_layout.name << " at " << i << ", " << j << ": " << out.get(i, j) << " instead of "
          << expected;
    }
  ASSERT_EQ(out.damaged_guards(), 0) << name;
}

template <class View, class Values = std::identity>
void fill(Array<View>& array, int which, vsip_length rows, Values values = {}) {
  for (vsip_length i = 0; i < rows; ++i)
    for (vsip_length j = 0; j < 7; ++j) array.set(i, j, values(value<View>(which, i * 7 + j)));
}

/// out = call(in...) in all layouts of the output, with inputs of other layouts, and in place.
template <class Out, class In, class Call, class Reference, class Values = std::identity>
void check_one(const char* name, vsip_length rows, Call call, Reference reference, Values values = {}) {
  for (int k = 0; k < layout_count; ++k) {
    Array<In> a(layouts[(k + 1) % layout_count], rows, 7);
    fill(a, 0, rows, values);
    check_layouts<Out>(name, call, reference, rows, layouts[k], a);
    Array<In> same(layouts[k], rows, 7);
    fill(same, 0, rows, values);
    check_layouts<Out>(name, call, reference, rows, layouts[k], same);
    if constexpr (std::is_same_v<In, Out>) {
      call(same.view(), same.view());
      for (vsip_length i = 0; i < rows; ++i)
        for (vsip_length j = 0; j < 7; ++j)
          ASSERT_TRUE(near(same.get(i, j), stored<Out>(reference(a.get(i, j))), tolerance<Out>))
              << name << " in place, " << layouts[k].name;
    }
  }
}
template <class Out, class A, class B, class Call, class Reference>
void check_two(const char* name, vsip_length rows, Call call, Reference reference) {
  for (int k = 0; k < layout_count; ++k) {
    Array<A> a(layouts[(k + 1) % layout_count], rows, 7);
    Array<B> b(layouts[(k + 3) % layout_count], rows, 7);
    fill(a, 0, rows);
    fill(b, 1, rows);
    b.set(rows - 1, 2, typename Calls<B>::Value(1.0));
    check_layouts<Out>(name, call, reference, rows, layouts[k], a, b);
    Array<A> like_a(layouts[k], rows, 7);
    Array<B> like_b(layouts[k], rows, 7);
    fill(like_a, 0, rows);
    fill(like_b, 1, rows);
    check_layouts<Out>(name, call, reference, rows, layouts[k], like_a, like_b);
    if constexpr (std::is_same_v<B, Out>) {
      Array<B> kept(layouts[0], rows, 7);
      fill(kept, 1, rows);
      call(like_b.view(), like_a.view(), like_b.view());
      for (vsip_length i = 0; i < rows; ++i)
        for (vsip_length j = 0; j < 7; ++j)
          ASSERT_TRUE(near(like_b.get(i, j), stored<Out>(reference(like_a.get(i, j), kept.get(i, j))), tolerance<Out>))
              << name << " in place, " << layouts[k].name;
    }
  }
}

#define UNARY(N, T)                                                              \
  check_one<vsip_vview_##T, vsip_vview_##T>(                                     \
      "v" #N "_" #T, 1, [](auto r, auto a) { vsip_v##N##_##T(a, r); }, ref_##N); \
  check_one<vsip_mview_##T, vsip_mview_##T>(                                     \
      "m" #N "_" #T, 5, [](auto r, auto a) { vsip_m##N##_##T(a, r); }, ref_##N);
#define BINARY(N, T)                                                                        \
  check_two<vsip_vview_##T, vsip_vview_##T, vsip_vview_##T>(                                \
      "v" #N "_" #T, 1, [](auto r, auto a, auto b) { vsip_v##N##_##T(a, b, r); }, ref_##N); \
  check_two<vsip_mview_##T, vsip_mview_##T, vsip_mview_##T>(                                \
      "m" #N "_" #T, 5, [](auto r, auto a, auto b) { vsip_m##N##_##T(a, b, r); }, ref_##N);
#define SCALAR(N, T)                                                                                                   \
  check_one<vsip_vview_##T, vsip_vview_##T>(                                                                           \
      "sv" #N "_" #T, 1, [](auto r, auto a) { vsip_sv##N##_##T(3, a, r); }, [](double x) { return ref_##N(3.0, x); }); \
  check_one<vsip_mview_##T, vsip_mview_##T>(                                                                           \
      "sm" #N "_" #T, 5, [](auto r, auto a) { vsip_sm##N##_##T(3, a, r); }, [](double x) { return ref_##N(3.0, x); });
#define COMPARE(N, T)                                                                                                  \
  check_two<vsip_vview_bl, vsip_vview_##T, vsip_vview_##T>(                                                            \
      "v" #N "_" #T, 1, [](auto r, auto a, auto b) { vsip_v##N##_##T(a, b, r); }, ref_##N);                            \
  check_two<vsip_mview_bl, vsip_mview_##T, vsip_mview_##T>(                                                            \
      "m" #N "_" #T, 5, [](auto r, auto a, auto b) { vsip_m##N##_##T(a, b, r); }, ref_##N);                            \
  check_one<vsip_vview_bl, vsip_vview_##T>(                                                                            \
      "sv" #N "_" #T, 1, [](auto r, auto a) { vsip_sv##N##_##T(3, a, r); }, [](double x) { return ref_##N(3.0, x); }); \
  check_one<vsip_mview_bl, vsip_mview_##T>(                                                                            \
      "sm" #N "_" #T, 5, [](auto r, auto a) { vsip_sm##N##_##T(3, a, r); }, [](double x) { return ref_##N(3.0, x); });
#define CUNARY(N, T)                                                     \
  check_one<vsip_cvview_##T, vsip_cvview_##T>(                           \
      "cv" #N "_" #T, 1, [](auto r, auto a) { vsip_cv##N##_##T(a, r); }, \
      [](Complex a) { return Complex(ref_##N(a)); });                    \
  check_one<vsip_cmview_##T, vsip_cmview_##T>(                           \
      "cm" #N "_" #T, 5, [](auto r, auto a) { vsip_cm##N##_##T(a, r); }, \
      [](Complex a) { return Complex(ref_##N(a)); });
#define CBINARY(N, T)                                                                         \
  check_two<vsip_cvview_##T, vsip_cvview_##T, vsip_cvview_##T>(                               \
      "cv" #N "_" #T, 1, [](auto r, auto a, auto b) { vsip_cv##N##_##T(a, b, r); }, ref_##N); \
  check_two<vsip_cmview_##T, vsip_cmview_##T, vsip_cmview_##T>(                               \
      "cm" #N "_" #T, 5, [](auto r, auto a, auto b) { vsip_cm##N##_##T(a, b, r); }, ref_##N);
#define CSCALAR(N, T)                                                                             \
  check_one<vsip_cvview_##T, vsip_cvview_##T>(                                                    \
      "csv" #N "_" #T, 1, [](auto r, auto a) { vsip_csv##N##_##T(vsip_cmplx_##T(2, -1), a, r); }, \
      [](Complex a) { return ref_##N(Complex(2, -1), a); });                                      \
  check_one<vsip_cmview_##T, vsip_cmview_##T>(                                                    \
      "csm" #N "_" #T, 5, [](auto r, auto a) { vsip_csm##N##_##T(vsip_cmplx_##T(2, -1), a, r); }, \
      [](Complex a) { return ref_##N(Complex(2, -1), a); });                                      \
  check_one<vsip_cvview_##T, vsip_cvview_##T>(                                                    \
      "rscv" #N "_" #T, 1, [](auto r, auto a) { vsip_rscv##N##_##T(3, a, r); },                   \
      [](Complex a) { return ref_##N(3.0, a); });                                                 \
  check_one<vsip_cmview_##T, vsip_cmview_##T>(                                                    \
      "rscm" #N "_" #T, 5, [](auto r, auto a) { vsip_rscm##N##_##T(3, a, r); },                   \
      [](Complex a) { return ref_##N(3.0, a); });                                                 \
  check_two<vsip_cvview_##T, vsip_vview_##T, vsip_cvview_##T>(                                    \
      "rcv" #N "_" #T, 1, [](auto r, auto a, auto b) { vsip_rcv##N##_##T(a, b, r); }, ref_##N);   \
  check_two<vsip_cmview_##T, vsip_mview_##T, vsip_cmview_##T>(                                    \
      "rcm" #N "_" #T, 5, [](auto r, auto a, auto b) { vsip_rcm##N##_##T(a, b, r); }, ref_##N);

#define FLOATS(T)                                                                                                    \
  TEST(VsipElementwise, of_floating_point_##T){                                                                      \
      TRANSHIP_VSIP_REAL_UNARY(UNARY, T) TRANSHIP_VSIP_REAL_BINARY(BINARY, T) TRANSHIP_VSIP_SCALAR_BINARY(SCALAR, T) \
          TRANSHIP_VSIP_COMPARISONS(COMPARE, T)} TEST(VsipElementwise, of_complex_##T) {                             \
    TRANSHIP_VSIP_COMPLEX_UNARY(CUNARY, T)                                                                           \
    TRANSHIP_VSIP_COMPLEX_BINARY(CBINARY, T)                                                                         \
    TRANSHIP_VSIP_SCALAR_BINARY(CSCALAR, T)                                                                          \
  }
TRANSHIP_VSIP_FLOATS(FLOATS)

#define INTEGERS(T)                         \
  TEST(VsipElementwise, of_integers_##T) {  \
    TRANSHIP_VSIP_INTEGER_UNARY(UNARY, T)   \
    TRANSHIP_VSIP_INTEGER_BINARY(BINARY, T) \
    TRANSHIP_VSIP_INTEGER_SCALAR(SCALAR, T) \
    TRANSHIP_VSIP_COMPARISONS(COMPARE, T)   \
  }
TRANSHIP_VSIP_INTEGERS(INTEGERS)

#define COPY(A, B)                                                                                  \
  check_one<vsip_vview_##B, vsip_vview_##A>(                                                        \
      "vcopy_" #A "_" #B, 1, [](auto r, auto a) { vsip_vcopy_##A##_##B(a, r); },                    \
      [](double x) { return std::is_same_v<vsip_vview_##B, vsip_vview_bl> ? double(x != 0) : x; }); \
  check_one<vsip_mview_##B, vsip_mview_##A>(                                                        \
      "mcopy_" #A "_" #B, 5, [](auto r, auto a) { vsip_mcopy_##A##_##B(a, r); },                    \
      [](double x) { return std::is_same_v<vsip_vview_##B, vsip_vview_bl> ? double(x != 0) : x; });
#define COPIES(A)                  \
  TEST(VsipCopy, from_##A) {       \
    TRANSHIP_VSIP_NUMBERS(COPY, A) \
  }
#define IF_NOT_BOOLEAN(X) X(i) X(si) X(li)
COPIES(f)
COPIES(d)
IF_NOT_BOOLEAN(COPIES)

REFERENCE(floor, [](double a) { return a - std::fmod(a, 1.0) - (std::fmod(a, 1.0) < 0); })
REFERENCE(ceil, [](double a) { return -ref_floor(-a); })
REFERENCE(round, [](double a) {
  const double below = ref_floor(a), over = a - below;
  return over < 0.5 || (over == 0.5 && std::fmod(below, 2.0) == 0) ? below : below + 1;
})
/// Whole numbers and a half, numbers on both sides of them.
constexpr auto quarters = [](double a) { return std::round(a * 60) / 4; };

#define ROUND(N, A, B)                                                                                  \
  check_one<vsip_vview_##B, vsip_vview_##A>(                                                            \
      "v" #N "_" #A "_" #B, 1, [](auto r, auto a) { vsip_v##N##_##A##_##B(a, r); }, ref_##N, quarters); \
  check_one<vsip_mview_##B, vsip_mview_##A>(                                                            \
      "m" #N "_" #A "_" #B, 5, [](auto r, auto a) { vsip_m##N##_##A##_##B(a, r); }, ref_##N, quarters);
#define ROUNDS(A, B)                                  \
  TEST(VsipElementwise, to_whole_numbers_##A##_##B) { \
    TRANSHIP_VSIP_ROUNDINGS(ROUND, A, B)              \
  }
TRANSHIP_VSIP_ROUNDED_PAIRS(ROUNDS)

TEST(VsipElementwise, of_indices) {
  vsip_scalar_vi numbers[4] = {7, 0, 3, 9}, out[4];
  auto* a = vsip_vcreate_vi(4, VSIP_MEM_NONE);
  auto* r = vsip_vbind_vi(vsip_blockcreate_vi(9, VSIP_MEM_NONE), 8, -2, 4);
  vsip_vcopyfrom_user_vi(numbers, a);
  vsip_svadd_vi(2, a, r);
  vsip_vcopyto_user_vi(r, out);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out[i], numbers[i] + 2);
  vsip_svsub_vi(9, a, r);
  for (vsip_index i = 0; i < 4; ++i) EXPECT_EQ(vsip_vget_vi(r, i), 9 - numbers[i]);
  vsip_vadd_vi(a, r, a);
  for (vsip_index i = 0; i < 4; ++i) EXPECT_EQ(vsip_vget_vi(a, i), 9U);
  vsip_valldestroy_vi(a);
  vsip_valldestroy_vi(r);
}

#define CCOPY(A, B)                                                                                            \
  check_one<vsip_cvview_##B, vsip_cvview_##A>(                                                                 \
      "cvcopy", 1, [](auto r, auto a) { vsip_cvcopy_##A##_##B(a, r); }, [](Complex x) { return Complex(x); }); \
  check_one<vsip_cmview_##B, vsip_cmview_##A>(                                                                 \
      "cmcopy", 5, [](auto r, auto a) { vsip_cmcopy_##A##_##B(a, r); }, [](Complex x) { return Complex(x); });
TEST(VsipCopy, of_complex){// Values that float holds too.
                           CCOPY(f, f) CCOPY(d, d) CCOPY(f, d)}
#define MIXED(S, ROWS, T)                                                                                             \
  check_one<vsip_##S##view_##T, vsip_c##S##view_##T>(                                                                 \
      "mag", ROWS, [](auto r, auto a) { vsip_c##S##mag_##T(a, r); }, [](Complex a) { return std::abs(a); });          \
  check_one<vsip_##S##view_##T, vsip_c##S##view_##T>(                                                                 \
      "magsq", ROWS, [](auto r, auto a) { vsip_##S##cmagsq_##T(a, r); }, [](Complex a) { return std::norm(a); });     \
  check_one<vsip_##S##view_##T, vsip_c##S##view_##T>(                                                                 \
      "arg", ROWS, [](auto r, auto a) { vsip_##S##arg_##T(a, r); }, [](Complex a) { return std::arg(a); });           \
  check_one<vsip_##S##view_##T, vsip_c##S##view_##T>(                                                                 \
      "real", ROWS, [](auto r, auto a) { vsip_##S##real_##T(a, r); }, [](Complex a) { return a.real(); });            \
  check_one<vsip_##S##view_##T, vsip_c##S##view_##T>(                                                                 \
      "imag", ROWS, [](auto r, auto a) { vsip_##S##imag_##T(a, r); }, [](Complex a) { return a.imag(); });            \
  check_one<vsip_c##S##view_##T, vsip_##S##view_##T>(                                                                 \
      "euler", ROWS, [](auto r, auto a) { vsip_##S##euler_##T(a, r); }, [](double a) { return std::polar(1.0, a); }); \
  check_two<vsip_c##S##view_##T, vsip_##S##view_##T, vsip_##S##view_##T>(                                             \
      "cmplx", ROWS, [](auto r, auto a, auto b) { vsip_##S##cmplx_##T(a, b, r); },                                    \
      [](double a, double b) { return Complex(a, b); });                                                              \
  check_two<vsip_c##S##view_##T, vsip_##S##view_##T, vsip_##S##view_##T>(                                             \
      "rect", ROWS, [](auto r, auto a, auto b) { vsip_##S##rect_##T(a, b, r); },                                      \
      [](double a, double b) { return a * Complex(std::cos(b), std::sin(b)); });                                      \
  check_two<vsip_##S##view_##T, vsip_c##S##view_##T, vsip_c##S##view_##T>(                                            \
      "cmaxmgsq", ROWS, [](auto r, auto a, auto b) { vsip_##S##cmaxmgsq_##T(a, b, r); },                              \
      [](Complex a, Complex b) { return std::max(std::norm(a), std::norm(b)); });                                     \
  check_two<vsip_##S##view_##T, vsip_c##S##view_##T, vsip_c##S##view_##T>(                                            \
      "cminmgsq", ROWS, [](auto r, auto a, auto b) { vsip_##S##cminmgsq_##T(a, b, r); },                              \
      [](Complex a, Complex b) { return std::min(std::norm(a), std::norm(b)); });                                     \
  check_two<vsip_c##S##view_##T, vsip_c##S##view_##T, vsip_##S##view_##T>(                                            \
      "crsub", ROWS, [](auto r, auto a, auto b) { vsip_cr##S##sub_##T(a, b, r); }, ref_sub);                          \
  check_two<vsip_c##S##view_##T, vsip_c##S##view_##T, vsip_##S##view_##T>(                                            \
      "crdiv", ROWS, [](auto r, auto a, auto b) { vsip_cr##S##div_##T(a, b, r); }, ref_div);                          \
  check_one<vsip_##S##view_##T, vsip_##S##view_##T>(                                                                  \
      "sdiv", ROWS, [](auto r, auto a) { vsip_##S##sdiv_##T(a, 4, r); }, [](double a) { return a / 4; });             \
  check_one<vsip_c##S##view_##T, vsip_c##S##view_##T>(                                                                \
      "crsdiv", ROWS, [](auto r, auto a) { vsip_c##S##rsdiv_##T(a, 4, r); }, [](Complex a) { return a / 4.0; });      \
  check_one<vsip_##S##view_##T, vsip_##S##view_##T>(                                                                  \
      "fill", ROWS, [](auto r, auto) { vsip_##S##fill_##T(2, r); }, [](double) { return 2.0; });                      \
  check_one<vsip_c##S##view_##T, vsip_c##S##view_##T>(                                                                \
      "cfill", ROWS, [](auto r, auto) { vsip_c##S##fill_##T(vsip_cmplx_##T(2, 5), r); },                              \
      [](Complex) { return Complex(2, 5); });                                                                         \
  check_one<vsip_##S##view_##T, vsip_##S##view_##T>(                                                                  \
      "clip", ROWS,                                                                                                   \
      [](auto r, auto a) { vsip_##S##clip_##T(a, vsip_scalar_##T(-0.25), vsip_scalar_##T(0.5), -1, 1, r); },          \
      [](double a) { return a <= -0.25 ? -1                                                                           \
                            : a < 0.5  ? a                                                                            \
                                       : 1; });                                                    \
  check_one<vsip_##S##view_##T, vsip_##S##view_##T>(                                                                  \
      "invclip", ROWS,                                                                                                \
      [](auto r, auto a) { vsip_##S##invclip_##T(a, vsip_scalar_##T(-0.25), 0, vsip_scalar_##T(0.5), -1, 1, r); },    \
      [](double a) {                                                                                                  \
        return a < -0.25 ? a : a < 0 ? -1 : a <= 0.5 ? 1 : a;                                                         \
      });
TEST(VsipElementwise, between_kinds){MIXED(v, 1, f) MIXED(v, 1, d) MIXED(m, 5, f) MIXED(m, 5, d)}

#define TERNARY(C, T, V, ZERO)                                                                                         \
  {                                                                                                                    \
    using View = vsip_##C##vview_##T;                                                                                  \
    const auto s = ZERO;                                                                                               \
    const auto two = [&](const char* name, auto call, auto reference) {                                                \
      check_two<View, View, View>(name, 1, call, reference);                                                           \
    };                                                                                                                 \
    two(                                                                                                               \
        "am", [](auto r, auto a, auto b) { vsip_##C##vam_##T(a, b, a, r); }, [](V a, V b) { return (a + b) * a; });    \
    two(                                                                                                               \
        "ma", [](auto r, auto a, auto b) { vsip_##C##vma_##T(a, b, a, r); }, [](V a, V b) { return a * b + a; });      \
    two(                                                                                                               \
        "msb", [](auto r, auto a, auto b) { vsip_##C##vmsb_##T(a, b, a, r); }, [](V a, V b) { return a * b - a; });    \
    two(                                                                                                               \
        "sbm", [](auto r, auto a, auto b) { vsip_##C##vsbm_##T(a, b, a, r); }, [](V a, V b) { return (a - b) * a; });  \
    two(                                                                                                               \
        "sam", [s](auto r, auto a, auto b) { vsip_##C##vsam_##T(a, s, b, r); },                                        \
        [](V a, V b) { return (a + 2.0) * b; });                                                                       \
    two(                                                                                                               \
        "sma", [s](auto r, auto a, auto b) { vsip_##C##vsma_##T(a, s, b, r); }, [](V a, V b) { return a * 2.0 + b; }); \
    two(                                                                                                               \
        "msa", [s](auto r, auto a, auto b) { vsip_##C##vmsa_##T(a, b, s, r); }, [](V a, V b) { return a * b + 2.0; }); \
    check_one<View, View>(                                                                                             \
        "smsa", 1, [s](auto r, auto a) { vsip_##C##vsmsa_##T(a, s, s, r); }, [](V a) { return a * 2.0 + 2.0; });       \
  }
TEST(VsipElementwise, of_three_operands){TERNARY(, f, double, 2.0F) TERNARY(, d, double, 2.0)
                                             TERNARY(c, f, Complex, vsip_cmplx_f(2, 0))
                                                 TERNARY(c, d, Complex, vsip_cmplx_d(2, 0))}

TEST(VsipElementwise, leaves_views_without_elements_alone) {
  auto* one = vsip_vcreate_f(1, VSIP_MEM_NONE);
  auto* empty = vsip_vsubview_f(one, 0, 0);
  vsip_vput_f(one, 0, 3);
  vsip_vadd_f(empty, empty, empty);
  EXPECT_EQ(vsip_vsumval_f(empty), 0);
  EXPECT_EQ(vsip_vget_f(one, 0), 3);
  vsip_vdestroy_f(empty);
  vsip_valldestroy_f(one);
}

TEST(VsipElementwise, reads_one_element_many_times) {
  auto* block = vsip_blockcreate_f(1, VSIP_MEM_NONE);
  auto* same = vsip_vbind_f(block, 0, 0, 5);
  auto* r = vsip_vcreate_f(5, VSIP_MEM_NONE);
  vsip_vput_f(same, 3, 2.5F);
  vsip_vramp_f(1, 1, r);
  vsip_vmul_f(same, r, r);
  for (vsip_index i = 0; i < 5; ++i) EXPECT_EQ(vsip_vget_f(r, i), 2.5F * float(i + 1));
  vsip_valldestroy_f(same);
  vsip_valldestroy_f(r);
}

}  // namespace
