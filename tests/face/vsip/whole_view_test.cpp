// Functions of whole views: reductions, corner turns, products, indexed copies, user arrays, windows.
#include <algorithm>
#include <numbers>

#include <gtest/gtest.h>

#include "layouts.hpp"

namespace {

using namespace vsip_test;
using Complex = std::complex<double>;

template <class View>
void fill_matrix(Array<View>& array, int which, vsip_length rows, vsip_length columns) {
  for (vsip_length i = 0; i < rows; ++i)
    for (vsip_length j = 0; j < columns; ++j) array.set(i, j, value<View>(which, i * columns + j));
}

#define REDUCTIONS(T)                                                                                   \
  TEST(VsipReduction, of_real_elements_##T) {                                                           \
    for (const auto& layout : layouts) {                                                                \
      Array<vsip_vview_##T> v(layout, 1, 35);                                                           \
      Array<vsip_mview_##T> m(layout, 5, 7);                                                            \
      fill_matrix(v, 0, 1, 35);                                                                         \
      fill_matrix(m, 0, 5, 7);                                                                          \
      double sum = 0, squares = 0, largest = -9, smallest = 9, largest_mg = -1, smallest_mg = 9;        \
      vsip_index at[4] = {};                                                                            \
      for (vsip_index i = 0; i < 35; ++i) {                                                             \
        const double x = v.get(0, i);                                                                   \
        sum += x;                                                                                       \
        squares += x * x;                                                                               \
        if (x > largest) largest = x, at[0] = i;                                                        \
        if (x < smallest) smallest = x, at[1] = i;                                                      \
        if (std::fabs(x) > largest_mg) largest_mg = std::fabs(x), at[2] = i;                            \
        if (std::fabs(x) < smallest_mg) smallest_mg = std::fabs(x), at[3] = i;                          \
      }                                                                                                 \
      vsip_index i = 99;                                                                                \
      vsip_scalar_mi ij = {99, 99};                                                                     \
      EXPECT_NEAR(vsip_vsumval_##T(v.view()), sum, 1e-5);                                               \
      EXPECT_NEAR(vsip_msumval_##T(m.view()), sum, 1e-5);                                               \
      EXPECT_NEAR(vsip_vsumsqval_##T(v.view()), squares, 1e-5);                                         \
      EXPECT_NEAR(vsip_msumsqval_##T(m.view()), squares, 1e-5);                                         \
      EXPECT_NEAR(vsip_vmeanval_##T(v.view()), sum / 35, 1e-6);                                         \
      EXPECT_NEAR(vsip_mmeanval_##T(m.view()), sum / 35, 1e-6);                                         \
      EXPECT_NEAR(vsip_vmeansqval_##T(v.view()), squares / 35, 1e-6);                                   \
      EXPECT_NEAR(vsip_mmeansqval_##T(m.view()), squares / 35, 1e-6);                                   \
      EXPECT_EQ(vsip_vmaxval_##T(v.view(), &i), vsip_scalar_##T(largest));                              \
      EXPECT_EQ(i, at[0]);                                                                              \
      EXPECT_EQ(vsip_mmaxval_##T(m.view(), &ij), vsip_scalar_##T(largest));                             \
      EXPECT_EQ(ij.r * 7 + ij.c, at[0]);                                                                \
      EXPECT_EQ(vsip_vminval_##T(v.view(), &i), vsip_scalar_##T(smallest));                             \
      EXPECT_EQ(i, at[1]);                                                                              \
      EXPECT_EQ(vsip_mminval_##T(m.view(), &ij), vsip_scalar_##T(smallest));                            \
      EXPECT_EQ(ij.r * 7 + ij.c, at[1]);                                                                \
      EXPECT_EQ(vsip_vmaxmgval_##T(v.view(), &i), vsip_scalar_##T(largest_mg));                         \
      EXPECT_EQ(i, at[2]);                                                                              \
      EXPECT_EQ(vsip_mmaxmgval_##T(m.view(), nullptr), vsip_scalar_##T(largest_mg));                    \
      EXPECT_EQ(vsip_vminmgval_##T(v.view(), &i), vsip_scalar_##T(smallest_mg));                        \
      EXPECT_EQ(i, at[3]);                                                                              \
      EXPECT_EQ(vsip_mminmgval_##T(m.view(), nullptr), vsip_scalar_##T(smallest_mg));                   \
      EXPECT_NEAR(vsip_vdot_##T(v.view(), v.view()), squares, 1e-5);                                    \
    }                                                                                                   \
  }                                                                                                     \
  TEST(VsipReduction, of_complex_elements_##T) {                                                        \
    for (const auto& layout : layouts) {                                                                \
      Array<vsip_cvview_##T> a(layout, 1, 35), b(layouts[0], 1, 35);                                    \
      Array<vsip_cmview_##T> m(layout, 5, 7);                                                           \
      fill_matrix(a, 0, 1, 35);                                                                         \
      fill_matrix(b, 1, 1, 35);                                                                         \
      fill_matrix(m, 0, 5, 7);                                                                          \
      Complex sum = 0, dot = 0, jdot = 0;                                                               \
      double squares = 0, largest = -1, smallest = 9;                                                   \
      for (vsip_index i = 0; i < 35; ++i) {                                                             \
        sum += a.get(0, i);                                                                             \
        dot += a.get(0, i) * b.get(0, i);                                                               \
        jdot += a.get(0, i) * std::conj(b.get(0, i));                                                   \
        squares += std::norm(a.get(0, i));                                                              \
        largest = std::max(largest, std::norm(a.get(0, i)));                                            \
        smallest = std::min(smallest, std::norm(a.get(0, i)));                                          \
      }                                                                                                 \
      const auto same = [](vsip_cscalar_##T x, Complex y) { return near(Complex(x.r, x.i), y, 1e-6); }; \
      EXPECT_TRUE(same(vsip_cvsumval_##T(a.view()), sum));                                              \
      EXPECT_TRUE(same(vsip_cmsumval_##T(m.view()), sum));                                              \
      EXPECT_TRUE(same(vsip_cvmeanval_##T(a.view()), sum / 35.0));                                      \
      EXPECT_TRUE(same(vsip_cmmeanval_##T(m.view()), sum / 35.0));                                      \
      EXPECT_NEAR(vsip_cvmeansqval_##T(a.view()), squares / 35, 1e-6);                                  \
      EXPECT_NEAR(vsip_cmmeansqval_##T(m.view()), squares / 35, 1e-6);                                  \
      EXPECT_TRUE(same(vsip_cvdot_##T(a.view(), b.view()), dot));                                       \
      EXPECT_TRUE(same(vsip_cvjdot_##T(a.view(), b.view()), jdot));                                     \
      vsip_index i = 99;                                                                                \
      vsip_scalar_mi ij = {99, 99};                                                                     \
      EXPECT_NEAR(vsip_vcmaxmgsqval_##T(a.view(), &i), largest, 1e-6);                                  \
      EXPECT_NEAR(std::norm(a.get(0, i)), largest, 1e-6);                                               \
      EXPECT_NEAR(vsip_mcmaxmgsqval_##T(m.view(), &ij), largest, 1e-6);                                 \
      EXPECT_NEAR(std::norm(m.get(ij.r, ij.c)), largest, 1e-6);                                         \
      EXPECT_NEAR(vsip_vcminmgsqval_##T(a.view(), &i), smallest, 1e-6);                                 \
      EXPECT_NEAR(vsip_mcminmgsqval_##T(m.view(), &ij), smallest, 1e-6);                                \
    }                                                                                                   \
  }
TRANSHIP_VSIP_FLOATS(REDUCTIONS)

TEST(VsipReduction, of_float_keeps_small_terms) {
  auto* v = vsip_vcreate_f(1 << 20, VSIP_MEM_NONE);
  vsip_vfill_f(0.1F, v);
  vsip_vput_f(v, 0, 1e7F);
  EXPECT_NEAR(vsip_vsumval_f(v), 1e7 + 0.1F * ((1 << 20) - 1), 1);
  vsip_valldestroy_f(v);
}

TEST(VsipReduction, of_integers_and_booleans) {
  auto* v = vsip_vcreate_uc(10, VSIP_MEM_NONE);
  vsip_vramp_uc(250, 1, v);  // wraps around after 255
  EXPECT_EQ(vsip_vget_uc(v, 9), 3);
  vsip_index i = 0;
  EXPECT_EQ(vsip_vmaxval_uc(v, &i), 255);
  EXPECT_EQ(i, 5U);
  EXPECT_EQ(vsip_vsumval_uc(v), (250 + 251 + 252 + 253 + 254 + 255 + 0 + 1 + 2 + 3) % 256);
  auto* above = vsip_vcreate_bl(10, VSIP_MEM_NONE);
  vsip_svlle_uc(253, v, above);
  EXPECT_EQ(vsip_vsumval_bl(above), 3U);
  EXPECT_TRUE(vsip_vanytrue_bl(above));
  EXPECT_FALSE(vsip_valltrue_bl(above));
  auto* where = vsip_vcreate_vi(10, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_vindexbool(above, where), 3U);
  EXPECT_EQ(vsip_vgetlength_vi(where), 3U);
  EXPECT_EQ(vsip_vget_vi(where, 0), 3U);
  EXPECT_EQ(vsip_vget_vi(where, 2), 5U);
  auto* not_above = vsip_vcreate_bl(10, VSIP_MEM_NONE);
  vsip_vnot_bl(above, not_above);
  vsip_vor_bl(above, not_above, above);
  EXPECT_TRUE(vsip_valltrue_bl(above));
  vsip_vxor_bl(above, above, above);
  EXPECT_FALSE(vsip_vanytrue_bl(above));
  EXPECT_EQ(vsip_vindexbool(above, where), 0U);
  EXPECT_EQ(vsip_vgetlength_vi(where), 3U) << "no true element leaves the vector as it was";
  auto* m = vsip_mcreate_bl(3, 4, VSIP_COL, VSIP_MEM_NONE);
  vsip_mfill_bl(VSIP_FALSE, m);
  vsip_mput_bl(m, 2, 1, VSIP_TRUE);
  vsip_mput_bl(m, 0, 3, VSIP_TRUE);
  auto* pairs = vsip_vcreate_mi(12, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_mindexbool(m, pairs), 2U);
  EXPECT_EQ(vsip_vget_mi(pairs, 0).r, 2U) << "column by column";
  EXPECT_EQ(vsip_vget_mi(pairs, 0).c, 1U);
  EXPECT_EQ(vsip_vget_mi(pairs, 1).c, 3U);
  auto* by_row = vsip_mcreate_bl(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mcopy_bl_bl(m, by_row);
  EXPECT_EQ(vsip_mindexbool(by_row, pairs), 2U);
  EXPECT_EQ(vsip_vget_mi(pairs, 0).c, 3U) << "row by row";
  EXPECT_EQ(vsip_vget_mi(pairs, 1).r, 2U);
  vsip_malldestroy_bl(by_row);
  vsip_valldestroy_uc(v);
  vsip_valldestroy_bl(above);
  vsip_valldestroy_bl(not_above);
  vsip_valldestroy_vi(where);
  vsip_malldestroy_bl(m);
  vsip_valldestroy_mi(pairs);
}

#define MATRICES(C, T, V)                                                                                          \
  TEST(VsipMatrix, turns_and_multiplies_##C##T) {                                                                  \
    const auto conjugated = [](V x) {                                                                              \
      if constexpr (std::is_same_v<V, Complex>)                                                                    \
        return std::conj(x);                                                                                       \
      else                                                                                                         \
        return x;                                                                                                  \
    };                                                                                                             \
    for (int k = 0; k < layout_count; ++k) {                                                                       \
      Array<vsip_##C##mview_##T> a(layouts[k], 4, 6), b(layouts[(k + 1) % layout_count], 6, 5),                    \
          r(layouts[(k + 2) % layout_count], 4, 5), t(layouts[(k + 3) % layout_count], 6, 4),                      \
          bt(layouts[(k + 4) % layout_count], 5, 6), square(layouts[k], 5, 5),                                     \
          lines(layouts[(k + 5) % layout_count], 4, 6);                                                            \
      Array<vsip_##C##vview_##T> six(layouts[(k + 1) % layout_count], 1, 6), four(layouts[k], 1, 4),               \
          five(layouts[k], 1, 5);                                                                                  \
      fill_matrix(a, 0, 4, 6);                                                                                     \
      fill_matrix(b, 1, 6, 5);                                                                                     \
      fill_matrix(square, 2, 5, 5);                                                                                \
      fill_matrix(six, 3, 1, 6);                                                                                   \
      fill_matrix(four, 4, 1, 4);                                                                                  \
      const auto check = [&](const char* name, const auto& array, vsip_length rows, vsip_length columns,           \
                             auto expected) {                                                                      \
        for (vsip_length i = 0; i < rows; ++i)                                                                     \
          for (vsip_length j = 0; j < columns; ++j)                                                                \
            ASSERT_TRUE(near(array.get(i, j), V(expected(i, j)), 1e-5)) << name << " " << layouts[k].name;         \
        ASSERT_EQ(array.damaged_guards(), 0) << name;                                                              \
      };                                                                                                           \
      vsip_##C##mtrans_##T(a.view(), t.view());                                                                    \
      check("mtrans", t, 6, 4, [&](auto i, auto j) { return a.get(j, i); });                                       \
      vsip_##C##mtrans_##T(b.view(), bt.view());                                                                   \
      vsip_##C##mprod_##T(a.view(), b.view(), r.view());                                                           \
      const auto product = [&](auto i, auto j) {                                                                   \
        V sum = 0;                                                                                                 \
        for (vsip_length n = 0; n < 6; ++n) sum += a.get(i, n) * b.get(n, j);                                      \
        return sum;                                                                                                \
      };                                                                                                           \
      check("mprod", r, 4, 5, product);                                                                            \
      vsip_##C##mprodt_##T(a.view(), bt.view(), r.view());                                                         \
      check("mprodt", r, 4, 5, product);                                                                           \
      vsip_##C##vmmul_##T(six.view(), a.view(), VSIP_ROW, lines.view());                                           \
      check("vmmul row", lines, 4, 6, [&](auto i, auto j) { return six.get(0, j) * a.get(i, j); });                \
      vsip_##C##vmmul_##T(four.view(), a.view(), VSIP_COL, lines.view());                                          \
      check("vmmul column", lines, 4, 6, [&](auto i, auto j) { return four.get(0, i) * a.get(i, j); });            \
      vsip_##C##mvprod_##T(a.view(), six.view(), four.view());                                                     \
      check("mvprod", four, 1, 4, [&](auto, auto i) {                                                              \
        V sum = 0;                                                                                                 \
        for (vsip_length n = 0; n < 6; ++n) sum += a.get(i, n) * six.get(0, n);                                    \
        return sum;                                                                                                \
      });                                                                                                          \
      vsip_##C##vmprod_##T(six.view(), b.view(), five.view());                                                     \
      check("vmprod", five, 1, 5, [&](auto, auto j) {                                                              \
        V sum = 0;                                                                                                 \
        for (vsip_length n = 0; n < 6; ++n) sum += six.get(0, n) * b.get(n, j);                                    \
        return sum;                                                                                                \
      });                                                                                                          \
      vsip_##C##scalar_##T two{};                                                                                  \
      reinterpret_cast<vsip_scalar_##T&>(two) = 2;                                                                 \
      vsip_##C##vouter_##T(two, four.view(), five.view(), r.view());                                               \
      check("vouter", r, 4, 5, [&](auto i, auto j) { return 2.0 * four.get(0, i) * conjugated(five.get(0, j)); }); \
      Array<vsip_##C##mview_##T> kept(layouts[0], 5, 5);                                                           \
      fill_matrix(kept, 2, 5, 5);                                                                                  \
      vsip_##C##mtrans_##T(square.view(), square.view());                                                          \
      check("mtrans in place", square, 5, 5, [&](auto i, auto j) { return kept.get(j, i); });                      \
    }                                                                                                              \
  }
MATRICES(, f, double)
MATRICES(, d, double)
MATRICES(c, f, Complex)
MATRICES(c, d, Complex)

#define SMALL_PRODUCTS(N, C, T)                                                               \
  for (int k = 0; k < layout_count; ++k) {                                                    \
    Array<vsip_##C##mview_##T> a(layouts[k], N, N), b(layouts[(k + 1) % layout_count], N, 7), \
        r(layouts[(k + 2) % layout_count], N, 7);                                             \
    Array<vsip_##C##vview_##T> x(layouts[k], 1, N), y(layouts[(k + 3) % layout_count], 1, N); \
    fill_matrix(a, 0, N, N);                                                                  \
    fill_matrix(b, 1, N, 7);                                                                  \
    fill_matrix(x, 2, 1, N);                                                                  \
    vsip_##C##mprod##N##_##T(a.view(), b.view(), r.view());                                   \
    vsip_##C##mvprod##N##_##T(a.view(), x.view(), y.view());                                  \
    vsip_##C##mprod##N##_##T(a.view(), b.view(), b.view());                                   \
    Array<vsip_##C##mview_##T> kept(layouts[0], N, 7);                                        \
    fill_matrix(kept, 1, N, 7);                                                               \
    for (vsip_length i = 0; i < N; ++i) {                                                     \
      decltype(a.get(0, 0)) of_vector = 0;                                                    \
      for (vsip_length n = 0; n < N; ++n) of_vector += a.get(i, n) * x.get(0, n);             \
      EXPECT_TRUE(near(y.get(0, i), of_vector, 1e-5)) << layouts[k].name;                     \
      for (vsip_length j = 0; j < 7; ++j) {                                                   \
        decltype(of_vector) sum = 0;                                                          \
        for (vsip_length n = 0; n < N; ++n) sum += a.get(i, n) * kept.get(n, j);              \
        EXPECT_TRUE(near(r.get(i, j), sum, 1e-5)) << layouts[k].name;                         \
        EXPECT_TRUE(near(b.get(i, j), sum, 1e-5)) << "in place, " << layouts[k].name;         \
      }                                                                                       \
    }                                                                                         \
    EXPECT_EQ(r.damaged_guards() + b.damaged_guards() + y.damaged_guards(), 0);               \
  }
TEST(VsipMatrix, multiplies_small_ones){SMALL_PRODUCTS(3, , f) SMALL_PRODUCTS(4, , f) SMALL_PRODUCTS(3, , d)
                                            SMALL_PRODUCTS(4, , d) SMALL_PRODUCTS(3, c, f) SMALL_PRODUCTS(4, c, f)
                                                SMALL_PRODUCTS(3, c, d) SMALL_PRODUCTS(4, c, d)}

TEST(VsipMatrix, conjugates_as_it_turns_and_multiplies) {
  for (int k = 0; k < layout_count; ++k) {
    Array<vsip_cmview_d> a(layouts[k], 4, 6), b(layouts[(k + 1) % layout_count], 5, 6), r(layouts[k], 4, 5),
        t(layouts[(k + 2) % layout_count], 6, 4), square(layouts[k], 5, 5), c(layouts[0], 6, 5);
    Array<vsip_vview_d> six(layouts[k], 1, 6);
    fill_matrix(a, 0, 4, 6);
    fill_matrix(b, 1, 5, 6);
    fill_matrix(c, 2, 6, 5);
    fill_matrix(square, 3, 5, 5);
    fill_matrix(six, 4, 1, 6);
    vsip_cmherm_d(a.view(), t.view());
    vsip_cmprodh_d(a.view(), b.view(), r.view());
    for (vsip_length i = 0; i < 4; ++i)
      for (vsip_length j = 0; j < 5; ++j) {
        EXPECT_EQ(t.get(j, i), std::conj(a.get(i, j)));
        Complex sum = 0;
        for (vsip_length n = 0; n < 6; ++n) sum += a.get(i, n) * std::conj(b.get(j, n));
        EXPECT_TRUE(near(r.get(i, j), sum, 1e-12));
      }
    vsip_cmprodj_d(a.view(), c.view(), r.view());
    Complex sum = 0;
    for (vsip_length n = 0; n < 6; ++n) sum += a.get(2, n) * std::conj(c.get(n, 3));
    EXPECT_TRUE(near(r.get(2, 3), sum, 1e-12));
    const Complex before[2] = {square.get(1, 3), square.get(2, 2)};
    vsip_cmherm_d(square.view(), square.view());
    EXPECT_EQ(square.get(3, 1), std::conj(before[0]));
    EXPECT_EQ(square.get(2, 2), std::conj(before[1]));
    vsip_rvcmmul_d(six.view(), a.view(), VSIP_ROW, a.view());
    EXPECT_TRUE(near(a.get(3, 5), six.get(0, 5) * std::conj(t.get(5, 3)), 1e-12));
  }
}

TEST(VsipMatrix, turns_a_large_corner) {
  auto* a = vsip_cmcreate_f(300, 500, VSIP_ROW, VSIP_MEM_NONE);
  auto* r = vsip_cmcreate_f(500, 300, VSIP_ROW, VSIP_MEM_NONE);
  for (vsip_index i = 0; i < 300; ++i)
    for (vsip_index j = 0; j < 500; ++j) vsip_cmput_f(a, i, j, vsip_cmplx_f(float(i), float(j)));
  vsip_cmtrans_f(a, r);
  int wrong = 0;
  for (vsip_index i = 0; i < 300; ++i)
    for (vsip_index j = 0; j < 500; ++j)
      wrong += vsip_cmget_f(r, j, i).r != float(i) || vsip_cmget_f(r, j, i).i != float(j);
  EXPECT_EQ(wrong, 0);
  vsip_cmalldestroy_f(a);
  vsip_cmalldestroy_f(r);
}

TEST(VsipCopy, to_and_from_arrays_of_the_caller) {
  for (const auto& layout : layouts) {
    Array<vsip_cmview_f> m(layout, 3, 4);
    float re[12], im[12], both[24];
    fill_matrix(m, 0, 3, 4);
    vsip_cmcopyto_user_f(m.view(), VSIP_ROW, re, im);
    vsip_cmcopyto_user_f(m.view(), VSIP_COL, both, nullptr);
    for (vsip_length i = 0; i < 3; ++i)
      for (vsip_length j = 0; j < 4; ++j) {
        EXPECT_EQ(Complex(re[i * 4 + j], im[i * 4 + j]), m.get(i, j));
        EXPECT_EQ(Complex(both[2 * (j * 3 + i)], both[2 * (j * 3 + i) + 1]), m.get(i, j));
      }
    Array<vsip_cmview_f> back(layout, 3, 4);
    vsip_cmcopyfrom_user_f(both, nullptr, VSIP_COL, back.view());
    for (vsip_length i = 0; i < 3; ++i)
      for (vsip_length j = 0; j < 4; ++j) EXPECT_EQ(back.get(i, j), m.get(i, j));
    EXPECT_EQ(back.damaged_guards(), 0);
    Array<vsip_vview_si> v(layout, 1, 6);
    const short numbers[] = {1, 2, 3, 4, 5, 6};
    short out[6];
    vsip_vcopyfrom_user_si(numbers, v.view());
    EXPECT_EQ(v.get(0, 4), 5);
    vsip_vcopyto_user_si(v.view(), out);
    EXPECT_EQ(out[5], 6);
  }
}

TEST(VsipCopy, by_index) {
  auto* a = vsip_vcreate_d(6, VSIP_MEM_NONE);
  auto* r = vsip_vcreate_d(3, VSIP_MEM_NONE);
  auto* at = vsip_vcreate_vi(3, VSIP_MEM_NONE);
  vsip_vramp_d(10, 1, a);
  vsip_vramp_vi(5, vsip_scalar_vi(-2), at);  // 5, 3, 1: steps wrap around
  vsip_vgather_d(a, at, r);
  EXPECT_EQ(vsip_vget_d(r, 0), 15);
  EXPECT_EQ(vsip_vget_d(r, 2), 11);
  vsip_vfill_d(-1, a);
  vsip_vscatter_d(r, a, at);
  EXPECT_EQ(vsip_vget_d(a, 3), 13);
  EXPECT_EQ(vsip_vget_d(a, 2), -1);
  auto* m = vsip_cmcreate_f(2, 3, VSIP_ROW, VSIP_MEM_NONE);
  auto* c = vsip_cvcreate_f(2, VSIP_MEM_NONE);
  auto* pairs = vsip_vcreate_mi(2, VSIP_MEM_NONE);
  vsip_vput_mi(pairs, 0, vsip_matindex(1, 2));
  vsip_vput_mi(pairs, 1, vsip_matindex(0, 1));
  vsip_cmfill_f(vsip_cmplx_f(0, 0), m);
  vsip_cmput_f(m, 1, 2, vsip_cmplx_f(3, 4));
  vsip_cmgather_f(m, pairs, c);
  EXPECT_EQ(vsip_cvget_f(c, 0).i, 4);
  vsip_cvput_f(c, 1, vsip_cmplx_f(5, 6));
  vsip_cmscatter_f(c, m, pairs);
  EXPECT_EQ(vsip_cmget_f(m, 0, 1).r, 5);
  vsip_valldestroy_d(a);
  vsip_valldestroy_d(r);
  vsip_valldestroy_vi(at);
  vsip_cmalldestroy_f(m);
  vsip_cvalldestroy_f(c);
  vsip_valldestroy_mi(pairs);
}

#define BY_INDEX(T)                                                                             \
  {                                                                                             \
    auto *a = vsip_vcreate_##T(6, VSIP_MEM_NONE), *r = vsip_vcreate_##T(3, VSIP_MEM_NONE),      \
         *b = vsip_vcreate_##T(3, VSIP_MEM_NONE);                                               \
    vsip_vramp_##T(10, 1, a);                                                                   \
    vsip_vfill_##T(1, b);                                                                       \
    vsip_vgather_##T(a, at, r);                                                                 \
    for (vsip_index i = 0; i < 3; ++i) EXPECT_EQ(vsip_vget_##T(r, i), 15 - 2 * int(i));         \
    vsip_vswap_##T(r, b);                                                                       \
    EXPECT_EQ(vsip_vget_##T(r, 1), 1);                                                          \
    EXPECT_EQ(vsip_vget_##T(b, 1), 13);                                                         \
    vsip_vscatter_##T(r, a, at);                                                                \
    for (vsip_index i = 0; i < 6; ++i) EXPECT_EQ(vsip_vget_##T(a, i), i % 2 ? 1 : 10 + int(i)); \
    for (auto* v : {a, r, b}) vsip_valldestroy_##T(v);                                          \
  }
TEST(VsipCopy, of_integers_and_indices_by_index) {
  auto *at = vsip_vcreate_vi(3, VSIP_MEM_NONE), *r = vsip_vcreate_vi(3, VSIP_MEM_NONE);
  vsip_vramp_vi(5, vsip_scalar_vi(-2), at);
  BY_INDEX(i)
  BY_INDEX(si) BY_INDEX(us) BY_INDEX(li) BY_INDEX(ul) BY_INDEX(uc) auto* back = vsip_vcreate_vi(3, VSIP_MEM_NONE);
  vsip_vramp_vi(2, vsip_scalar_vi(-1), back);
  vsip_vgather_vi(at, back, r);
  for (vsip_index i = 0; i < 3; ++i) EXPECT_EQ(vsip_vget_vi(r, i), 1 + 2 * i);
  auto *pairs = vsip_vcreate_mi(3, VSIP_MEM_NONE), *turned = vsip_vcreate_mi(3, VSIP_MEM_NONE);
  for (vsip_index i = 0; i < 3; ++i) {
    vsip_scalar_mi pair;
    vsip_MATINDEX(i, 10 + i, &pair);
    vsip_vput_mi(pairs, i, pair);
  }
  vsip_vgather_mi(pairs, back, turned);
  EXPECT_EQ(vsip_vget_mi(turned, 0).r, 2U);
  EXPECT_EQ(vsip_vget_mi(turned, 2).c, 10U);
  for (auto* v : {at, back, r}) vsip_valldestroy_vi(v);
  for (auto* v : {pairs, turned}) vsip_valldestroy_mi(v);
}

#define FIRST(T)                                                                                \
  {                                                                                             \
    auto *a = vsip_vcreate_##T(6, VSIP_MEM_NONE), *b = vsip_vcreate_##T(6, VSIP_MEM_NONE);      \
    vsip_vramp_##T(0, 1, a);                                                                    \
    vsip_vfill_##T(3, b);                                                                       \
    const auto same = [](vsip_scalar_##T x, vsip_scalar_##T y) -> vsip_bool { return x == y; }; \
    EXPECT_EQ(vsip_vfirst_##T(0, same, a, b), 3U);                                              \
    EXPECT_EQ(vsip_vfirst_##T(3, same, a, b), 3U);                                              \
    EXPECT_EQ(vsip_vfirst_##T(4, same, a, b), 6U) << "there is none";                           \
    EXPECT_EQ(vsip_vfirst_##T(9, same, a, b), 9U);                                              \
    vsip_valldestroy_##T(a);                                                                    \
    vsip_valldestroy_##T(b);                                                                    \
  }
TEST(VsipReduction, finds_the_first_elements_that_agree) {
  FIRST(f)
  FIRST(d) FIRST(i) FIRST(li) FIRST(vi) auto* pairs = vsip_vcreate_mi(4, VSIP_MEM_NONE);
  for (vsip_index i = 0; i < 4; ++i) vsip_vput_mi(pairs, i, vsip_matindex(i, 5 - i));
  const auto crossed = [](vsip_scalar_mi x, vsip_scalar_mi y) -> vsip_bool { return x.r == 3 && y.c == 2; };
  EXPECT_EQ(vsip_vfirst_mi(0, crossed, pairs, pairs), 3U);
  vsip_valldestroy_mi(pairs);
}

TEST(VsipReduction, of_indices) {
  auto* v = vsip_vcreate_vi(4, VSIP_MEM_NONE);
  const vsip_scalar_vi numbers[] = {7, 9, 0, 9};
  vsip_vcopyfrom_user_vi(numbers, v);
  vsip_index i = 99;
  EXPECT_EQ(vsip_vmaxval_vi(v, &i), 9U);
  EXPECT_EQ(i, 1U);
  EXPECT_EQ(vsip_vminval_vi(v, &i), 0U);
  EXPECT_EQ(i, 2U);
  EXPECT_EQ(vsip_vminval_vi(v, nullptr), 0U);
  vsip_valldestroy_vi(v);
}

TEST(VsipVector, swaps_elements_and_halves) {
  for (const vsip_length n : {1U, 2U, 7U, 8U, 9U}) {
    auto* a = vsip_vcreate_f(n, VSIP_MEM_NONE);
    auto* b = vsip_vcreate_f(n, VSIP_MEM_NONE);
    vsip_vramp_f(0, 1, a);
    vsip_vfreqswap_f(a);
    for (vsip_index i = 0; i < n; ++i) EXPECT_EQ(vsip_vget_f(a, i), float((i + n / 2) % n)) << n;
    vsip_vfill_f(-3, b);
    vsip_vswap_f(a, b);
    EXPECT_EQ(vsip_vget_f(a, 0), -3);
    EXPECT_EQ(vsip_vget_f(b, 0), float(n / 2 % n));
    vsip_vexpoavg_f(0.25F, b, a);
    EXPECT_EQ(vsip_vget_f(a, 0), 0.25F * float(n / 2 % n) - 0.75F * 3);
    vsip_valldestroy_f(a);
    vsip_valldestroy_f(b);
  }
  Array<vsip_cmview_d> m(layouts[6], 3, 4);
  fill_matrix(m, 0, 3, 4);
  vsip_cmfreqswap_d(m.view());
  for (vsip_length i = 0; i < 3; ++i)
    for (vsip_length j = 0; j < 4; ++j)
      EXPECT_TRUE(near(m.get(i, j), value<vsip_cmview_d>(0, (i + 1) % 3 * 4 + (j + 2) % 4), 1e-12));
}

/// The level of the spectrum of a window at a frequency, in decibels below that at zero.
double level(const std::vector<double>& w, double frequency) {
  Complex at = 0;
  double zero = 0;
  for (std::size_t i = 0; i < w.size(); ++i) {
    at += w[i] * std::polar(1.0, -2 * std::numbers::pi * frequency * double(i));
    zero += w[i];
  }
  return 20 * std::log10(std::abs(at) / std::abs(zero));
}

TEST(VsipWindow, has_the_values_of_its_definition) {
  for (const vsip_length n : {1U, 2U, 5U, 16U, 33U}) {
    vsip_vview_d* windows[] = {vsip_vcreate_hanning_d(n, VSIP_MEM_NONE), vsip_vcreate_hamming_d(n, VSIP_MEM_NONE),
                               vsip_vcreate_blackman_d(n, VSIP_MEM_NONE), vsip_vcreate_kaiser_d(n, 6, VSIP_MEM_NONE),
                               vsip_vcreate_cheby_d(n, 60, VSIP_MEM_NONE)};
    for (vsip_index i = 0; i < n; ++i) {
      const double x = n == 1 ? std::numbers::pi : 2 * std::numbers::pi * double(i) / double(n - 1);
      EXPECT_NEAR(vsip_vget_d(windows[0], i), std::pow(std::sin(std::numbers::pi * double(i + 1) / double(n + 1)), 2),
                  1e-12);
      EXPECT_NEAR(vsip_vget_d(windows[1], i), 0.54 - 0.46 * std::cos(x), 1e-12);
      EXPECT_NEAR(vsip_vget_d(windows[2], i), 0.42 - 0.5 * std::cos(x) + 0.08 * std::cos(2 * x), 1e-12);
      const double z = 6 * std::sin(x / 2);
      EXPECT_NEAR(
          vsip_vget_d(windows[3], i),
          std::cyl_bessel_i(
              0, std::abs(n == 1 ? 6.0 : 6 * std::sqrt(std::max(0.0, 1 - std::pow(x / std::numbers::pi - 1, 2))))) /
              std::cyl_bessel_i(0, 6.0),
          1e-12)
          << z;
    }
    for (auto* w : windows) vsip_valldestroy_d(w);
  }
}

TEST(VsipWindow, of_chebyshev_has_side_lobes_of_the_level_that_was_asked_for) {
  for (const vsip_length n : {15U, 16U, 40U, 61U}) {
    auto* v = vsip_vcreate_cheby_d(n, 50, VSIP_MEM_NONE);
    std::vector<double> w(n);
    vsip_vcopyto_user_d(v, w.data());
    double highest = -999, largest = 0;
    // The main lobe of a Chebyshev window ends where the argument of the polynomial is 1.
    const double x0 = std::cosh(std::acosh(std::pow(10.0, 50.0 / 20)) / double(n - 1));
    const double edge = std::acos(1 / x0) / std::numbers::pi;
    for (double f = edge; f <= 0.5; f += 1e-4) highest = std::max(highest, level(w, f));
    for (const double x : w) largest = std::max(largest, x);
    EXPECT_NEAR(highest, -50, 0.02) << n;
    EXPECT_NEAR(largest, 1, 1e-12);
    for (vsip_index i = 0; i < n; ++i) EXPECT_NEAR(w[i], w[n - 1 - i], 1e-12);
    vsip_valldestroy_d(v);
  }
}

TEST(VsipWindow, of_chebyshev_is_the_sum_of_its_definition) {
  for (const vsip_length n : {2U, 3U, 8U, 31U, 64U, 211U}) {
    auto* v = vsip_vcreate_cheby_d(n, 70, VSIP_MEM_NONE);
    const double degree = double(n) - 1;
    const double x0 = std::cosh(std::acosh(std::pow(10.0, 70.0 / 20)) / degree);
    std::vector<double> w(n);
    for (vsip_index i = 0; i < n; ++i)
      for (vsip_index k = 0; k < n; ++k) {
        const double x = x0 * std::cos(std::numbers::pi * double(k) / double(n));
        const double size =
            std::abs(x) <= 1 ? std::cos(degree * std::acos(std::abs(x))) : std::cosh(degree * std::acosh(std::abs(x)));
        w[i] += (x < 0 && n % 2 == 0 ? -size : size) *
                std::cos(2 * std::numbers::pi * double(k) * (double(i) - degree / 2) / double(n));
      }
    const double peak = *std::max_element(w.begin(), w.end());
    for (vsip_index i = 0; i < n; ++i) EXPECT_NEAR(vsip_vget_d(v, i), w[i] / peak, 1e-11) << n << " " << i;
    vsip_valldestroy_d(v);
  }
}

TEST(VsipWindow, of_chebyshev_keeps_its_level_with_many_elements) {
  // A direct sum would take minutes; the second one is prime.
  for (const vsip_length n : {vsip_length(1) << 18, vsip_length(100003)}) {
    auto* v = vsip_vcreate_cheby_d(n, 50, VSIP_MEM_NONE);
    std::vector<double> w(n);
    vsip_vcopyto_user_d(v, w.data());
    vsip_valldestroy_d(v);
    double highest = -999;
    for (const double bin : {3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 100.0, double(n) / 3})
      highest = std::max(highest, level(w, bin / double(n)));
    EXPECT_LE(highest, -49.999);
    EXPECT_GE(highest, -50.5);
    EXPECT_EQ(*std::max_element(w.begin(), w.end()), 1);
  }
}

TEST(VsipScalar, has_the_arithmetic_of_complex_numbers) {
  const vsip_cscalar_d a = vsip_cmplx_d(3, -4), b = vsip_cmplx_d(0.5, 2);
  const Complex x(3, -4), y(0.5, 2);
  const auto same = [](vsip_cscalar_d p, Complex q) { return near(Complex(p.r, p.i), q, 1e-14); };
  EXPECT_TRUE(same(vsip_cadd_d(a, b), x + y));
  EXPECT_TRUE(same(vsip_csub_d(a, b), x - y));
  EXPECT_TRUE(same(vsip_cmul_d(a, b), x * y));
  EXPECT_TRUE(same(vsip_cjmul_d(a, b), x * std::conj(y)));
  EXPECT_TRUE(same(vsip_cdiv_d(a, b), x / y));
  EXPECT_TRUE(same(vsip_crecip_d(a), 1.0 / x));
  EXPECT_TRUE(same(vsip_cexp_d(a), std::exp(x)));
  EXPECT_TRUE(same(vsip_clog_d(a), std::log(x)));
  EXPECT_TRUE(same(vsip_csqrt_d(a), std::sqrt(x)));
  EXPECT_TRUE(same(vsip_conj_d(a), std::conj(x)));
  EXPECT_TRUE(same(vsip_cneg_d(a), -x));
  EXPECT_TRUE(same(vsip_rcadd_d(2, a), 2.0 + x));
  EXPECT_TRUE(same(vsip_rcsub_d(2, a), 2.0 - x));
  EXPECT_TRUE(same(vsip_crsub_d(a, 2), x - 2.0));
  EXPECT_TRUE(same(vsip_rcmul_d(2, a), 2.0 * x));
  EXPECT_TRUE(same(vsip_crdiv_d(a, 2), x / 2.0));
  EXPECT_EQ(vsip_cmag_d(a), 5);
  EXPECT_EQ(vsip_cmagsq_d(a), 25);
  EXPECT_EQ(vsip_arg_d(a), std::arg(x));
  double size = 0, angle = 0;
  vsip_polar_d(a, &size, &angle);
  EXPECT_TRUE(same(vsip_rect_d(size, angle), x));
  EXPECT_NEAR(vsip_exp10_f(2), 100, 1e-3);
  EXPECT_EQ(vsip_rsqrt_d(4), 0.5);
  EXPECT_EQ(vsip_recip_d(4), 0.25);
  EXPECT_EQ(vsip_recip_f(8), 0.125F);
}

#define BY_REFERENCE(T)                                                                                    \
  {                                                                                                        \
    const vsip_cscalar_##T a = vsip_cmplx_##T(3, -4), b = vsip_cmplx_##T(vsip_scalar_##T(0.5), 2);         \
    const vsip_scalar_##T s = 2;                                                                           \
    vsip_cscalar_##T r;                                                                                    \
    const auto is = [&r](vsip_cscalar_##T x) { return r.r == x.r && r.i == x.i; };                         \
    EXPECT_TRUE((vsip_CMPLX_##T(7, 8, &r), is({7, 8})));                                                   \
    EXPECT_TRUE((vsip_CADD_##T(a, b, &r), is(vsip_cadd_##T(a, b))));                                       \
    EXPECT_TRUE((vsip_CSUB_##T(a, b, &r), is(vsip_csub_##T(a, b))));                                       \
    EXPECT_TRUE((vsip_CMUL_##T(a, b, &r), is(vsip_cmul_##T(a, b))));                                       \
    EXPECT_TRUE((vsip_CJMUL_##T(a, b, &r), is(vsip_cjmul_##T(a, b))));                                     \
    EXPECT_TRUE((vsip_CDIV_##T(a, b, &r), is(vsip_cdiv_##T(a, b))));                                       \
    EXPECT_TRUE((vsip_CNEG_##T(a, &r), is(vsip_cneg_##T(a))));                                             \
    EXPECT_TRUE((vsip_CONJ_##T(a, &r), is(vsip_conj_##T(a))));                                             \
    EXPECT_TRUE((vsip_CEXP_##T(a, &r), is(vsip_cexp_##T(a))));                                             \
    EXPECT_TRUE((vsip_CSQRT_##T(a, &r), is(vsip_csqrt_##T(a))));                                           \
    EXPECT_TRUE((vsip_CRECIP_##T(a, &r), is(vsip_crecip_##T(a))));                                         \
    EXPECT_TRUE((vsip_RCADD_##T(s, a, &r), is(vsip_rcadd_##T(s, a))));                                     \
    EXPECT_TRUE((vsip_RCMUL_##T(s, a, &r), is(vsip_rcmul_##T(s, a))));                                     \
    EXPECT_TRUE((vsip_RCSUB_##T(s, a, &r), is(vsip_rcsub_##T(s, a))));                                     \
    EXPECT_TRUE((vsip_CRSUB_##T(a, s, &r), is(vsip_crsub_##T(a, s))));                                     \
    EXPECT_TRUE((vsip_CRDIV_##T(a, s, &r), is(vsip_crdiv_##T(a, s))));                                     \
    r = a;                                                                                                 \
    EXPECT_TRUE((vsip_CMUL_##T(r, r, &r), is(vsip_cmul_##T(a, a)))) << "a result may replace an argument"; \
  }
TEST(VsipScalar, has_results_by_reference) {
  BY_REFERENCE(f)
  BY_REFERENCE(d)
}

}  // namespace
