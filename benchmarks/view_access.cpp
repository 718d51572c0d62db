#include <cmath>
#include <complex>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <view_access.hpp>

#include <tranship/base/fail.hpp>
#include <tranship/face/vsip/views.hpp>

namespace tranship::bench {
namespace {

using tranship::vsip::elements;
using tranship::vsip::parts;

constexpr vsip_length rows = 128, columns = 256;

// The loops of a program that has a pointer, strides and lengths. They are never inlined, so that the compiler knows no
// more about these than about a view.

/// a = a * b + 1, element by element.
[[gnu::noinline]] void raw_real(float* a, std::ptrdiff_t a_row, std::ptrdiff_t a_column, const float* b,
                                std::ptrdiff_t b_row, std::ptrdiff_t b_column, std::size_t n, std::size_t m) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < m; ++j) {
      float& x = a[std::ptrdiff_t(i) * a_row + std::ptrdiff_t(j) * a_column];
      x = x * b[std::ptrdiff_t(i) * b_row + std::ptrdiff_t(j) * b_column] + 1;
    }
}
[[gnu::noinline]] void by_elements(const vsip_mview_f* a_view, const vsip_mview_f* b_view) {
  const auto a = elements(a_view), b = elements(b_view);
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) a(i, j) = a(i, j) * b(i, j) + 1;
}
[[gnu::noinline]] void by_calls(const vsip_mview_f* a, const vsip_mview_f* b) {
  for (vsip_index i = 0; i < rows; ++i)
    for (vsip_index j = 0; j < columns; ++j) vsip_mput_f(a, i, j, vsip_mget_f(a, i, j) * vsip_mget_f(b, i, j) + 1);
}

/// a = a * b, complex.
[[gnu::noinline]] void raw_complex(float* a, std::ptrdiff_t a_row, std::ptrdiff_t a_column, const float* b,
                                   std::ptrdiff_t b_row, std::ptrdiff_t b_column, std::size_t n, std::size_t m) {
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < m; ++j) {
      float* const x = a + std::ptrdiff_t(i) * a_row + std::ptrdiff_t(j) * a_column;
      const float* const y = b + std::ptrdiff_t(i) * b_row + std::ptrdiff_t(j) * b_column;
      const float real = x[0] * y[0] - x[1] * y[1];
      x[1] = x[0] * y[1] + x[1] * y[0];
      x[0] = real;
    }
}
[[gnu::noinline]] void by_complex_elements(const vsip_cmview_f* a_view, const vsip_cmview_f* b_view) {
  const auto a = parts(a_view).interleaved(), b = parts(b_view).interleaved();
  for (std::size_t i = 0; i < a.extent(0); ++i)
    for (std::size_t j = 0; j < a.extent(1); ++j) {
      std::complex<float>& x = a(i, j);
      const std::complex<float>& y = b(i, j);
      const float real = x.real() * y.real() - x.imag() * y.imag();
      x.imag(x.real() * y.imag() + x.imag() * y.real());
      x.real(real);
    }
}

struct Case {
  std::string name;
  std::function<void()> ours, raw;
  double bytes;  // read and written by one run
};

void measure(Report& report, const Case& c) {
  const std::string name = "view access: " + c.name;
  if (!report.wants(name)) return;
  report.announce(name);
  const auto ns = medians_ns({{c.ours}, {c.raw}}, report.measure_options());
  report.add(
      {.name = name, .unit = "GB/s", .better = Better::higher, .ours = c.bytes / ns[0], .limit = c.bytes / ns[1]});
}

/// Every `step`-th column of blocks that stay in the second cache.
void measure_step(Report& report, vsip_stride step) {
  const vsip_length pitch = columns * vsip_length(step);
  const auto make = [&](auto create_block, auto bind) {
    auto* const block = create_block(rows * pitch, VSIP_MEM_NONE);
    auto* const view = bind(block, 0, vsip_stride(pitch), rows, step, columns);
    if (!view) throw_error(ErrorCode::no_memory, "no memory for {} elements", rows * pitch);
    return view;
  };
  vsip_mview_f* const a = make(vsip_blockcreate_f, vsip_mbind_f);
  vsip_mview_f* const b = make(vsip_blockcreate_f, vsip_mbind_f);
  vsip_cmview_f* const ca = make(vsip_cblockcreate_f, vsip_cmbind_f);
  vsip_cmview_f* const cb = make(vsip_cblockcreate_f, vsip_cmbind_f);
  const auto reset = [&] {
    vsip_mfill_f(0.5F, a);
    vsip_mfill_f(0.5F, b);
    vsip_cmfill_f(vsip_cmplx_f(1, 0), ca);
    vsip_cmfill_f(vsip_cmplx_f(0.6F, 0.8F), cb);  // of magnitude 1: products stay what they are
  };
  const auto place = elements(a), other = elements(b);
  const auto complex = parts(ca), complex_other = parts(cb);
  const auto raw = [=] {
    raw_real(place.data_handle(), place.stride(0), place.stride(1), other.data_handle(), other.stride(0),
             other.stride(1), place.extent(0), place.extent(1));
  };
  const auto raw_of_complex = [=] {
    raw_complex(complex.real.data_handle(), complex.real.stride(0), complex.real.stride(1),
                complex_other.real.data_handle(), complex_other.real.stride(0), complex_other.real.stride(1),
                complex.real.extent(0), complex.real.extent(1));
  };
  const char* const columns_are = step == 1 ? "all columns" : "every second column";
  const double bytes = 3.0 * rows * columns * sizeof(float);
  const Case cases[] = {
      {fmt::format("elements(view) in C++, {}", columns_are), [=] { by_elements(a, b); }, raw, bytes},
      {fmt::format("vsip_mget_f and vsip_mput_f, {}", columns_are), [=] { by_calls(a, b); }, raw, bytes},
      {fmt::format("parts(view).interleaved() in C++, {}", columns_are), [=] { by_complex_elements(ca, cb); },
       raw_of_complex, 2 * bytes},
      {fmt::format("vsip_cmmul_f, {}", columns_are), [=] { vsip_cmmul_f(ca, cb, ca); }, raw_of_complex, 2 * bytes},
  };
  for (const Case& c : cases) {
    reset();
    c.raw();
    const float real = vsip_mget_f(a, rows - 1, columns - 1);
    const vsip_cscalar_f number = vsip_cmget_f(ca, rows - 1, columns - 1);
    reset();
    c.ours();
    const vsip_cscalar_f seen = vsip_cmget_f(ca, rows - 1, columns - 1);
    const float difference = std::abs(vsip_mget_f(a, rows - 1, columns - 1) - real) + std::abs(seen.r - number.r) +
                             std::abs(seen.i - number.i);
    if (difference > 1e-6F) throw_error(ErrorCode::internal, "{}: the last element is wrong by {}", c.name, difference);
    measure(report, c);
  }
  vsip_malldestroy_f(a);
  vsip_malldestroy_f(b);
  vsip_cmalldestroy_f(ca);
  vsip_cmalldestroy_f(cb);
}

}  // namespace

void measure_view_access(Report& report) {
  vsip_init(nullptr);
  for (const vsip_stride step : {1, 2}) measure_step(report, step);
  vsip_finalize(nullptr);
}

}  // namespace tranship::bench
