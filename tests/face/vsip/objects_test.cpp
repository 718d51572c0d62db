// Blocks, views and their attributes; user memory; slices.
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "layouts.hpp"

namespace {

TEST(VsipBlock, of_the_user_starts_released) {
  float memory[6] = {0, 1, 2, 3, 4, 5}, other[6] = {};
  auto* block = vsip_blockbind_f(memory, 6, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_blockfind_f(block), memory);
  EXPECT_EQ(vsip_blockadmit_f(block, VSIP_TRUE), 0);
  EXPECT_EQ(vsip_blockfind_f(block), nullptr);
  EXPECT_EQ(vsip_blockrebind_f(block, other), nullptr) << "an admitted block keeps its memory";
  auto* view = vsip_vbind_f(block, 1, 2, 3);
  vsip_vput_f(view, 2, 50);
  EXPECT_EQ(vsip_blockrelease_f(block, VSIP_TRUE), memory);
  EXPECT_EQ(memory[5], 50);
  EXPECT_EQ(vsip_blockrebind_f(block, other), memory);
  EXPECT_EQ(vsip_blockadmit_f(block, VSIP_FALSE), 0);
  EXPECT_EQ(vsip_vget_f(view, 2), 0);
  vsip_valldestroy_f(view);
}

TEST(VsipBlock, without_memory_cannot_be_admitted) {
  auto* block = vsip_blockbind_d(nullptr, 6, VSIP_MEM_NONE);
  EXPECT_NE(vsip_blockadmit_d(block, VSIP_TRUE), 0);
  double memory[6];
  EXPECT_EQ(vsip_blockrebind_d(block, memory), nullptr);
  EXPECT_EQ(vsip_blockadmit_d(block, VSIP_TRUE), 0);
  vsip_blockdestroy_d(block);
}

TEST(VsipBlock, of_the_library_has_no_user_memory) {
  auto* block = vsip_blockcreate_i(4, VSIP_MEM_NONE);
  EXPECT_NE(vsip_blockadmit_i(block, VSIP_TRUE), 0);
  EXPECT_EQ(vsip_blockrelease_i(block, VSIP_TRUE), nullptr);
  EXPECT_EQ(vsip_blockfind_i(block), nullptr);
  EXPECT_EQ(vsip_blockrebind_i(block, nullptr), nullptr);
  vsip_blockdestroy_i(block);
  auto* complex = vsip_cblockcreate_f(4, VSIP_MEM_NONE);
  float *re = nullptr, *im = nullptr;
  vsip_cblockrelease_f(complex, VSIP_TRUE, &re, &im);
  EXPECT_EQ(re, nullptr);
  EXPECT_EQ(im, nullptr);
  vsip_cblockdestroy_f(complex);
}

TEST(VsipBlock, of_complex_elements_is_split_or_interleaved) {
  double re[3] = {1, 2, 3}, im[3] = {4, 5, 6}, both[6] = {1, 4, 2, 5, 3, 6};
  double *found_re = nullptr, *found_im = nullptr;
  auto* block = vsip_cblockbind_d(re, im, 3, VSIP_MEM_NONE);
  vsip_cblockfind_d(block, &found_re, &found_im);
  EXPECT_EQ(found_re, re);
  EXPECT_EQ(found_im, im);
  vsip_cblockadmit_d(block, VSIP_TRUE);
  auto* view = vsip_cvbind_d(block, 0, 1, 3);
  auto* imaginary = vsip_vimagview_d(view);
  EXPECT_EQ(vsip_cvget_d(view, 1).i, 5);
  EXPECT_EQ(vsip_vget_d(imaginary, 2), 6);
  vsip_cblockrelease_d(block, VSIP_TRUE, &found_re, &found_im);
  EXPECT_EQ(found_im, im);
  vsip_cblockrebind_d(block, both, nullptr, &found_re, &found_im);
  EXPECT_EQ(found_re, re);
  EXPECT_EQ(found_im, im);
  vsip_cblockadmit_d(block, VSIP_TRUE);
  EXPECT_EQ(vsip_cvget_d(view, 1).i, 5);
  EXPECT_EQ(vsip_vget_d(imaginary, 2), 6) << "derived views follow the block";
  vsip_cblockrelease_d(block, VSIP_TRUE, &found_re, &found_im);
  EXPECT_EQ(found_re, both);
  EXPECT_EQ(found_im, nullptr);
  vsip_vdestroy_d(imaginary);
  vsip_cvalldestroy_d(view);
}

TEST(VsipBlock, that_is_too_large_is_not_made) {
  EXPECT_EQ(vsip_blockcreate_d(SIZE_MAX / 8 + 2, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(vsip_mcreate_d(SIZE_MAX / 2, 8, VSIP_ROW, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(vsip_ctcreate_f(1ULL << 30, 1ULL << 30, 1ULL << 30, VSIP_TRAILING, VSIP_MEM_NONE), nullptr);
}

TEST(VsipObject, null_may_be_destroyed) {
  vsip_blockdestroy_f(nullptr);
  vsip_cblockdestroy_d(nullptr);
  EXPECT_EQ(vsip_vdestroy_f(nullptr), nullptr);
  EXPECT_EQ(vsip_cmdestroy_d(nullptr), nullptr);
  EXPECT_EQ(vsip_tdestroy_uc(nullptr), nullptr);
  vsip_valldestroy_mi(nullptr);
  vsip_talldestroy_f(nullptr);
}

// One test for all element types: what a view says of itself, and that elements lie where its attributes say.
#define VECTOR(C, T)                                            \
  TEST(VsipVector, has_attributes_##C##T) {                     \
    auto* block = vsip_##C##blockcreate_##T(40, VSIP_MEM_NONE); \
    auto* v = vsip_##C##vbind_##T(block, 30, -3, 8);            \
    vsip_##C##vattr_##T a;                                      \
    vsip_##C##vgetattrib_##T(v, &a);                            \
    EXPECT_EQ(a.offset, 30U);                                   \
    EXPECT_EQ(a.stride, -3);                                    \
    EXPECT_EQ(a.length, 8U);                                    \
    EXPECT_EQ(a.block, block);                                  \
    vsip_##C##scalar_##T x{};                                   \
    *reinterpret_cast<unsigned char*>(&x) = 1;                  \
    vsip_##C##vput_##T(v, 2, x);                                \
    auto* all = vsip_##C##vbind_##T(block, 0, 1, 40);           \
    const auto y = vsip_##C##vget_##T(all, 24);                 \
    EXPECT_EQ(std::memcmp(&x, &y, sizeof x), 0);                \
    auto* sub = vsip_##C##vsubview_##T(v, 2, 3);                \
    EXPECT_EQ(vsip_##C##vgetoffset_##T(sub), 24U);              \
    EXPECT_EQ(vsip_##C##vgetstride_##T(sub), -3);               \
    EXPECT_EQ(vsip_##C##vgetlength_##T(sub), 3U);               \
    a.block = nullptr;                                          \
    a.length = 2;                                               \
    EXPECT_EQ(vsip_##C##vputattrib_##T(sub, &a), sub);          \
    EXPECT_EQ(vsip_##C##vgetblock_##T(sub), block);             \
    EXPECT_EQ(vsip_##C##vgetlength_##T(sub), 2U);               \
    EXPECT_EQ(vsip_##C##vputoffset_##T(sub, 7), sub);           \
    EXPECT_EQ(vsip_##C##vputstride_##T(sub, 5), sub);           \
    EXPECT_EQ(vsip_##C##vputlength_##T(sub, 6), sub);           \
    auto* clone = vsip_##C##vcloneview_##T(sub);                \
    vsip_##C##vgetattrib_##T(clone, &a);                        \
    EXPECT_EQ(a.offset, 7U);                                    \
    EXPECT_EQ(a.stride, 5);                                     \
    EXPECT_EQ(a.length, 6U);                                    \
    vsip_##C##vdestroy_##T(clone);                              \
    vsip_##C##vdestroy_##T(sub);                                \
    EXPECT_EQ(vsip_##C##vdestroy_##T(all), block);              \
    vsip_##C##valldestroy_##T(v);                               \
  }
TRANSHIP_VSIP_VECTORS(VECTOR)

#define MATRIX(C, T)                                                                              \
  TEST(VsipMatrix, has_attributes_and_slices_##C##T) {                                            \
    auto* by_column = vsip_##C##mcreate_##T(3, 5, VSIP_COL, VSIP_MEM_NONE);                       \
    EXPECT_EQ(vsip_##C##mgetrowstride_##T(by_column), 3);                                         \
    EXPECT_EQ(vsip_##C##mgetcolstride_##T(by_column), 1);                                         \
    vsip_##C##malldestroy_##T(by_column);                                                         \
    auto* m = vsip_##C##mcreate_##T(4, 6, VSIP_ROW, VSIP_MEM_NONE);                               \
    vsip_##C##mattr_##T a;                                                                        \
    vsip_##C##mgetattrib_##T(m, &a);                                                              \
    EXPECT_EQ(a.row_stride, 1);                                                                   \
    EXPECT_EQ(a.row_length, 6U);                                                                  \
    EXPECT_EQ(a.col_stride, 6);                                                                   \
    EXPECT_EQ(a.col_length, 4U);                                                                  \
    auto* sub = vsip_##C##msubview_##T(m, 1, 2, 3, 4);                                            \
    EXPECT_EQ(vsip_##C##mgetoffset_##T(sub), 8U);                                                 \
    EXPECT_EQ(vsip_##C##mgetcollength_##T(sub), 3U);                                              \
    EXPECT_EQ(vsip_##C##mgetrowlength_##T(sub), 4U);                                              \
    vsip_##C##scalar_##T x{};                                                                     \
    *reinterpret_cast<unsigned char*>(&x) = 1;                                                    \
    vsip_##C##mfill_##T(vsip_##C##scalar_##T{}, m);                                               \
    vsip_##C##mput_##T(sub, 2, 1, x);                                                             \
    const auto is_x = [&](vsip_##C##scalar_##T y) { return std::memcmp(&x, &y, sizeof x) == 0; }; \
    EXPECT_TRUE(is_x(vsip_##C##mget_##T(m, 3, 3)));                                               \
    auto* row = vsip_##C##mrowview_##T(m, 3);                                                     \
    auto* column = vsip_##C##mcolview_##T(m, 3);                                                  \
    auto* diagonal = vsip_##C##mdiagview_##T(m, 0);                                               \
    auto* below = vsip_##C##mdiagview_##T(m, -1);                                                 \
    auto* above = vsip_##C##mdiagview_##T(m, 2);                                                  \
    auto* turned = vsip_##C##mtransview_##T(sub);                                                 \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(row, 3)));                                                \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(column, 3)));                                             \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(diagonal, 3)));                                           \
    EXPECT_TRUE(is_x(vsip_##C##mget_##T(turned, 1, 2)));                                          \
    EXPECT_EQ(vsip_##C##vgetlength_##T(row), 6U);                                                 \
    EXPECT_EQ(vsip_##C##vgetlength_##T(column), 4U);                                              \
    EXPECT_EQ(vsip_##C##vgetlength_##T(diagonal), 4U);                                            \
    EXPECT_EQ(vsip_##C##vgetlength_##T(below), 3U);                                               \
    EXPECT_EQ(vsip_##C##vgetlength_##T(above), 4U);                                               \
    EXPECT_EQ(vsip_##C##vgetoffset_##T(below), 6U);                                               \
    EXPECT_EQ(vsip_##C##vgetoffset_##T(above), 2U);                                               \
    EXPECT_EQ(vsip_##C##vgetstride_##T(above), 7);                                                \
    for (auto* v : {row, column, diagonal, below, above}) vsip_##C##vdestroy_##T(v);              \
    a.row_length = 2;                                                                             \
    a.col_stride = 12;                                                                            \
    a.col_length = 2;                                                                             \
    EXPECT_EQ(vsip_##C##mputattrib_##T(sub, &a), sub);                                            \
    EXPECT_EQ(vsip_##C##mgetcolstride_##T(sub), 12);                                              \
    EXPECT_EQ(vsip_##C##mputrowstride_##T(sub, 2), sub);                                          \
    EXPECT_EQ(vsip_##C##mputrowlength_##T(sub, 1), sub);                                          \
    EXPECT_EQ(vsip_##C##mputcolstride_##T(sub, 3), sub);                                          \
    EXPECT_EQ(vsip_##C##mputcollength_##T(sub, 4), sub);                                          \
    EXPECT_EQ(vsip_##C##mputoffset_##T(sub, 5), sub);                                             \
    vsip_##C##mgetattrib_##T(sub, &a);                                                            \
    EXPECT_EQ(a.offset, 5U);                                                                      \
    EXPECT_EQ(a.row_stride, 2);                                                                   \
    EXPECT_EQ(a.row_length, 1U);                                                                  \
    EXPECT_EQ(a.col_stride, 3);                                                                   \
    EXPECT_EQ(a.col_length, 4U);                                                                  \
    vsip_##C##mdestroy_##T(turned);                                                               \
    vsip_##C##mdestroy_##T(sub);                                                                  \
    vsip_##C##malldestroy_##T(m);                                                                 \
  }
TRANSHIP_VSIP_MATRICES(MATRIX)

#define TENSOR(C, T)                                                                                                   \
  TEST(VsipTensor, has_attributes_and_slices_##C##T) {                                                                 \
    auto* leading = vsip_##C##tcreate_##T(2, 3, 4, VSIP_LEADING, VSIP_MEM_NONE);                                       \
    EXPECT_EQ(vsip_##C##tgetzstride_##T(leading), 1);                                                                  \
    EXPECT_EQ(vsip_##C##tgetystride_##T(leading), 2);                                                                  \
    EXPECT_EQ(vsip_##C##tgetxstride_##T(leading), 6);                                                                  \
    vsip_##C##talldestroy_##T(leading);                                                                                \
    auto* t = vsip_##C##tcreate_##T(2, 3, 4, VSIP_TRAILING, VSIP_MEM_NONE);                                            \
    vsip_##C##scalar_##T x{}, zero{};                                                                                  \
    *reinterpret_cast<unsigned char*>(&x) = 1;                                                                         \
    for (vsip_index z = 0; z < 2; ++z)                                                                                 \
      for (vsip_index y = 0; y < 3; ++y)                                                                               \
        for (vsip_index i = 0; i < 4; ++i) vsip_##C##tput_##T(t, z, y, i, zero);                                       \
    vsip_##C##tput_##T(t, 1, 2, 3, x);                                                                                 \
    const auto is_x = [&](vsip_##C##scalar_##T v) { return std::memcmp(&x, &v, sizeof x) == 0; };                      \
    EXPECT_TRUE(is_x(vsip_##C##tget_##T(t, 1, 2, 3)));                                                                 \
    EXPECT_FALSE(is_x(vsip_##C##tget_##T(t, 1, 2, 2)));                                                                \
    struct {                                                                                                           \
      vsip_ttrans how;                                                                                                 \
      vsip_index at[3];                                                                                                \
    } const cases[] = {{VSIP_TTRANS_NOP, {1, 2, 3}}, {VSIP_TTRANS_YX, {1, 3, 2}},   {VSIP_TTRANS_ZY, {2, 1, 3}},       \
                       {VSIP_TTRANS_ZX, {3, 2, 1}},  {VSIP_TTRANS_YXZY, {3, 1, 2}}, {VSIP_TTRANS_YXZX, {2, 3, 1}}};    \
    for (const auto& c : cases) {                                                                                      \
      auto* turned = vsip_##C##ttransview_##T(t, c.how);                                                               \
      EXPECT_TRUE(is_x(vsip_##C##tget_##T(turned, c.at[0], c.at[1], c.at[2]))) << c.how;                               \
      vsip_##C##tdestroy_##T(turned);                                                                                  \
    }                                                                                                                  \
    auto* yx = vsip_##C##tmatrixview_##T(t, VSIP_TMYX, 1);                                                             \
    auto* zx = vsip_##C##tmatrixview_##T(t, VSIP_TMZX, 2);                                                             \
    auto* zy = vsip_##C##tmatrixview_##T(t, VSIP_TMZY, 3);                                                             \
    EXPECT_TRUE(is_x(vsip_##C##mget_##T(yx, 2, 3)));                                                                   \
    EXPECT_TRUE(is_x(vsip_##C##mget_##T(zx, 1, 3)));                                                                   \
    EXPECT_TRUE(is_x(vsip_##C##mget_##T(zy, 1, 2)));                                                                   \
    for (auto* m : {yx, zx, zy}) vsip_##C##mdestroy_##T(m);                                                            \
    auto* vx = vsip_##C##tvectview_##T(t, VSIP_TVX, 1, 2);                                                             \
    auto* vy = vsip_##C##tvectview_##T(t, VSIP_TVY, 1, 3);                                                             \
    auto* vz = vsip_##C##tvectview_##T(t, VSIP_TVZ, 2, 3);                                                             \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(vx, 3)));                                                                      \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(vy, 2)));                                                                      \
    EXPECT_TRUE(is_x(vsip_##C##vget_##T(vz, 1)));                                                                      \
    for (auto* v : {vx, vy, vz}) vsip_##C##vdestroy_##T(v);                                                            \
    auto* sub = vsip_##C##tsubview_##T(t, 1, 1, 2, 1, 2, 2);                                                           \
    EXPECT_TRUE(is_x(vsip_##C##tget_##T(sub, 0, 1, 1)));                                                               \
    vsip_##C##tattr_##T a;                                                                                             \
    vsip_##C##tgetattrib_##T(sub, &a);                                                                                 \
    EXPECT_EQ(a.offset, 18U);                                                                                          \
    EXPECT_EQ(a.z_length, 1U);                                                                                         \
    EXPECT_EQ(a.z_stride, 12);                                                                                         \
    EXPECT_EQ(a.y_length, 2U);                                                                                         \
    EXPECT_EQ(a.y_stride, 4);                                                                                          \
    EXPECT_EQ(a.x_length, 2U);                                                                                         \
    EXPECT_EQ(a.x_stride, 1);                                                                                          \
    auto* clone = vsip_##C##tcloneview_##T(t);                                                                         \
    EXPECT_EQ(vsip_##C##tputattrib_##T(clone, &a), clone);                                                             \
    EXPECT_EQ(vsip_##C##tputzlength_##T(vsip_##C##tputylength_##T(vsip_##C##tputxlength_##T(clone, 3), 2), 1), clone); \
    EXPECT_EQ(vsip_##C##tputzstride_##T(vsip_##C##tputystride_##T(vsip_##C##tputxstride_##T(clone, 9), 8), 7), clone); \
    EXPECT_EQ(vsip_##C##tputoffset_##T(clone, 6), clone);                                                              \
    vsip_##C##tgetattrib_##T(clone, &a);                                                                               \
    EXPECT_EQ(a.offset, 6U);                                                                                           \
    EXPECT_EQ(a.z_stride, 7);                                                                                          \
    EXPECT_EQ(a.y_stride, 8);                                                                                          \
    EXPECT_EQ(a.x_stride, 9);                                                                                          \
    EXPECT_EQ(vsip_##C##tgetzlength_##T(clone), 1U);                                                                   \
    EXPECT_EQ(vsip_##C##tgetylength_##T(clone), 2U);                                                                   \
    EXPECT_EQ(vsip_##C##tgetxlength_##T(clone), 3U);                                                                   \
    auto* block = vsip_##C##tgetblock_##T(t);                                                                          \
    EXPECT_EQ(vsip_##C##tdestroy_##T(clone), block);                                                                   \
    auto* bound = vsip_##C##tbind_##T(block, 1, 12, 2, 4, 3, 1, 3);                                                    \
    EXPECT_TRUE(is_x(vsip_##C##tget_##T(bound, 1, 2, 2)));                                                             \
    vsip_##C##tdestroy_##T(bound);                                                                                     \
    vsip_##C##tdestroy_##T(sub);                                                                                       \
    vsip_##C##talldestroy_##T(t);                                                                                      \
  }
TRANSHIP_VSIP_TENSORS(TENSOR)

TEST(VsipVector, shows_the_parts_of_complex_elements) {
  auto* c = vsip_cmcreate_f(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  vsip_cmfill_f(vsip_cmplx_f(1, 2), c);
  auto* re = vsip_mrealview_f(c);
  auto* im = vsip_mimagview_f(c);
  vsip_mput_f(im, 2, 3, 9);
  EXPECT_EQ(vsip_mget_f(re, 2, 3), 1);
  EXPECT_EQ(vsip_cmget_f(c, 2, 3).i, 9);
  EXPECT_EQ(vsip_mgetcolstride_f(im), vsip_cmgetcolstride_f(c));
  vsip_smmul_f(3, re, re);
  EXPECT_EQ(vsip_cmget_f(c, 0, 1).r, 3);
  EXPECT_EQ(vsip_cmget_f(c, 0, 1).i, 2);
  vsip_malldestroy_f(re);  // the view goes; the derived block stays with its parent
  EXPECT_EQ(vsip_cmget_f(c, 0, 0).r, 3);
  vsip_mdestroy_f(im);
  vsip_cmalldestroy_f(c);
}

TEST(VsipVector, of_indices_binds_pairs_and_triples) {
  vsip_scalar_vi pairs[6] = {1, 2, 3, 4, 5, 6};
  auto* block = vsip_blockbind_mi(pairs, 3, VSIP_MEM_NONE);
  vsip_blockadmit_mi(block, VSIP_TRUE);
  auto* v = vsip_vbind_mi(block, 0, 1, 3);
  EXPECT_EQ(vsip_rowindex(vsip_vget_mi(v, 1)), 3U);
  EXPECT_EQ(vsip_colindex(vsip_vget_mi(v, 1)), 4U);
  vsip_vput_mi(v, 2, vsip_matindex(8, 9));
  EXPECT_EQ(pairs[5], 9U);
  vsip_valldestroy_mi(v);
  auto* triples = vsip_blockbind_ti(pairs, 2, VSIP_MEM_NONE);
  vsip_blockadmit_ti(triples, VSIP_TRUE);
  auto* t = vsip_vbind_ti(triples, 0, 1, 2);
  EXPECT_EQ(vsip_vget_ti(t, 1).y, 8U);
  vsip_valldestroy_ti(t);
}

TEST(VsipView, says_where_its_elements_are) {
  double re[30] = {}, im[30] = {};
  auto* block = vsip_cblockbind_d(re, im, 30, VSIP_MEM_NONE);
  vsip_cblockadmit_d(block, VSIP_TRUE);
  auto* m = vsip_cmbind_d(block, 29, -10, 2, -1, 3);
  const auto place = tranship_vsip_cmplace_d(m);
  EXPECT_EQ(place.data, re + 29);
  EXPECT_EQ(place.imaginary, im + 29);
  EXPECT_EQ(place.strides[0], -10);
  EXPECT_EQ(place.strides[1], -1);
  EXPECT_EQ(place.lengths[0], 2U);
  EXPECT_EQ(place.lengths[1], 3U);
  vsip_cmalldestroy_d(m);
  auto* v = vsip_cvcreate_f(5, VSIP_MEM_NONE);
  const auto whole = tranship_vsip_cvplace_f(v);
  EXPECT_EQ(whole.strides[0], 2);
  EXPECT_EQ(static_cast<float*>(whole.imaginary), static_cast<float*>(whole.data) + 1);
  auto* part = vsip_vimagview_f(v);
  EXPECT_EQ(tranship_vsip_vplace_f(part).data, whole.imaginary);
  EXPECT_EQ(tranship_vsip_vplace_f(part).strides[0], 2);
  vsip_vdestroy_f(part);
  vsip_cvalldestroy_f(v);
}

TEST(VsipLibrary, begins_and_ends) {
  EXPECT_EQ(vsip_finalize(nullptr), 1);
  EXPECT_EQ(vsip_init(nullptr), 0);
  EXPECT_EQ(vsip_init(nullptr), 0);
  EXPECT_EQ(vsip_finalize(nullptr), 0);
  EXPECT_EQ(vsip_finalize(nullptr), 0);
  EXPECT_EQ(vsip_finalize(nullptr), 1);
  EXPECT_EQ(vsip_cstorage(), VSIP_CMPLX_INTERLEAVED);
}

}  // namespace
