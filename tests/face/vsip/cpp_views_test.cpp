// Views in C++: elements, parts, and conversions.
#include <gtest/gtest.h>

#include <tranship/face/vsip/views.hpp>

namespace {

using tranship::StridedView;
using tranship::vsip::elements;
using tranship::vsip::parts;

TEST(VsipElements, are_those_of_the_view) {
  auto* m = vsip_mcreate_d(3, 4, VSIP_COL, VSIP_MEM_NONE);
  auto* turned = vsip_mtransview_d(m);
  const auto e = elements(turned);
  static_assert(decltype(e)::rank() == 2);
  EXPECT_EQ(e.extent(0), 4U);
  EXPECT_EQ(e.stride(0), 3);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 3; ++j) e(i, j) = 10 * i + j;
  EXPECT_EQ(vsip_mget_d(m, 2, 3), 32);
  const StridedView view = e;
  EXPECT_EQ(view.data, e.data_handle());
  EXPECT_EQ(view.type, tranship::ElementType::f64);
  EXPECT_EQ(view.extents, (tranship::Indices{4, 3}));
  EXPECT_EQ(view.strides, (tranship::Indices{3, 1}));
  auto* t = vsip_tcreate_si(2, 3, 4, VSIP_TRAILING, VSIP_MEM_NONE);
  elements(t)(1, 2, 3) = 5;
  EXPECT_EQ(vsip_tget_si(t, 1, 2, 3), 5);
  vsip_mdestroy_d(turned);
  vsip_malldestroy_d(m);
  vsip_talldestroy_si(t);
}

TEST(VsipElements, of_complex_views_are_parts) {
  auto* v = vsip_cvcreate_f(6, VSIP_MEM_NONE);
  vsip_cvputstride_f(v, 2);
  vsip_cvputlength_f(v, 3);
  for (vsip_index i = 0; i < 3; ++i) vsip_cvput_f(v, i, vsip_cmplx_f(float(i), -float(i)));
  const auto p = parts(v);
  EXPECT_TRUE(p.is_interleaved());
  EXPECT_EQ(p.imaginary(2), -2);
  EXPECT_EQ(p.interleaved()(2), std::complex<float>(2, -2));
  EXPECT_EQ(p.interleaved().stride(0), 2);
  const StridedView view = p.interleaved();
  EXPECT_EQ(view.type, tranship::ElementType::c64);
  vsip_cvalldestroy_f(v);
  float re[4] = {1, 2, 3, 4}, im[4] = {};
  auto* block = vsip_cblockbind_f(re, im, 4, VSIP_MEM_NONE);
  vsip_cblockadmit_f(block, VSIP_TRUE);
  auto* split = vsip_cvbind_f(block, 3, -1, 4);
  EXPECT_FALSE(parts(split).is_interleaved());
  EXPECT_EQ(parts(split).real(0), 4);
  EXPECT_THROW(parts(split).interleaved(), tranship::Error);
  vsip_cvalldestroy_f(split);
}

#if defined(__cpp_lib_mdspan)
TEST(VsipElements, convert_to_mdspan) {
  auto* m = vsip_mcreate_f(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  const std::mdspan<float, std::dextents<std::size_t, 2>, std::layout_stride> view = elements(m);
  view[2, 3] = 7;
  EXPECT_EQ(vsip_mget_f(m, 2, 3), 7);
  vsip_malldestroy_f(m);
}
#endif

}  // namespace
