// What the checked library finds: each wrong call is named, with both numbers, and has no effect.
#include <array>
#include <map>
#include <random>
#include <string>
#include <vector>

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

TEST_F(VsipChecks, numbers_that_do_not_fit) {
  auto* block = vsip_blockcreate_f(10, VSIP_MEM_NONE);
  EXPECT_EQ(vsip_vbind_f(block, 1, PTRDIFF_MAX, 4), nullptr);
  EXPECT_EQ(last,
            "vsip_vbind_f: a view of 4 at stride 9223372036854775807 from offset 1 leaves a block of 10 elements");
  EXPECT_EQ(vsip_vbind_f(block, SIZE_MAX, 1, 2), nullptr);
  EXPECT_EQ(last,
            "vsip_vbind_f: a view of 2 at stride 1 from offset 18446744073709551615 leaves a block of 10 elements");
  EXPECT_EQ(vsip_mbind_f(block, 0, 1, 2, -2, SIZE_MAX), nullptr);
  EXPECT_EQ(
      last,
      "vsip_mbind_f: a view of 2 at stride 1 by 18446744073709551615 at stride -2 from offset 0 leaves a block of "
      "10 elements");
  EXPECT_EQ(vsip_tbind_f(block, SIZE_MAX, PTRDIFF_MIN, SIZE_MAX, PTRDIFF_MIN, SIZE_MAX, PTRDIFF_MIN, SIZE_MAX),
            nullptr);
  EXPECT_EQ(last,
            "vsip_tbind_f: a view of 18446744073709551615 at stride -9223372036854775808 by 18446744073709551615 at "
            "stride -9223372036854775808 by 18446744073709551615 at stride -9223372036854775808 from offset "
            "18446744073709551615 leaves a block of 10 elements");
  // What is derived from a view that leaves its block does not come back into it.
  auto* view = vsip_vbind_f(block, 0, 1, 4);
  last.clear();
  vsip_vputstride_f(view, PTRDIFF_MIN);
  EXPECT_EQ(vsip_vsubview_f(view, 2, 1), nullptr);
  EXPECT_EQ(last,
            "vsip_vsubview_f: a view of 4 at stride -9223372036854775808 from offset 0 leaves a block of 10 elements");
  auto* matrix = vsip_mbind_f(block, 0, 3, 3, 1, 3);
  vsip_mputcolstride_f(matrix, PTRDIFF_MIN);
  EXPECT_EQ(vsip_mrowview_f(matrix, 2), nullptr);
  EXPECT_NE(last.find("vsip_mrowview_f: a view of 3 at stride -9223372036854775808 by 3 at stride 1"),
            std::string::npos)
      << last;
  EXPECT_EQ(vsip_mdiagview_f(matrix, 0), nullptr);
  EXPECT_NE(last.find("vsip_mdiagview_f: a view of 3 at stride"), std::string::npos) << last;
  // New attributes come together, and are looked at together.
  vsip_vattr_f attributes;
  vsip_vputstride_f(view, 1);
  vsip_vgetattrib_f(view, &attributes);
  attributes.offset = 8;
  EXPECT_EQ(vsip_vputattrib_f(view, &attributes), nullptr);
  EXPECT_EQ(last, "vsip_vputattrib_f: a view shows elements 8 to 11 of a block of 10 elements");
  attributes.stride = PTRDIFF_MAX;
  EXPECT_EQ(vsip_vputattrib_f(view, &attributes), nullptr);
  EXPECT_EQ(last,
            "vsip_vputattrib_f: a view of 4 at stride 9223372036854775807 from offset 8 leaves a block of 10 elements");
  EXPECT_EQ(vsip_vgetoffset_f(view), 0U);
  EXPECT_EQ(vsip_vgetstride_f(view), 1);
  last.clear();
  attributes.length = 1;  // one element has no stride
  EXPECT_EQ(vsip_vputattrib_f(view, &attributes), view);
  vsip_vfill_f(3, view);
  EXPECT_EQ(last, "");
  float memory[2] = {};
  EXPECT_EQ(vsip_blockbind_f(memory, SIZE_MAX / 4, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_blockbind_f: 4611686018427387903 elements of 4 bytes are more than memory has");
  EXPECT_EQ(vsip_cblockbind_d(nullptr, nullptr, PTRDIFF_MAX, VSIP_MEM_NONE), nullptr);
  EXPECT_EQ(last, "vsip_cblockbind_d: 9223372036854775807 elements of 16 bytes are more than memory has");
  vsip_mdestroy_f(matrix);
  vsip_valldestroy_f(view);
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

/// A view of a block of 64 elements: rows of one element are a vector.
struct Shape {
  vsip_offset offset;
  std::array<vsip_stride, 2> strides;
  std::array<vsip_length, 2> lengths;
};
/// The indices of the elements that show each element of the block.
std::map<vsip_stride, std::vector<vsip_length>> shown_by(const Shape& shape) {
  std::map<vsip_stride, std::vector<vsip_length>> out;
  for (vsip_length i = 0; i < shape.lengths[0]; ++i)
    for (vsip_length j = 0; j < shape.lengths[1]; ++j)
      out[vsip_stride(shape.offset) + vsip_stride(i) * shape.strides[0] + vsip_stride(j) * shape.strides[1]].push_back(
          i * shape.lengths[1] + j);
  return out;
}
/// In step, an element may be computed from itself; otherwise the two share nothing.
bool may_be_computed(const Shape& result, const Shape& argument) {
  bool in_step = true;
  for (std::size_t d = 0; d < 2; ++d) in_step &= result.lengths[d] == 1 || result.strides[d] == argument.strides[d];
  const auto read = shown_by(argument);
  for (const auto& [at, writers] : shown_by(result))
    if (const auto found = read.find(at); found != read.end())
      for (const vsip_length i : writers)
        for (const vsip_length j : found->second)
          if (!in_step || i != j) return false;
  return true;
}

TEST_F(VsipChecks, overlaps_of_random_matrices_are_those_of_their_elements) {
  auto* block = vsip_blockcreate_f(128, VSIP_MEM_NONE);
  auto* all = vsip_vbind_f(block, 0, 1, 128);
  vsip_vfill_f(1, all);
  std::mt19937 random(5);
  const auto between = [&](int low, int high) { return std::uniform_int_distribution(low, high)(random); };
  const auto view_of = [&](const Shape& shape) {
    return vsip_mbind_f(block, shape.offset, shape.strides[0], shape.lengths[0], shape.strides[1], shape.lengths[1]);
  };
  // Neither stride spans the other: 5 less two times 2 is the distance of the two, 1.
  const Shape above{74, {-2, -5}, {4, 2}}, below{73, {-2, -5}, {4, 2}};
  int refused = 0, in_place = 0;
  for (int i = 0; i < 20000; ++i) {
    Shape result, argument;
    for (std::size_t d = 0; d < 2; ++d) {
      result.lengths[d] = argument.lengths[d] = vsip_length(between(1, 4));
      result.strides[d] = between(-6, 6);
      argument.strides[d] = between(0, 3) == 0 ? between(-6, 6) : result.strides[d];
    }
    result.offset = vsip_offset(between(60, 68));
    argument.offset = vsip_offset(between(60, 68));
    if (i == 0) result = above, argument = below;
    auto *to = view_of(result), *from = view_of(argument);
    ASSERT_EQ(last, "");
    vsip_mneg_f(from, to);
    const bool allowed = may_be_computed(result, argument);
    ASSERT_EQ(last.empty(), allowed) << i << ": offsets " << result.offset << " and " << argument.offset << ", lengths "
                                     << result.lengths[0] << "x" << result.lengths[1] << ", strides "
                                     << result.strides[0] << " " << result.strides[1] << " and " << argument.strides[0]
                                     << " " << argument.strides[1];
    refused += !allowed;
    in_place += allowed && shown_by(argument).contains(vsip_stride(result.offset));
    last.clear();
    vsip_mdestroy_f(to);
    vsip_mdestroy_f(from);
  }
  EXPECT_GT(refused, 2000);
  EXPECT_GT(in_place, 500);
  vsip_vdestroy_f(all);
  vsip_blockdestroy_f(block);
}

TEST_F(VsipChecks, moves_of_complex_elements_share_whole_places_or_nothing) {
  float p[4] = {1, 2, 3, 4}, q[4] = {5, 6, 7, 8}, other[4] = {};
  const auto bind = [](float* real, float* imaginary) {
    auto* block = vsip_cblockbind_f(real, imaginary, 4, VSIP_MEM_NONE);
    vsip_cblockadmit_f(block, VSIP_TRUE);
    return vsip_cmbind_f(block, 0, 2, 2, 1, 2);
  };
  auto *pq = bind(p, q), *qp = bind(q, p), *po = bind(p, other);
  vsip_cmcopy_f_f(pq, qp);
  EXPECT_EQ(last, "vsip_cmcopy_f_f: the result in bytes 0 to 15 overlaps an argument in bytes 0 to 15");
  last.clear();
  vsip_cmtrans_f(pq, po);
  EXPECT_EQ(last, "vsip_cmtrans_f: the result in bytes 0 to 15 overlaps an argument in bytes 0 to 15");
  EXPECT_EQ(q[0], 5);
  EXPECT_EQ(p[1], 2);
  last.clear();
  vsip_cmtrans_f(pq, pq);
  vsip_cmcopy_f_f(pq, pq);
  vsip_cmcopy_f_f(pq, po);
  vsip_cmneg_f(pq, qp);
  EXPECT_EQ(last, "");
  EXPECT_EQ(other[1], 7);
  EXPECT_EQ(p[1], -7);
  EXPECT_EQ(q[1], -3);
  for (auto* view : {pq, qp, po}) vsip_cmalldestroy_f(view);
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
