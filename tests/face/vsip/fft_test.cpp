// FFTs of every kind, direction, scale and layout, beside the sum that defines them.
#include <functional>
#include <numbers>

#include <gtest/gtest.h>

#include "layouts.hpp"

namespace {

using namespace vsip_test;
using Complex = std::complex<double>;

/// Element k of the DFT of x.
Complex dft(const std::vector<Complex>& x, vsip_length k, int direction) {
  Complex sum = 0;
  for (std::size_t j = 0; j < x.size(); ++j)
    sum += x[j] * std::polar(1.0, direction * 2 * std::numbers::pi * double((j * k) % x.size()) / double(x.size()));
  return sum;
}

/// Rows x columns of values, and lines of it: rows, or columns.
struct Lines {
  vsip_length rows, columns;
  bool by_row;
  vsip_length length() const { return by_row ? columns : rows; }
  vsip_length count() const { return by_row ? rows : columns; }
  template <class A>
  Complex get(const A& array, vsip_length line, vsip_length k) const {
    return by_row ? array.get(line, k) : array.get(k, line);
  }
};

template <class A>
std::vector<Complex> line_of(const A& array, const Lines& lines, vsip_length line) {
  std::vector<Complex> out;
  for (vsip_length k = 0; k < lines.length(); ++k) out.push_back(lines.get(array, line, k));
  return out;
}

template <class View>
void fill_signal(Array<View>& array, vsip_length rows, vsip_length columns) {
  for (vsip_length i = 0; i < rows; ++i)
    for (vsip_length j = 0; j < columns; ++j) array.set(i, j, value<View>(0, i * columns + j));
}

template <class Scalar>
constexpr double fft_tolerance = std::is_same_v<Scalar, float> ? 1e-4 : 1e-12;

/// out is the DFT of `in`, of which it shows the first elements.
template <class Out>
void expect_dft(const Array<Out>& out, const std::vector<std::vector<Complex>>& in, const Lines& out_lines,
                int direction, double scale, const char* name) {
  using Scalar = typename Calls<Out>::Scalar;
  for (vsip_length line = 0; line < out_lines.count(); ++line)
    for (vsip_length k = 0; k < out_lines.length(); ++k)
      ASSERT_TRUE(near(out_lines.get(out, line, k), scale * dft(in[line], k, direction), fft_tolerance<Scalar>))
          << name << " line " << line << " element " << k;
  ASSERT_EQ(out.damaged_guards(), 0) << name;
}

constexpr vsip_length lengths[] = {1, 2, 7, 8, 12, 16};

#define VECTORS(T)                                                                                                   \
  TEST(VsipFft, of_vectors_##T) {                                                                                    \
    for (const vsip_length n : lengths)                                                                              \
      for (const auto direction : {VSIP_FFT_FWD, VSIP_FFT_INV})                                                      \
        for (int k = 0; k < layout_count; ++k) {                                                                     \
          const Lines lines{1, n, true};                                                                             \
          Array<vsip_cvview_##T> a(layouts[(k + 2) % layout_count], 1, n), r(layouts[k], 1, n);                      \
          fill_signal(a, 1, n);                                                                                      \
          const std::vector<std::vector<Complex>> before{line_of(a, lines, 0)};                                      \
          auto* op = vsip_ccfftop_create_##T(n, vsip_scalar_##T(0.5), direction, k % 2, VSIP_ALG_TIME);              \
          for (int time = 0; time < 2; ++time) vsip_ccfftop_##T(op, a.view(), r.view());                             \
          expect_dft(r, before, lines, direction, 0.5, "ccfftop");                                                   \
          ASSERT_EQ(line_of(a, lines, 0), before[0]);                                                                \
          auto* ip = vsip_ccfftip_create_##T(n, 1, direction, k % 2, VSIP_ALG_TIME);                                 \
          vsip_ccfftip_##T(ip, a.view());                                                                            \
          expect_dft(a, before, lines, direction, 1, "ccfftip");                                                     \
          EXPECT_EQ(vsip_fft_destroy_##T(op), 0);                                                                    \
          vsip_fft_destroy_##T(ip);                                                                                  \
        }                                                                                                            \
  }                                                                                                                  \
  TEST(VsipFft, between_real_and_complex_vectors_##T) {                                                              \
    for (const vsip_length n : lengths)                                                                              \
      for (int k = 0; k < layout_count; ++k) {                                                                       \
        Array<vsip_vview_##T> a(layouts[(k + 2) % layout_count], 1, n), back(layouts[(k + 4) % layout_count], 1, n); \
        Array<vsip_cvview_##T> r(layouts[k], 1, n / 2 + 1);                                                          \
        fill_signal(a, 1, n);                                                                                        \
        const Lines whole{1, n, true}, half{1, n / 2 + 1, true};                                                     \
        const std::vector<std::vector<Complex>> before{line_of(a, whole, 0)};                                        \
        auto* rc = vsip_rcfftop_create_##T(n, 3, k % 2, VSIP_ALG_TIME);                                              \
        vsip_rcfftop_##T(rc, a.view(), r.view());                                                                    \
        expect_dft(r, before, half, -1, 3, "rcfftop");                                                               \
        const auto spectrum = line_of(r, half, 0);                                                                   \
        auto* cr = vsip_crfftop_create_##T(n, vsip_scalar_##T(1.0 / (3 * double(n))), k % 2, VSIP_ALG_TIME);         \
        vsip_crfftop_##T(cr, r.view(), back.view());                                                                 \
        for (vsip_length j = 0; j < n; ++j)                                                                          \
          ASSERT_TRUE(near(back.get(0, j), before[0][j].real(), fft_tolerance<vsip_scalar_##T>)) << n << " " << j;   \
        ASSERT_EQ(back.damaged_guards(), 0);                                                                         \
        ASSERT_EQ(line_of(r, half, 0), spectrum) << "the input keeps its values";                                    \
        vsip_fft_destroy_##T(rc);                                                                                    \
        vsip_fft_destroy_##T(cr);                                                                                    \
      }                                                                                                              \
  }                                                                                                                  \
  TEST(VsipFft, of_rows_and_columns_##T) {                                                                           \
    for (const auto major : {VSIP_ROW, VSIP_COL})                                                                    \
      for (const auto direction : {VSIP_FFT_FWD, VSIP_FFT_INV})                                                      \
        for (int k = 0; k < layout_count; ++k) {                                                                     \
          const vsip_length rows = 6, columns = 10;                                                                  \
          const Lines lines{rows, columns, major == VSIP_ROW};                                                       \
          Array<vsip_cmview_##T> a(layouts[(k + 1) % layout_count], rows, columns), r(layouts[k], rows, columns);    \
          fill_signal(a, rows, columns);                                                                             \
          std::vector<std::vector<Complex>> before;                                                                  \
          for (vsip_length line = 0; line < lines.count(); ++line) before.push_back(line_of(a, lines, line));        \
          auto* op = vsip_ccfftmop_create_##T(rows, columns, 2, direction, major, k % 2, VSIP_ALG_TIME);             \
          auto* ip = vsip_ccfftmip_create_##T(rows, columns, 2, direction, major, k % 2, VSIP_ALG_TIME);             \
          vsip_ccfftmop_##T(op, a.view(), r.view());                                                                 \
          expect_dft(r, before, lines, direction, 2, "ccfftmop");                                                    \
          vsip_ccfftmip_##T(ip, a.view());                                                                           \
          expect_dft(a, before, lines, direction, 2, "ccfftmip");                                                    \
          vsip_fftm_destroy_##T(op);                                                                                 \
          vsip_fftm_destroy_##T(ip);                                                                                 \
        }                                                                                                            \
  }                                                                                                                  \
  TEST(VsipFft, of_real_rows_and_columns_##T) {                                                                      \
    for (const auto major : {VSIP_ROW, VSIP_COL})                                                                    \
      for (int k = 0; k < layout_count; ++k) {                                                                       \
        const vsip_length rows = 6, columns = 10;                                                                    \
        const bool by_row = major == VSIP_ROW;                                                                       \
        const Lines whole{rows, columns, by_row};                                                                    \
        const Lines half{by_row ? rows : rows / 2 + 1, by_row ? columns / 2 + 1 : columns, by_row};                  \
        Array<vsip_mview_##T> a(layouts[(k + 1) % layout_count], rows, columns), back(layouts[k], rows, columns);    \
        Array<vsip_cmview_##T> r(layouts[k], half.rows, half.columns);                                               \
        fill_signal(a, rows, columns);                                                                               \
        std::vector<std::vector<Complex>> before;                                                                    \
        for (vsip_length line = 0; line < whole.count(); ++line) before.push_back(line_of(a, whole, line));          \
        auto* rc = vsip_rcfftmop_create_##T(rows, columns, 1, major, 1, VSIP_ALG_SPACE);                             \
        auto* cr = vsip_crfftmop_create_##T(rows, columns, vsip_scalar_##T(1.0 / double(whole.length())), major, 1,  \
                                            VSIP_ALG_SPACE);                                                         \
        vsip_rcfftmop_##T(rc, a.view(), r.view());                                                                   \
        expect_dft(r, before, half, -1, 1, "rcfftmop");                                                              \
        vsip_crfftmop_##T(cr, r.view(), back.view());                                                                \
        for (vsip_length i = 0; i < rows; ++i)                                                                       \
          for (vsip_length j = 0; j < columns; ++j)                                                                  \
            ASSERT_TRUE(near(back.get(i, j), a.get(i, j), fft_tolerance<vsip_scalar_##T>));                          \
        vsip_fftm_destroy_##T(rc);                                                                                   \
        vsip_fftm_destroy_##T(cr);                                                                                   \
      }                                                                                                              \
  }                                                                                                                  \
  TEST(VsipFft, says_what_it_is_##T) {                                                                               \
    vsip_fft_attr_##T one;                                                                                           \
    auto* rc = vsip_rcfftop_create_##T(10, 2, 1, VSIP_ALG_SPACE);                                                    \
    vsip_fft_getattr_##T(rc, &one);                                                                                  \
    EXPECT_EQ(one.input, 10U);                                                                                       \
    EXPECT_EQ(one.output, 6U);                                                                                       \
    EXPECT_EQ(one.place, VSIP_FFT_OP);                                                                               \
    EXPECT_EQ(one.scale, 2);                                                                                         \
    EXPECT_EQ(one.dir, VSIP_FFT_FWD);                                                                                \
    vsip_fft_destroy_##T(rc);                                                                                        \
    vsip_fftm_attr_##T many;                                                                                         \
    auto* cr = vsip_crfftmop_create_##T(6, 10, 2, VSIP_COL, 1, VSIP_ALG_SPACE);                                      \
    vsip_fftm_getattr_##T(cr, &many);                                                                                \
    EXPECT_EQ(many.input.r, 4U);                                                                                     \
    EXPECT_EQ(many.input.c, 10U);                                                                                    \
    EXPECT_EQ(many.output.r, 6U);                                                                                    \
    EXPECT_EQ(many.dir, VSIP_FFT_INV);                                                                               \
    EXPECT_EQ(many.major, VSIP_COL);                                                                                 \
    vsip_fftm_destroy_##T(cr);                                                                                       \
    EXPECT_EQ(vsip_ccfftip_create_##T(0, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE), nullptr);                              \
    EXPECT_EQ(vsip_fft_destroy_##T(nullptr), 0);                                                                     \
  }
TRANSHIP_VSIP_FLOATS(VECTORS)

TEST(VsipFft, keeps_plans_for_many_layouts) {
  auto* fft = vsip_ccfftip_create_f(8, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  for (int round = 0; round < 2; ++round)
    for (vsip_stride stride = 1; stride <= 40; ++stride) {
      auto* block = vsip_cblockcreate_f(8 * vsip_length(stride), VSIP_MEM_NONE);
      auto* v = vsip_cvbind_f(block, 0, stride, 8);
      vsip_cvfill_f(vsip_cmplx_f(1, 2), v);
      vsip_ccfftip_f(fft, v);
      EXPECT_EQ(vsip_cvget_f(v, 0).r, 8);
      EXPECT_EQ(vsip_cvget_f(v, 0).i, 16);
      EXPECT_NEAR(vsip_cvget_f(v, 3).r, 0, 1e-5);
      vsip_cvalldestroy_f(v);
    }
  vsip_fft_destroy_f(fft);
}

}  // namespace
