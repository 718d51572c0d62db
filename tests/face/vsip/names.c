/* The names of VSIPL that the draft of the Data Reorganization Interface uses, as C89, C99, C11 and C++: calls without a
 * suffix, an fftm that is created by seven arguments, scalars of vsipl_, and printf, which vsip.h brings. Exits with 0
 * when all is right. */
#include <vsip.h>

static int failures = 0;
#define EXPECT(holds) ((holds) ? (void)0 : (void)(++failures, fprintf(stderr, "line %d: %s\n", __LINE__, #holds)))

#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L)
#define CHOOSES_BY_TYPE
#endif
#if defined(__cplusplus) || (defined(__STDC_VERSION__) && __STDC_VERSION__ >= 199901L)
#define CHOOSES_BY_NUMBER
#endif

static void check_float(void) {
  vsip_vview *view = vsip_vcreate_f(6, VSIP_MEM_NONE), *clone = vsip_vcloneview(view);
  vsip_vattr_f attributes;
  vsip_vput(view, 4, 2.5F);
  EXPECT(vsip_vget(clone, 4) > 2 && vsip_vget(view, 4) < 3);
  vsip_vgetattrib(clone, &attributes);
  EXPECT(attributes.length == 6 && attributes.stride == 1);
  attributes.offset = 3;
  attributes.length = 2;
  EXPECT(vsip_vputattrib(clone, &attributes) == clone);
  EXPECT(vsip_vget(clone, 1) > 2);
  EXPECT(vsip_vdestroy(clone) == vsip_vgetblock_f(view));
  vsip_valldestroy_f(view);
}

static void check_parts(void) {
  vsip_cvview *view = vsip_cvcreate_f(4, VSIP_MEM_NONE);
  vsip_vview *real = vsip_vrealview(view), *imaginary = vsip_vimagview(view);
  vsip_cvput_f(view, 3, vsip_cmplx_f(1, 2));
  EXPECT(vsip_vget(real, 3) < 1.5 && vsip_vget(imaginary, 3) > 1.5);
  (void)vsip_vdestroy(real);
  (void)vsip_vdestroy(imaginary);
  vsip_cvalldestroy_f(view);
}

static void check_matrices(void) {
  vsip_cmview_f *matrix = vsip_cmcreate_f(2, 4, VSIP_ROW, VSIP_MEM_NONE);
  vsip_cmattr_f attributes;
  vsip_fftm_f *fft;
  vsipl_cscalar_f value = vsip_cmplx_f(1, -1);
  vsipl_scalar_f sum;
  vsip_length row, column;
#ifdef CHOOSES_BY_NUMBER
  fft = vsip_ccfftmip_f((vsip_length)2, (vsip_length)4, (vsip_scalar_f)1.0, (vsip_fft_dir)VSIP_FFT_FWD,
                        (vsip_major)VSIP_ROW, 0, (vsip_alg_hint)VSIP_ALG_SPACE);
#else
  fft = vsip_ccfftmip_create_f(2, 4, 1, VSIP_FFT_FWD, VSIP_ROW, 0, VSIP_ALG_SPACE);
#endif
  EXPECT(fft != NULL);
  vsip_cmview_getattrib(matrix, &attributes);
  EXPECT(attributes.col_length == 2 && attributes.row_length == 4);
  for (row = 0; row < attributes.col_length; ++row)
    for (column = 0; column < attributes.row_length; ++column) vsipl_cmput_f(matrix, row, column, value);
  vsip_ccfftmip_f(fft, matrix);
  sum = vsip_real_f(vsipl_cmget_f(matrix, 1, 0));
  EXPECT(sum > 3.9F && sum < 4.1F);
  EXPECT(vsip_mag_f(vsip_hypot_f(3, 4) - 5) < 1e-6F && vsip_mag_d(vsip_atan2_d(0, 1)) < 1e-12);
  vsip_fftm_destroy_f(fft);
  vsip_cmalldestroy_f(matrix);
}

