// What the checked library finds: each wrong call is named, with both numbers, and has no effect.
#include <string>

#include <gtest/gtest.h>
#include <vsip.h>

namespace {

std::string last;
void keep(const char* call, const char* message) {
  last = std::string(call) + ": " + message;
}

class VsipChecks : public testing::Test {
 protected:
  void SetUp() override {
    last.clear();
    before_ = tranship_vsip_set_handler(keep);
  }
  void TearDown() override { tranship_vsip_set_handler(before_); }

 private:
  tranship_vsip_handler before_ = nullptr;
};

TEST_F(VsipChecks, lengths_that_differ) {
  auto* a = vsip_vcreate_f(5, VSIP_MEM_NONE);
  auto* r = vsip_vcreate_f(6, VSIP_MEM_NONE);
  vsip_vfill_f(1, a);
  vsip_vfill_f(2, r);
  EXPECT_EQ(last, "");
  vsip_vadd_f(a, a, r);
  EXPECT_EQ(last, "vsip_vadd_f: lengths differ in dimension 0: 6 and 5");
  EXPECT_EQ(vsip_vget_f(r, 0), 2);
  EXPECT_EQ(vsip_vdot_f(a, r), 0);
  EXPECT_EQ(last, "vsip_vdot_f: lengths differ in dimension 0: 5 and 6");
  vsip_valldestroy_f(a);
  vsip_valldestroy_f(r);
}

TEST_F(VsipChecks, views_outside_of_their_block) {
  auto* block = vsip_blockcreate_d(10, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_vbind_d(block, 2, 3, 4), nullptr);
  EXPECT_EQ(last, "vsip_vbind_d: a view shows elements 2 to 11 of a block of 10 elements");
  EXPECT_EQ(vsip_mbind_d(block, 3, -2, 3, 1, 2), nullptr);
  EXPECT_EQ(last, "vsip_mbind_d: a view shows elements -1 to 4 of a block of 10 elements");
  EXPECT_EQ(vsip_vbind_d(block, 1, PTRDIFF_MAX, 4), nullptr);
  auto* view = vsip_vbind_d(block, 0, 1, 10);
  vsip_vputoffset_d(view, 1);
  last.clear();
  vsip_vfill_d(0, view);
  EXPECT_EQ(last, "vsip_vfill_d: a view shows elements 1 to 10 of a block of 10 elements");
  vsip_valldestroy_d(view);
}

TEST_F(VsipChecks, indices_and_slices_outside_of_a_view) {
  auto* m = vsip_mcreate_f(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_mget_f(m, 1, 4), 0);
  EXPECT_EQ(last, "vsip_mget_f: index 4 is outside of a length of 4");
  EXPECT_EQ(vsip_mrowview_f(m, 3), nullptr);
  EXPECT_EQ(last, "vsip_mrowview_f: index 3 is outside of a length of 3");
  EXPECT_EQ(vsip_msubview_f(m, 1, 2, 2, 3), nullptr);
  EXPECT_EQ(last, "vsip_msubview_f: 3 elements from 2 on are outside of a length of 4");
  EXPECT_EQ(vsip_mdiagview_f(m, -3), nullptr);
  EXPECT_EQ(last, "vsip_mdiagview_f: index 3 is outside of a length of 3");
  auto* v = vsip_vcreate_f(2, VSIP_MEM_NONE);
  auto* at = vsip_vcreate_vi(2, VSIP_MEM_NONE);
  vsip_vfill_f(7, v);
  vsip_vfill_vi(2, at);
  vsip_vgather_f(v, at, v);
  EXPECT_EQ(last, "vsip_vgather_f: index 2 is outside of a length of 2");
  vsip_valldestroy_f(v);
  vsip_valldestroy_vi(at);
  vsip_malldestroy_f(m);
}

TEST_F(VsipChecks, released_blocks) {
  float memory[4] = {1, 2, 3, 4};
  auto* view = vsip_vbind_f(vsip_blockbind_f(memory, 4, VSIP_MEM_NONE), 0, 1, 4);
  EXPECT_EQ(last, "") << "a view of a released block may be made";
  EXPECT_EQ(vsip_vsumval_f(view), 0);
  EXPECT_EQ(last, "vsip_vsumval_f: the user block of 4 elements is released; admit it first");
  vsip_blockadmit_f(vsip_vgetblock_f(view), VSIP_TRUE);
  EXPECT_EQ(vsip_vsumval_f(view), 10);
  vsip_valldestroy_f(view);
  float both[4] = {};
  auto* complex = vsip_cvbind_f(vsip_cblockbind_f(both, nullptr, 2, VSIP_MEM_NONE), 0, 1, 2);
  auto* part = vsip_vrealview_f(complex);
  last.clear();
  vsip_vfill_f(1, part);
  EXPECT_EQ(last, "vsip_vfill_f: the user block of 2 elements is released; admit it first");
  vsip_vdestroy_f(part);
  vsip_cvalldestroy_f(complex);
}

TEST_F(VsipChecks, objects_that_are_not_alive) {
  auto* kept = vsip_vcreate_f(4, VSIP_MEM_NONE);
  auto* block = vsip_vgetblock_f(kept);
  vsip_blockdestroy_f(block);
  EXPECT_EQ(vsip_vsumval_f(kept), 0);
  EXPECT_NE(last.find("vsip_vsumval_f: the block of the view at "), std::string::npos) << last;
  EXPECT_NE(last.find(" is not alive"), std::string::npos) << last;
  vsip_vdestroy_f(kept);
  last.clear();
  vsip_vdestroy_f(kept);
  EXPECT_NE(last.find("vsip_vdestroy_f: the view at "), std::string::npos) << last;
  last.clear();
  EXPECT_EQ(vsip_vcloneview_f(nullptr), nullptr);
  EXPECT_EQ(last, "vsip_vcloneview_f: the view is NULL");
  vsip_vneg_d(nullptr, nullptr);
  EXPECT_EQ(last, "vsip_vneg_d: the view is NULL");
}

TEST_F(VsipChecks, parts_die_with_their_complex_block) {
  auto* complex = vsip_cvcreate_d(3, VSIP_MEM_NONE);
  auto* part = vsip_vimagview_d(complex);
  vsip_cvalldestroy_d(complex);
  vsip_vfill_d(0, part);
  EXPECT_NE(last.find("vsip_vfill_d: the block of the view at "), std::string::npos) << last;
  vsip_vdestroy_d(part);
}

TEST_F(VsipChecks, ffts_of_other_sizes_and_kinds) {
  auto* fft = vsip_ccfftip_create_f(8, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  auto* v = vsip_cvcreate_f(9, VSIP_MEM_NONE);
  vsip_cvfill_f(vsip_cmplx_f(1, 1), v);
  vsip_ccfftip_f(fft, v);
  EXPECT_EQ(last, "vsip_ccfftip_f: the length of the FFT and that of the view differ: 8 and 9");
  EXPECT_EQ(vsip_cvget_f(v, 0).r, 1);
  auto* w = vsip_cvcreate_f(8, VSIP_MEM_NONE);
  last.clear();
  vsip_ccfftop_f(fft, w, w);
  EXPECT_NE(last.find("vsip_ccfftop_f: the FFT object is of kind"), std::string::npos) << last;
  auto* many = vsip_ccfftmip_create_f(3, 4, 1, VSIP_FFT_FWD, VSIP_ROW, 1, VSIP_ALG_SPACE);
  auto* m = vsip_cmcreate_f(4, 4, VSIP_ROW, VSIP_MEM_NONE);
  vsip_ccfftmip_f(many, m);
  EXPECT_EQ(last, "vsip_ccfftmip_f: the number of FFTs and of the lines of the view differ: 3 and 4");
  vsip_fftm_destroy_f(many);
  vsip_fft_destroy_f(fft);
  last.clear();
  vsip_ccfftip_f(fft, w);
  EXPECT_NE(last.find("vsip_ccfftip_f: the FFT object at "), std::string::npos) << last;
  vsip_cvalldestroy_f(v);
  vsip_cvalldestroy_f(w);
  vsip_cmalldestroy_f(m);
}

TEST_F(VsipChecks, matrices_that_do_not_fit) {
  auto* a = vsip_mcreate_f(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  auto* b = vsip_mcreate_f(3, 4, VSIP_ROW, VSIP_MEM_NONE);
  auto* r = vsip_mcreate_f(4, 3, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mprod_f(a, b, r);
  EXPECT_EQ(last, "vsip_mprod_f: the columns of the left factor and the rows of the right one differ: 4 and 3");
  vsip_mtrans_f(a, b);
  EXPECT_EQ(last, "vsip_mtrans_f: the rows of the result and the columns of the source differ: 3 and 4");
  last.clear();
  auto* line = vsip_vcreate_f(3, VSIP_MEM_NONE);
  vsip_vmmul_f(line, a, VSIP_ROW, b);
  EXPECT_EQ(last, "vsip_vmmul_f: the length of the vector and that of the lines of the matrix differ: 3 and 4");
  vsip_vcopyto_user_f(line, nullptr);
  EXPECT_EQ(last, "vsip_vcopyto_user_f: the array for 3 elements is NULL");
  auto* flags = vsip_mcreate_bl(2, 2, VSIP_ROW, VSIP_MEM_NONE);
  auto* where = vsip_vcreate_mi(3, VSIP_MEM_NONE);
  vsip_mfill_bl(VSIP_TRUE, flags);
  EXPECT_EQ(vsip_mindexbool(flags, where), 0U);
  EXPECT_EQ(last, "vsip_mindexbool: 4 elements are true, and the vector for their indices has a length of 3");
  vsip_malldestroy_bl(flags);
  vsip_valldestroy_mi(where);
  vsip_malldestroy_f(a);
  vsip_malldestroy_f(b);
  vsip_malldestroy_f(r);
  vsip_valldestroy_f(line);
}

TEST_F(VsipChecks, results_that_overlap_arguments) {
  auto* q = vsip_mcreate_f(3, 3, VSIP_ROW, VSIP_MEM_NONE);
  auto* other = vsip_mcreate_f(3, 3, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mfill_f(1, q);
  vsip_mfill_f(1, other);
  vsip_mprod_f(q, other, q);
  EXPECT_EQ(last, "vsip_mprod_f: the result in bytes 0 to 35 overlaps an argument in bytes 0 to 35");
  last.clear();
  vsip_mprod_f(other, q, q);
  EXPECT_EQ(last, "vsip_mprod_f: the result in bytes 0 to 35 overlaps an argument in bytes 0 to 35");
  EXPECT_EQ(vsip_mget_f(q, 0, 0), 1);
  last.clear();
  vsip_mprod3_f(q, other, q);
  EXPECT_EQ(last, "vsip_mprod3_f: the result in bytes 0 to 35 overlaps an argument in bytes 0 to 35");
  auto* a = vsip_vcreate_f(6, VSIP_MEM_NONE);
  vsip_vramp_f(0, 1, a);
  auto *front = vsip_vsubview_f(a, 0, 5), *back = vsip_vsubview_f(a, 1, 5);
  vsip_vcopy_f_f(front, back);
  EXPECT_EQ(last, "vsip_vcopy_f_f: the result in bytes 4 to 23 overlaps an argument in bytes 0 to 19");
  vsip_vadd_f(front, back, front);
  EXPECT_EQ(last, "vsip_vadd_f: the result in bytes 0 to 19 overlaps an argument in bytes 4 to 23");
  vsip_vswap_f(front, back);
  EXPECT_EQ(last, "vsip_vswap_f: the result in bytes 0 to 19 overlaps an argument in bytes 4 to 23");
  auto* reversed = vsip_vputstride_f(vsip_vputoffset_f(vsip_vcloneview_f(front), 4), -1);
  vsip_vneg_f(front, reversed);
  EXPECT_EQ(last, "vsip_vneg_f: the result in bytes 0 to 19 overlaps an argument in bytes 0 to 19");
  for (vsip_index i = 0; i < 6; ++i) EXPECT_EQ(vsip_vget_f(a, i), float(i));
  auto* c = vsip_cvcreate_f(8, VSIP_MEM_NONE);
  vsip_cvfill_f(vsip_cmplx_f(1, 0), c);
  auto* fft = vsip_ccfftop_create_f(8, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  vsip_ccfftop_f(fft, c, c);
  EXPECT_EQ(last, "vsip_ccfftop_f: the result in bytes 0 to 59 overlaps an argument in bytes 0 to 59");
  EXPECT_EQ(vsip_cvget_f(c, 0).r, 1);
  auto* at = vsip_vcreate_vi(6, VSIP_MEM_NONE);
  vsip_vramp_vi(0, 1, at);
  vsip_vgather_f(a, at, a);
  EXPECT_EQ(last, "vsip_vgather_f: the result in bytes 0 to 23 overlaps an argument in bytes 0 to 23");
  auto* wide = vsip_mcreate_f(2, 3, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mfill_f(1, wide);
  auto* tall = vsip_mbind_f(vsip_mgetblock_f(wide), 0, 3, 3, 1, 2);
  last.clear();
  EXPECT_EQ(tall, nullptr);
  tall = vsip_mbind_f(vsip_mgetblock_f(wide), 0, 1, 3, 3, 2);
  last.clear();
  vsip_mtrans_f(wide, tall);
  EXPECT_EQ(last, "vsip_mtrans_f: the result in bytes 0 to 23 overlaps an argument in bytes 0 to 23");
  vsip_mdestroy_f(tall);
  vsip_malldestroy_f(wide);
  vsip_valldestroy_vi(at);
  vsip_fft_destroy_f(fft);
  vsip_cvalldestroy_f(c);
  for (auto* v : {front, back, reversed}) vsip_vdestroy_f(v);
  vsip_valldestroy_f(a);
  vsip_malldestroy_f(q);
  vsip_malldestroy_f(other);
}

TEST_F(VsipChecks, results_between_the_elements_of_arguments_are_no_overlap) {
  auto* m = vsip_mcreate_d(4, 6, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mfill_d(1, m);
  auto *first = vsip_mcolview_d(m, 0), *last_column = vsip_mcolview_d(m, 5);
  vsip_vadd_d(first, first, last_column);
  auto *left = vsip_msubview_d(m, 0, 0, 4, 3), *right = vsip_msubview_d(m, 0, 3, 4, 3);
  vsip_mcopy_d_d(right, left);
  EXPECT_EQ(vsip_mget_d(m, 2, 2), 2);
  auto *square = vsip_msubview_d(m, 0, 0, 3, 3), *beside = vsip_msubview_d(m, 1, 3, 3, 3);
  vsip_mprod_d(square, square, beside);
  auto *even = vsip_vbind_d(vsip_mgetblock_d(m), 0, 2, 12), *odd = vsip_vbind_d(vsip_mgetblock_d(m), 1, 2, 12);
  vsip_vneg_d(even, odd);
  auto* c = vsip_cvcreate_f(5, VSIP_MEM_NONE);
  vsip_cvfill_f(vsip_cmplx_f(3, 4), c);
  auto *real = vsip_vrealview_f(c), *imaginary = vsip_vimagview_f(c);
  vsip_vadd_f(real, imaginary, imaginary);
  vsip_vcmagsq_f(c, real);
  EXPECT_EQ(vsip_cvget_f(c, 4).r, 9 + 49);
  vsip_cvneg_f(c, c);
  float split[2][5] = {{1, 1, 1, 1, 1}, {2, 2, 2, 2, 2}};
  auto* parts = vsip_cvbind_f(vsip_cblockbind_f(split[0], split[1], 5, VSIP_MEM_NONE), 0, 1, 5);
  vsip_cblockadmit_f(vsip_cvgetblock_f(parts), VSIP_TRUE);
  vsip_cvneg_f(parts, parts);
  vsip_cvadd_f(c, parts, parts);
  EXPECT_EQ(last, "");
  for (auto* v : {real, imaginary}) vsip_vdestroy_f(v);
  for (auto* v : {first, last_column, even, odd}) vsip_vdestroy_d(v);
  for (auto* v : {left, right, square, beside}) vsip_mdestroy_d(v);
  vsip_cvalldestroy_f(c);
  vsip_cvalldestroy_f(parts);
  vsip_malldestroy_d(m);
}

TEST_F(VsipChecks, numbers_outside_of_an_enumeration) {
  EXPECT_EQ(vsip_ccfftop_create_f(8, 1, vsip_fft_dir(5), 1, VSIP_ALG_SPACE), nullptr);
  EXPECT_EQ(last, "vsip_ccfftop_create_f: the direction is 5, and not one of -1, 1");
  EXPECT_EQ(vsip_ccfftmip_create_d(8, 8, 1, vsip_fft_dir(0), VSIP_ROW, 1, VSIP_ALG_SPACE), nullptr);
  EXPECT_EQ(last, "vsip_ccfftmip_create_d: the direction is 0, and not one of -1, 1");
  EXPECT_EQ(vsip_rcfftmop_create_d(8, 8, 1, vsip_major(2), 1, VSIP_ALG_SPACE), nullptr);
  EXPECT_EQ(last, "vsip_rcfftmop_create_d: the major direction is 2, and not one of 0, 1");
  EXPECT_EQ(vsip_crfftop_create_f(8, 1, 1, vsip_alg_hint(3)), nullptr);
  EXPECT_EQ(last, "vsip_crfftop_create_f: the hint is 3, and not one of 0, 1, 2");
  auto* t = vsip_tcreate_f(2, 3, 4, VSIP_TRAILING, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_tmatrixview_f(t, vsip_tmslice(7), 0), nullptr);
  EXPECT_EQ(last, "vsip_tmatrixview_f: the slice is 7, and not one of 0, 1, 2");
  EXPECT_EQ(vsip_tvectview_f(t, vsip_tvslice(-1), 0, 0), nullptr);
  EXPECT_EQ(last, "vsip_tvectview_f: the slice is -1, and not one of 0, 1, 2");
  EXPECT_EQ(vsip_ttransview_f(t, vsip_ttrans(6)), nullptr);
  EXPECT_EQ(last, "vsip_ttransview_f: the transposition is 6, and not one of 0, 1, 2, 3, 4, 5");
  EXPECT_EQ(vsip_tcreate_f(2, 3, 4, vsip_tmajor(2), VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_tcreate_f: the major direction is 2, and not one of 0, 1");
  EXPECT_EQ(vsip_cmcreate_f(2, 3, vsip_major(9), VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_cmcreate_f: the major direction is 9, and not one of 0, 1");
  auto* m = vsip_mcreate_f(3, 3, VSIP_ROW, VSIP_MEM_NONE);
  auto* v = vsip_vcreate_f(3, VSIP_MEM_NONE);
  float array[9] = {};
  vsip_mcopyto_user_f(m, vsip_major(4), array);
  EXPECT_EQ(last, "vsip_mcopyto_user_f: the major direction is 4, and not one of 0, 1");
  vsip_vmmul_f(v, m, vsip_major(3), m);
  EXPECT_EQ(last, "vsip_vmmul_f: the major direction is 3, and not one of 0, 1");
  vsip_valldestroy_f(v);
  vsip_malldestroy_f(m);
  vsip_talldestroy_f(t);
}

TEST_F(VsipChecks, places_that_are_null) {
  auto* v = vsip_vcreate_f(3, VSIP_MEM_NONE);
  vsip_vgetattrib_f(v, nullptr);
  EXPECT_EQ(last, "vsip_vgetattrib_f: the structure of attributes is NULL");
  EXPECT_EQ(vsip_vputattrib_f(v, nullptr), nullptr);
  EXPECT_EQ(last, "vsip_vputattrib_f: the structure of attributes is NULL");
  auto* m = vsip_cmcreate_d(3, 3, VSIP_ROW, VSIP_MEM_NONE);
  vsip_cmgetattrib_d(m, nullptr);
  EXPECT_EQ(last, "vsip_cmgetattrib_d: the structure of attributes is NULL");
  EXPECT_EQ(vsip_cmputattrib_d(m, nullptr), nullptr);
  auto* t = vsip_tcreate_i(2, 3, 4, VSIP_TRAILING, VSIP_MEM_NONE);
  vsip_tgetattrib_i(t, nullptr);
  EXPECT_EQ(last, "vsip_tgetattrib_i: the structure of attributes is NULL");
  EXPECT_EQ(vsip_tputattrib_i(t, nullptr), nullptr);
  auto* fft = vsip_ccfftip_create_f(8, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  vsip_fft_getattr_f(fft, nullptr);
  EXPECT_EQ(last, "vsip_fft_getattr_f: the structure of attributes is NULL");
  auto* many = vsip_ccfftmip_create_f(8, 8, 1, VSIP_FFT_FWD, VSIP_ROW, 1, VSIP_ALG_SPACE);
  vsip_fftm_getattr_f(many, nullptr);
  EXPECT_EQ(last, "vsip_fftm_getattr_f: the structure of attributes is NULL");
  float memory[4] = {}, *place = memory;
  auto* block = vsip_cblockbind_f(memory, nullptr, 2, VSIP_MEM_NONE);
  vsip_cblockfind_f(block, &place, nullptr);
  EXPECT_EQ(last, "vsip_cblockfind_f: the place for the address of imaginary parts is NULL");
  vsip_cblockrebind_f(block, memory + 2, nullptr, nullptr, &place);
  EXPECT_EQ(last, "vsip_cblockrebind_f: the place for the address of real parts is NULL");
  vsip_cblockrelease_f(block, VSIP_TRUE, &place, nullptr);
  EXPECT_EQ(last, "vsip_cblockrelease_f: the place for the address of imaginary parts is NULL");
  EXPECT_EQ(place, memory) << "a call that fails has no effect";
  vsip_polar_f(vsip_cmplx_f(3, 4), nullptr, place);
  EXPECT_EQ(last, "vsip_polar_f: the place for the magnitude is NULL");
  EXPECT_EQ(vsip_vfirst_f(0, nullptr, v, v), 0U);
  EXPECT_EQ(last, "vsip_vfirst_f: the function is NULL");
  vsip_cblockdestroy_f(block);
  vsip_fft_destroy_f(fft);
  vsip_fftm_destroy_f(many);
  vsip_talldestroy_i(t);
  vsip_cmalldestroy_d(m);
  vsip_valldestroy_f(v);
}

TEST_F(VsipChecks, objects_without_elements) {
  EXPECT_EQ(vsip_vcreate_f(0, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_vcreate_f: the length of dimension 0 is 0, and not 1 or more");
  EXPECT_EQ(vsip_cmcreate_d(3, 0, VSIP_COL, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_cmcreate_d: the length of dimension 1 is 0, and not 1 or more");
  EXPECT_EQ(vsip_tcreate_i(3, 2, 0, VSIP_TRAILING, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_tcreate_i: the length of dimension 2 is 0, and not 1 or more");
  EXPECT_EQ(vsip_cblockcreate_f(0, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_cblockcreate_f: the length of dimension 0 is 0, and not 1 or more");
}

TEST_F(VsipChecks, small_products_of_other_sizes) {
  auto* a = vsip_mcreate_f(4, 3, VSIP_ROW, VSIP_MEM_NONE);
  auto* b = vsip_mcreate_f(4, 5, VSIP_ROW, VSIP_MEM_NONE);
  vsip_mprod4_f(a, b, b);
  EXPECT_EQ(last, "vsip_mprod4_f: the columns of the left factor and those that the call names differ: 3 and 4");
  vsip_mprod3_f(a, b, b);
  EXPECT_EQ(last, "vsip_mprod3_f: the rows of the left factor and those that the call names differ: 4 and 3");
  auto *square = vsip_msubview_f(a, 0, 0, 3, 3), *r = vsip_msubview_f(b, 0, 0, 3, 2);
  vsip_mprod3_f(square, b, r);
  EXPECT_EQ(last, "vsip_mprod3_f: the rows of the right factor and those that the call names differ: 4 and 3");
  vsip_mdestroy_f(square);
  vsip_mdestroy_f(r);
  vsip_malldestroy_f(a);
  vsip_malldestroy_f(b);
}

TEST(VsipChecksDeathTest, without_a_handler_abort) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(vsip_vsumval_f(nullptr), "vsip_vsumval_f: the view is NULL");
}

}  // namespace
