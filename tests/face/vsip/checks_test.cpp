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

TEST(VsipChecksDeathTest, without_a_handler_abort) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(vsip_vsumval_f(nullptr), "vsip_vsumval_f: the view is NULL");
}

}  // namespace