/* Each type of vectors: what is put is got, and clones, attributes and blocks are those of the suffixed calls. */
#ifdef CHOOSES_BY_TYPE
#define VECTORS_OF(C, T, VALUE, SAME)                                              \
  {                                                                                \
    vsip_##C##vview_##T *view = vsip_##C##vcreate_##T(5, VSIP_MEM_NONE);            \
    const vsip_##C##vview_##T *reader = view;                                      \
    vsip_##C##vview_##T *clone = vsip_vcloneview(reader);                          \
    vsip_##C##vattr_##T attributes;                                                \
    const vsip_##C##scalar_##T value = VALUE;                                      \
    vsip_##C##scalar_##T got;                                                      \
    vsip_vput(view, 2, value);                                                     \
    got = vsip_vget(reader, 2);                                                    \
    EXPECT(SAME);                                                                  \
    vsip_vgetattrib(reader, &attributes);                                          \
    attributes.offset = 2;                                                         \
    attributes.length = 1;                                                         \
    got = vsip_vget(vsip_vputattrib(clone, &attributes), 0);                       \
    EXPECT(SAME);                                                                  \
    EXPECT(vsip_vdestroy(clone) == vsip_##C##vgetblock_##T(view));                 \
    vsip_##C##valldestroy_##T(view);                                               \
  }
static void check_all_types(void) {
  VECTORS_OF(, f, 1.5F, got > 1.4F && got < 1.6F)
  VECTORS_OF(, d, 1.5, got > 1.4 && got < 1.6)
  VECTORS_OF(, i, -7, got == value)
  VECTORS_OF(, si, -7, got == value)
  VECTORS_OF(, us, 65535, got == value)
  VECTORS_OF(, li, -7, got == value)
  VECTORS_OF(, ul, 7, got == value)
  VECTORS_OF(, uc, 255, got == value)
  VECTORS_OF(, bl, 1, got == value)
  VECTORS_OF(, vi, 7, got == value)
  VECTORS_OF(, mi, vsip_matindex(3, 4), got.r == 3 && got.c == 4)
  VECTORS_OF(c, f, vsip_cmplx_f(1, 2), got.r < 1.5F && got.i > 1.5F)
  VECTORS_OF(c, d, vsip_cmplx_d(1, 2), got.r < 1.5 && got.i > 1.5)
  {
    vsip_cvview_d *view = vsip_cvcreate_d(3, VSIP_MEM_NONE);
    vsip_vview_d *imaginary = vsip_vimagview(view);
    vsip_cmview_d *matrix = vsip_cmcreate_d(2, 3, VSIP_COL, VSIP_MEM_NONE);
    vsip_cmattr_d attributes;
    vsip_fftm_d *fft = vsip_ccfftmip_d(2, 3, 1.0, VSIP_FFT_INV, VSIP_COL, 1, VSIP_ALG_SPACE);
    vsip_fftm_attr_d of_fft;
    vsip_vput(view, 1, vsip_cmplx_d(1, 2));
    EXPECT(vsip_vget(imaginary, 1) > 1.5);
    vsip_cmview_getattrib(matrix, &attributes);
    EXPECT(attributes.row_stride == 2);
    vsip_fftm_getattr_d(fft, &of_fft);
    EXPECT(of_fft.major == VSIP_COL && of_fft.input.r == 2 && of_fft.input.c == 3);
    vsip_cmfill_d(vsip_cmplx_d(1, 0), matrix);
    vsip_ccfftmip_d(fft, matrix);
    EXPECT(vsip_real_d(vsipl_cmget_d(matrix, 0, 2)) > 1.9);
    vsip_fftm_destroy_d(fft);
    (void)vsip_vdestroy(imaginary);
    vsip_cvalldestroy_d(view);
    vsip_cmalldestroy_d(matrix);
  }
}
#endif

int main(void) {
  vsipl_scalar_d d = 0;
  vsipl_scalar_i i = 0;
  vsipl_scalar_si si = 0;
  vsipl_scalar_us us = 0;
  vsipl_scalar_li li = 0;
  vsipl_scalar_ul ul = 0;
  vsipl_cscalar_d cd = vsip_cmplx_d(0, 0);
  EXPECT(sizeof d == sizeof(double) && sizeof i == sizeof(int) && sizeof si == sizeof(short));
  EXPECT(sizeof us == sizeof(unsigned short) && sizeof li == sizeof(long) && sizeof ul == sizeof(unsigned long));
  EXPECT(sizeof cd == 2 * sizeof(double));
  if (vsip_init(NULL) != 0) return 1;
  check_float();
  check_parts();
  check_matrices();
#ifdef CHOOSES_BY_TYPE
  check_all_types();
#endif
  vsip_finalize(NULL);
  printf("%d failures\n", failures);
  return failures != 0;
}
