/* The view calls of dri.h: every form, shape and type, over tranship's VSIPL and over another one, as C and as C++. One
 * rank with a sending end, of which the memory is filled by number and looked at through views. Exits with 0 when all
 * is right. */
#include <stdio.h>
#include <string.h>
#if defined(__has_include)
#if __has_include(<mpi.h>)
#include <mpi.h>
#endif
#endif

#include <dri.h>
#include <vsip.h>

static int failures = 0;
#define EXPECT(holds) \
  ((holds) ? (void)0 : (void)(++failures, fprintf(stderr, "line %d: %s: %s\n", __LINE__, #holds, DRI_Error_detail())))
#define OK(call) EXPECT((call) == DRI_SUCCESS)
#define REFUSED(call, code, part) \
  EXPECT((call) == (code));       \
  EXPECT(strstr(DRI_Error_detail(), part) != NULL)

/* Data of up to 3 dimensions with one of them, or none (-1), dealt out in blocks to this rank, in the memory that a
 * buffer of a sending end has. */
typedef struct {
  DRI_Distribution* distribution;
  DRI_Bufferset* buffers;
  DRI_Channel* ends[2];
  DRI_Buffer_Id* buffer;
  void *memory, *imaginary;
  size_t bytes;
} frame;

static frame make_frame(int ndims, const int dims[], DRI_Dataspec type, int cyclic, int size) {
  frame out;
  DRI_Global_Data* data = NULL;
  DRI_Group* world = NULL;
  DRI_Partition parts[3];
  DRI_Bufferset* others = NULL;
  const int processes[3] = {1, 1, 1};
  int d;
  OK(DRI_Group_create_world(&world));
  OK(DRI_Global_Data_create(ndims, dims, type, &data));
  for (d = 0; d < ndims; ++d)
    if (d == cyclic)
      OK(DRI_Partition_blockcyclic_create(NULL, NULL, size, &parts[d]));
    else
      OK(DRI_Partition_whole_create(&parts[d]));
  OK(DRI_Distribution_create(data, world, processes, parts, NULL, &out.distribution));
  OK(DRI_Bufferset_system_create(1, out.distribution, &out.buffers));
  OK(DRI_Bufferset_system_create(1, out.distribution, &others));
  OK(DRI_Channel_create_send(1, out.distribution, out.buffers, &out.ends[0]));
  OK(DRI_Channel_create_recv(1, out.distribution, others, &out.ends[1]));
  OK(DRI_Channel_connect(out.ends[0]));
  OK(DRI_Channel_connect(out.ends[1]));
  OK(DRI_Channel_get(out.ends[0], &out.buffer));
  OK(DRI_Buffer_get_memory(out.buffer, &out.memory, &out.imaginary));
  OK(DRI_Buffer_get_bytes(out.buffer, &out.bytes));
  return out;
}
static void end_frame(frame* f) {
  OK(DRI_Channel_put(f->ends[0], &f->buffer));
  OK(DRI_Channel_destroy(&f->ends[1]));
  OK(DRI_Channel_destroy(&f->ends[0]));
}
static int slices_of(const frame* f) {
  int slices = 0;
  OK(DRI_Distribution_get_numslices(f->distribution, &slices));
  return slices;
}

/* Where an element of a slice lies in its plane, by what DRI says of it. */
static int64_t place_of(const DRI_Blockinfo* slice, int x, int y, int z) {
  return slice->offset + x * slice->dims[0].stride + y * slice->dims[1].stride + z * slice->dims[2].stride;
}

/* VALUE is what an element shows, and FILL makes an element of the memory from its number. */
#define TENSORS_OF(C, T, TYPE, SCALAR, FIRST, VALUE)                                                            \
  static void check_tensors_##C##T##_##TYPE(void) {                                                             \
    static const int dims[3] = {3, 4, 5};                                                                       \
    frame f = make_frame(3, dims, TYPE, 2, 2);                                                                  \
    vsip_##C##tview_##T* view = NULL;                                                                           \
    SCALAR *memory = (SCALAR*)f.memory, *imaginary = (SCALAR*)f.imaginary;                                      \
    int slice, form, x, y, z;                                                                                   \
    size_t i;                                                                                                   \
    for (i = 0; i < f.bytes / sizeof(SCALAR); ++i) memory[i] = (SCALAR)(i % 100);                               \
    for (i = 0; imaginary != NULL && i < f.bytes / sizeof(SCALAR); ++i) imaginary[i] = (SCALAR)(50 + i % 7);    \
    EXPECT(slices_of(&f) == 3);                                                                                 \
    for (slice = 0; slice < 3; ++slice) {                                                                       \
      DRI_Blockinfo at;                                                                                         \
      OK(DRI_Buffer_get_slice(f.buffer, slice, &at));                                                           \
      for (form = 0; form < 4; ++form) {                                                                        \
        view = NULL;                                                                                            \
        if (form == 0) view = DRI_Buffer_get_##C##tview_##T(f.buffer, slice);                                   \
        if (form == 1) view = DRI_Buffer_multid_get_##C##tview_##T(f.buffer, 7, 7, slice);                      \
        if (form == 2) OK(DRI_Buffer_get_##C##tview(f.buffer, slice, &view));                                   \
        if (form == 3) OK(DRI_Buffer_multid_get_##C##tview(f.buffer, 0, 0, slice, &view));                      \
        EXPECT(view != NULL);                                                                                   \
        for (z = 0; z < at.dims[2].length; ++z)                                                                 \
          for (y = 0; y < 4; ++y)                                                                               \
            for (x = 0; x < 3; ++x) {                                                                           \
              const int64_t place = place_of(&at, x, y, z);                                                     \
              EXPECT(VALUE(T, vsip_##C##tget_##T(view, (vsip_index)z, (vsip_index)y, (vsip_index)x)) == FIRST); \
            }                                                                                                   \
      }                                                                                                         \
    }                                                                                                           \
    REFUSED(DRI_Buffer_get_##C##tview(f.buffer, 3, &view), DRI_ERR_ARGUMENT, "the number of a slice is 3");     \
    EXPECT(DRI_Buffer_multid_get_##C##tview_##T(f.buffer, 0, 0, -1) == NULL);                                   \
    end_frame(&f);                                                                                              \
  }
#define REAL_VALUE(T, value) (double)(value)
#define COMPLEX_VALUE(T, value) ((double)vsip_real_##T(value) + 1000 * (double)vsip_imag_##T(value))
#define TENSORS_OF_REAL(T, TYPE) TENSORS_OF(, T, TYPE, vsip_scalar_##T, (double)(place % 100), REAL_VALUE)
#define TENSORS_OF_COMPLEX(T, TYPE)                                                                           \
  TENSORS_OF(c, T, TYPE, vsip_scalar_##T, (double)(2 * place % 100) + 1000 * (double)((2 * place + 1) % 100), \
             COMPLEX_VALUE)
#define TENSORS_OF_SPLIT(T, TYPE) \
  TENSORS_OF(c, T, TYPE, vsip_scalar_##T, (double)(place % 100) + 1000 * (double)(50 + place % 7), COMPLEX_VALUE)

TENSORS_OF_REAL(f, DRI_FLOAT)
TENSORS_OF_REAL(d, DRI_DOUBLE)
TENSORS_OF_COMPLEX(f, DRI_COMPLEX)
TENSORS_OF_COMPLEX(d, DRI_DOUBLE_COMPLEX)
TENSORS_OF_SPLIT(f, DRI_COMPLEX_SPLIT)
TENSORS_OF_SPLIT(d, DRI_DOUBLE_COMPLEX_SPLIT)
#ifdef TRANSHIP_VSIP_H
TENSORS_OF_REAL(i, DRI_INTEGER)
TENSORS_OF_REAL(si, DRI_SHORT)
TENSORS_OF_REAL(us, DRI_UNSIGNED_SHORT)
TENSORS_OF_REAL(li, DRI_LONG)
TENSORS_OF_REAL(ul, DRI_UNSIGNED_LONG)
#endif

static void number(frame* f) {
  float* memory = (float*)f->memory;
  size_t i;
  for (i = 0; i < f->bytes / sizeof(float); ++i) memory[i] = (float)i;
}

/* A view of fewer dimensions than the data leaves out those of one element, and the others have the numbers. */
static void check_fewer_dimensions(void) {
  static const int stack[3] = {1, 16, 7}, rows[2] = {16, 4}, line[1] = {9};
  vsip_vview_f* vector = NULL;
  vsip_mview_f* matrix = NULL;
  vsip_tview_f* tensor = NULL;
  int slice;
  frame f = make_frame(3, stack, DRI_FLOAT, 2, 2);
  number(&f);
  for (slice = 0; slice < 4; ++slice) { /* the last one has one matrix row: its x is dimension 1 all the same */
    DRI_Blockinfo at;
    OK(DRI_Buffer_get_slice(f.buffer, slice, &at));
    matrix = DRI_Buffer_multid_get_mview_f(f.buffer, 0, slice);
    EXPECT(matrix != NULL && (int64_t)vsip_mget_f(matrix, 0, 3) == place_of(&at, 0, 3, 0));
    OK(DRI_Buffer_get_mview(f.buffer, slice, &matrix));
    EXPECT((int64_t)vsip_mget_f(matrix, 0, 3) == place_of(&at, 0, 3, 0));
    EXPECT((int64_t)vsip_mget_f(matrix, at.dims[2].length - 1 == 1, 15) ==
           place_of(&at, 0, 15, at.dims[2].length - 1 == 1));
  }
  REFUSED(DRI_Buffer_get_vview(f.buffer, 0, &vector), DRI_ERR_MISMATCH,
          "a view of 1 dimension is asked for, but the slices have 2");
  end_frame(&f);

  f = make_frame(2, rows, DRI_FLOAT, 1, 1);
  number(&f);
  for (slice = 0; slice < 4; ++slice) {
    vector = DRI_Buffer_get_vview_f(f.buffer, slice);
    EXPECT(vector != NULL && (int)vsip_vget_f(vector, 5) == 16 * slice + 5);
  }
  REFUSED(DRI_Buffer_multid_get_vview(f.buffer, 2, &vector), DRI_ERR_ARGUMENT, "dimension 1 has 4 slices");
  OK(DRI_Buffer_multid_get_mview(f.buffer, 0, 2, &matrix));
  EXPECT((int)vsip_mget_f(matrix, 0, 5) == 37);
  end_frame(&f);

  f = make_frame(1, line, DRI_FLOAT, -1, 0); /* more dimensions than the data */
  number(&f);
  OK(DRI_Buffer_get_tview(f.buffer, 0, &tensor));
  EXPECT((int)vsip_tget_f(tensor, 0, 0, 8) == 8);
  end_frame(&f);
}

/* Where nothing is block-cyclic, any number is that of the one slice. */
static void check_ignored_numbers(void) {
  static const int dims[2] = {6, 4};
  int number_of_frame;
  frame f = make_frame(2, dims, DRI_FLOAT, -1, 0);
  number(&f);
  for (number_of_frame = -3; number_of_frame < 1000; ++number_of_frame) {
    vsip_mview_f* view = DRI_Buffer_get_mview_f(f.buffer, number_of_frame);
    EXPECT(view != NULL && (int)vsip_mget_f(view, 3, 5) == 23);
    (void)vsip_mdestroy_f(view);
    view = DRI_Buffer_multid_get_mview_f(f.buffer, number_of_frame, -number_of_frame);
    EXPECT(view != NULL && (int)vsip_mget_f(view, 3, 5) == 23);
  }
  end_frame(&f);
}

/* What users do to views and blocks that they got: each later get, in this frame and in later ones, of the sending and
 * of the receiving end, gives what the layout says all the same. */
#define INDEX_v(x) x
#define INDEX_m(x) 0, x
#define INDEX_t(x) 0, 0, x
#define INDEX_cv(x) x
#define INDEX_cm(x) 0, x
#define INDEX_ct(x) 0, 0, x
#define NUMBERS_v(slice) slice
#define NUMBERS_m(slice) 0, slice
#define NUMBERS_t(slice) 0, 0, slice
#define NUMBERS_cv(slice) slice
#define NUMBERS_cm(slice) 0, slice
#define NUMBERS_ct(slice) 0, 0, slice
#define MULTID_v(buffer, slice, view) DRI_Buffer_multid_get_vview(buffer, slice, view)
#define MULTID_m(buffer, slice, view) DRI_Buffer_multid_get_mview(buffer, 0, slice, view)
#define MULTID_t(buffer, slice, view) DRI_Buffer_multid_get_tview(buffer, 0, 0, slice, view)
#define MULTID_cv(buffer, slice, view) DRI_Buffer_multid_get_cvview(buffer, slice, view)
#define MULTID_cm(buffer, slice, view) DRI_Buffer_multid_get_cmview(buffer, 0, slice, view)
#define MULTID_ct(buffer, slice, view) DRI_Buffer_multid_get_ctview(buffer, 0, 0, slice, view)
#define REAL_PART(T, value) (value)
#define COMPLEX_PART(T, value) vsip_real_##T(value)
#define MANIPULATED(CS, CB, DIMS, T, TYPE, SCALAR, STEP, PART)                                                      \
  static int shows_##CS##_##T##_##TYPE(const vsip_##CS##view_##T* view, const DRI_Blockinfo* at,                    \
                                       const SCALAR* first) {                                                       \
    return view != NULL && PART(T, vsip_##CS##get_##T(view, INDEX_##CS(1))) == first[STEP * place_of(at, 1, 0, 0)]; \
  }                                                                                                                 \
  static void check_manipulated_##CS##_##T##_##TYPE(void) {                                                         \
    static const int dims_1[1] = {6}, dims_2[2] = {4, 6}, dims_3[3] = {4, 3, 6};                                    \
    frame f = make_frame(DIMS, DIMS == 1 ? dims_1 : DIMS == 2 ? dims_2 : dims_3, TYPE, DIMS - 1, 2);                \
    int round, slice, form;                                                                                         \
    size_t i;                                                                                                       \
    for (round = 0; round < 6; ++round) {                                                                           \
      for (i = 0; round % 2 == 0 && i < f.bytes / sizeof(SCALAR); ++i)                                              \
        ((SCALAR*)f.memory)[i] = (SCALAR)((i + (size_t)round) % 100);                                               \
      for (slice = 0; slice < 3; ++slice) {                                                                         \
        DRI_Blockinfo at;                                                                                           \
        vsip_##CS##view_##T* kept = DRI_Buffer_get_##CS##view_##T(f.buffer, slice);                                 \
        OK(DRI_Buffer_get_slice(f.buffer, slice, &at));                                                             \
        for (form = 0; form < 5; ++form) {                                                                          \
          vsip_##CS##view_##T* view = NULL;                                                                         \
          if (form == 0) view = DRI_Buffer_get_##CS##view_##T(f.buffer, slice);                                     \
          if (form == 1) view = DRI_Buffer_multid_get_##CS##view_##T(f.buffer, NUMBERS_##CS(slice));                \
          if (form == 2) OK(DRI_Buffer_get_##CS##view(f.buffer, slice, &view));                                     \
          if (form == 3) OK(MULTID_##CS(f.buffer, slice, &view));                                                   \
          if (form == 4) OK(DRI_Buffer_get_view(f.buffer, slice, &view));                                           \
          EXPECT(shows_##CS##_##T##_##TYPE(view, &at, (const SCALAR*)f.memory));                                    \
          (void)vsip_##CS##putoffset_##T(view, 3);                                                                  \
          EXPECT(shows_##CS##_##T##_##TYPE(kept, &at, (const SCALAR*)f.memory));                                    \
          if ((round + form) % 4 == 1) (void)vsip_##CS##destroy_##T(view);                                          \
          if ((round + form) % 4 == 2) vsip_##CS##alldestroy_##T(view);                                             \
          if ((round + form) % 4 == 3) vsip_##CB##destroy_##T(vsip_##CS##destroy_##T(view));                        \
        }                                                                                                           \
        EXPECT(shows_##CS##_##T##_##TYPE(kept, &at, (const SCALAR*)f.memory));                                      \
      }                                                                                                             \
      OK(DRI_Channel_put(f.ends[round % 2], &f.buffer));                                                            \
      OK(DRI_Channel_get(f.ends[(round + 1) % 2], &f.buffer));                                                      \
      OK(DRI_Buffer_get_memory(f.buffer, &f.memory, &f.imaginary));                                                 \
    }                                                                                                               \
    end_frame(&f);                                                                                                  \
  }

/* SHAPES(do, C, CB, T, ...) for vectors, matrices and tensors of a type, each type in turn. */
#define SHAPES(DO, C, CB, T, TYPE, STEP, PART)          \
  DO(C##v, CB, 1, T, TYPE, vsip_scalar_##T, STEP, PART) \
  DO(C##m, CB, 2, T, TYPE, vsip_scalar_##T, STEP, PART) \
  DO(C##t, CB, 3, T, TYPE, vsip_scalar_##T, STEP, PART)
#define SHAPES_OF_FLOATS(DO)                                    \
  SHAPES(DO, , block, f, DRI_FLOAT, 1, REAL_PART)               \
  SHAPES(DO, , block, d, DRI_DOUBLE, 1, REAL_PART)              \
  SHAPES(DO, c, cblock, f, DRI_COMPLEX, 2, COMPLEX_PART)        \
  SHAPES(DO, c, cblock, d, DRI_DOUBLE_COMPLEX, 2, COMPLEX_PART) \
  SHAPES(DO, c, cblock, f, DRI_COMPLEX_SPLIT, 1, COMPLEX_PART)  \
  SHAPES(DO, c, cblock, d, DRI_DOUBLE_COMPLEX_SPLIT, 1, COMPLEX_PART)
#define SHAPES_OF_INTEGERS(DO)                              \
  SHAPES(DO, , block, i, DRI_INTEGER, 1, REAL_PART)         \
  SHAPES(DO, , block, si, DRI_SHORT, 1, REAL_PART)          \
  SHAPES(DO, , block, us, DRI_UNSIGNED_SHORT, 1, REAL_PART) \
  SHAPES(DO, , block, li, DRI_LONG, 1, REAL_PART)           \
  SHAPES(DO, , block, ul, DRI_UNSIGNED_LONG, 1, REAL_PART)
#define CALL_MANIPULATED(CS, CB, DIMS, T, TYPE, SCALAR, STEP, PART) check_manipulated_##CS##_##T##_##TYPE();
SHAPES_OF_FLOATS(MANIPULATED)
#ifdef TRANSHIP_VSIP_H
SHAPES_OF_INTEGERS(MANIPULATED)
#endif

#ifdef TRANSHIP_VSIP_H
/* A block that the program has released, or bound to memory of its own. */
static void check_blocks_of_the_program(void) {
  static const int dims[1] = {8};
  frame f = make_frame(1, dims, DRI_COMPLEX, -1, 0);
  float mine[16] = {0}, *memory = (float*)f.memory, *real = NULL, *imaginary = NULL;
  vsip_cblock_f* block = vsip_cvgetblock_f(DRI_Buffer_get_cvview_f(f.buffer, 0));
  vsip_cvview_f* view;
  int round, i;
  vsip_cblockrelease_f(block, VSIP_TRUE, &real, &imaginary);
  EXPECT(real == memory && imaginary == NULL);
  view = DRI_Buffer_get_cvview_f(f.buffer, 0);
  memory[2 * 5] = 7;
  EXPECT((int)vsip_real_f(vsip_cvget_f(view, 5)) == 7);
  vsip_cblockrelease_f(block, VSIP_TRUE, &real, &imaginary);
  vsip_cblockrebind_f(block, mine, NULL, &real, &imaginary);
  EXPECT(vsip_cblockadmit_f(block, VSIP_TRUE) == 0);
  for (round = 0; round < 4; ++round) {
    OK(DRI_Channel_put(f.ends[round % 2], &f.buffer));
    OK(DRI_Channel_get(f.ends[(round + 1) % 2], &f.buffer));
    OK(DRI_Buffer_get_memory(f.buffer, &f.memory, &f.imaginary));
    memory = (float*)f.memory;
    if (round % 2 == 1) memory[2 * 5] = (float)(20 + round);
    view = DRI_Buffer_get_cvview_f(f.buffer, 0);
    EXPECT((int)vsip_real_f(vsip_cvget_f(view, 5)) == (int)memory[2 * 5]);
    vsip_cvput_f(view, 6, vsip_cmplx_f(3, 4));
    EXPECT((int)memory[2 * 6 + 1] == 4);
  }
  for (i = 0; i < 16; ++i) EXPECT((int)mine[i] == 0);
  end_frame(&f);
}

/* What the program makes of a view is its own, and lives on; parts of a view are views, too. */
static void check_views_of_the_program(void) {
  static const int dims[2] = {4, 6};
  frame f = make_frame(2, dims, DRI_COMPLEX, -1, 0);
  vsip_cmview_f *view = DRI_Buffer_get_cmview_f(f.buffer, 0), *clone = vsip_cmcloneview_f(view);
  vsip_mview_f* real = vsip_mrealview_f(view);
  vsip_cvview_f* row = vsip_cmrowview_f(view, 2);
  vsip_malldestroy_f(real);
  vsip_cmalldestroy_f(view);
  OK(DRI_Channel_put(f.ends[0], &f.buffer));
  OK(DRI_Channel_get(f.ends[1], &f.buffer));
  OK(DRI_Channel_put(f.ends[1], &f.buffer));
  OK(DRI_Channel_get(f.ends[0], &f.buffer));
  EXPECT(DRI_Buffer_get_cmview_f(f.buffer, 0) != NULL); /* admits the block */
  vsip_cmput_f(clone, 2, 1, vsip_cmplx_f(5, 6));
  EXPECT((int)vsip_imag_f(vsip_cvget_f(row, 1)) == 6);
  (void)vsip_cvdestroy_f(row);
  (void)vsip_cmdestroy_f(clone);
  end_frame(&f);
}
#endif

/* A channel that ends while its buffer and views are held. */
static void check_end_of_channel(void) {
  static const int dims[2] = {6, 4};
  frame f = make_frame(2, dims, DRI_FLOAT, 1, 2);
  vsip_mview_f* view = DRI_Buffer_get_mview_f(f.buffer, 0);
  EXPECT(view != NULL && DRI_Buffer_get_mview_f(f.buffer, 1) != NULL);
  (void)vsip_mdestroy_f(view);
  OK(DRI_Channel_destroy(&f.ends[1]));
  OK(DRI_Channel_destroy(&f.ends[0]));
}

/* The forms that take the element type from the buffer. */
static void check_any_type(void) {
  static const int line[1] = {9}, rows[2] = {16, 4};
  vsip_vview_f* real = NULL;
  vsip_vview_d* wide = NULL;
  vsip_cvview_d* complex_wide = NULL;
  vsip_mview_f* matrix = NULL;
  void* any = NULL;
  frame f = make_frame(1, line, DRI_DOUBLE, -1, 0);
  ((double*)f.memory)[7] = 0.125;
  OK(DRI_Buffer_get_view(f.buffer, 0, &any));
  EXPECT(any != NULL && vsip_vget_d((vsip_vview_d*)any, 7) > 0.12);
  OK(DRI_Buffer_get_dvview(f.buffer, 0, &any));
  EXPECT(vsip_vget_d((vsip_vview_d*)any, 7) > 0.12);
  OK(DRI_Buffer_get_dvview(f.buffer, 0, &wide));
  EXPECT(vsip_vget_d(wide, 7) > 0.12);
  OK(DRI_Buffer_get_view(f.buffer, 0, &wide));
#if defined(__cplusplus) || __STDC_VERSION__ >= 201112L
  REFUSED(DRI_Buffer_get_view(f.buffer, 0, &real), DRI_ERR_MISMATCH,
          "a view of f32 is asked for, but the elements are f64");
  REFUSED(DRI_Buffer_get_dvview(f.buffer, 0, &complex_wide), DRI_ERR_MISMATCH, "c128");
#endif
  EXPECT(real == NULL && complex_wide == NULL);
  end_frame(&f);
  f = make_frame(1, line, DRI_DOUBLE_COMPLEX_SPLIT, -1, 0);
  ((double*)f.imaginary)[3] = 0.5;
  OK(DRI_Buffer_get_dvview(f.buffer, 0, &complex_wide));
  EXPECT(vsip_imag_d(vsip_cvget_d(complex_wide, 3)) > 0.4);
  end_frame(&f);
  f = make_frame(2, rows, DRI_FLOAT, -1, 0);
  number(&f);
#if defined(__cplusplus) || __STDC_VERSION__ >= 201112L
  OK(DRI_Buffer_get_view(f.buffer, 0, &matrix));
#else
  OK(DRI_Buffer_get_mview(f.buffer, 0, &matrix));
#endif
  EXPECT((int)vsip_mget_f(matrix, 2, 5) == 37);
  REFUSED(DRI_Buffer_get_view(f.buffer, 0, &any), DRI_ERR_MISMATCH, "the slices have 2");
  end_frame(&f);
  f = make_frame(1, line, DRI_UNSIGNED_LONG, -1, 0);
#ifdef TRANSHIP_VSIP_H
  OK(DRI_Buffer_get_view(f.buffer, 0, &any));
  vsip_vput_ul((vsip_vview_ul*)any, 8, 12);
  EXPECT(((unsigned long*)f.memory)[8] == 12);
#else
  REFUSED(DRI_Buffer_get_view(f.buffer, 0, &any), DRI_ERR_UNSUPPORTED, "no views of the buffer's element type");
#endif
  end_frame(&f);
}

/* All shapes of a distribution in one call are those of the views. */
static void check_shapes(void) {
  static const int dims[2] = {6, 5};
  DRI_Viewshape shapes[4];
  int slice;
  frame f = make_frame(2, dims, DRI_FLOAT, 1, 2);
  OK(DRI_Distribution_get_viewshapes(f.distribution, 2, 4, shapes));
  for (slice = 0; slice < slices_of(&f); ++slice) {
    DRI_Viewshape one;
    OK(DRI_Buffer_get_viewshape(f.buffer, DRI_FLOAT, 2, slice, &one));
    EXPECT(one.offset == shapes[slice].offset && one.length[0] == shapes[slice].length[0]);
    EXPECT(one.length[1] == shapes[slice].length[1] && one.stride[1] == shapes[slice].stride[1]);
    EXPECT(shapes[slice].slice == slice && shapes[slice].length[1] == (slice == 2 ? 1 : 2));
    EXPECT(shapes[slice].real == NULL && shapes[slice].elements == one.elements);
  }
  REFUSED(DRI_Distribution_get_viewshapes(f.distribution, 2, 2, shapes), DRI_ERR_ARGUMENT,
          "room for 2 shapes; the rank has 3");
  REFUSED(DRI_Distribution_get_viewshapes(f.distribution, 1, 4, shapes), DRI_ERR_MISMATCH, "");
  end_frame(&f);
}

static void check_types(void) {
#if defined(__cplusplus) || __STDC_VERSION__ >= 201112L
  EXPECT(DRI_DATASPEC_OF(float) == DRI_FLOAT && DRI_DATASPEC_OF(vsip_scalar_d) == DRI_DOUBLE);
  EXPECT(DRI_DATASPEC_OF(vsip_cscalar_f) == DRI_COMPLEX && DRI_DATASPEC_OF(vsip_cscalar_d) == DRI_DOUBLE_COMPLEX);
  EXPECT(DRI_DATASPEC_OF(unsigned long) == DRI_UNSIGNED_LONG && DRI_DATASPEC_OF(short) == DRI_SHORT);
#endif
#if !defined(__cplusplus) && __STDC_VERSION__ >= 201112L
  EXPECT(DRI_DATASPEC_OF(double _Complex) == DRI_DOUBLE_COMPLEX);
#endif
#ifdef MPI_VERSION
  {
    MPI_Datatype datatype = MPI_INT;
    int type;
    for (type = DRI_FLOAT; type <= DRI_UNSIGNED_LONG; ++type) {
      DRI_Dataspec back = DRI_SHORT;
      if (type == DRI_COMPLEX_SPLIT || type == DRI_DOUBLE_COMPLEX_SPLIT) {
        REFUSED(DRI_Dataspec_to_mpi((DRI_Dataspec)type, &datatype), DRI_ERR_UNSUPPORTED, "MPI");
        continue;
      }
      OK(DRI_Dataspec_to_mpi((DRI_Dataspec)type, &datatype));
      OK(DRI_Dataspec_from_mpi(datatype, &back));
      EXPECT(back == (DRI_Dataspec)type);
    }
    REFUSED(DRI_Dataspec_to_mpi((DRI_Dataspec)77, &datatype), DRI_ERR_ARGUMENT, "77");
  }
#endif
}

static void check_refusals(void) {
  static const int dims[2] = {6, 4};
  frame f = make_frame(2, dims, DRI_COMPLEX, -1, 0);
  vsip_mview_f* real = NULL;
  vsip_cmview_f* view = NULL;
  vsip_cmview_f** nowhere = NULL;
  vsip_cvview_f* vector = NULL;
  int mine = 7;
  int64_t key;
  REFUSED(DRI_Buffer_get_mview(f.buffer, 0, &real), DRI_ERR_MISMATCH,
          "a view of f32 is asked for, but the elements are c64");
  REFUSED(DRI_Buffer_get_cmview(f.buffer, 0, nowhere), DRI_ERR_ARGUMENT, "view is NULL");
  EXPECT(DRI_Buffer_get_cvview_f(f.buffer, 0) == NULL);
  EXPECT(strstr(DRI_Error_detail(), "the slices have 2") != NULL);
  EXPECT(real == NULL && vector == NULL);
  /* What the program keeps with a buffer is not taken for a view. */
  for (key = 0; key < 5000; ++key) OK(DRI_Buffer_attach(f.buffer, key, &mine, NULL, NULL));
  OK(DRI_Buffer_get_cmview(f.buffer, 0, &view));
  EXPECT((void*)view != (void*)&mine);
  OK(DRI_Channel_put(f.ends[0], &f.buffer));
  REFUSED(DRI_Buffer_get_cmview(f.buffer, 0, &view), DRI_ERR_HANDLE, "");
  OK(DRI_Channel_destroy(&f.ends[1]));
  OK(DRI_Channel_destroy(&f.ends[0]));
}

int main(void) {
  OK(DRI_Init(NULL, NULL));
  (void)vsip_init(NULL);
  check_tensors_f_DRI_FLOAT();
  check_tensors_d_DRI_DOUBLE();
  check_tensors_cf_DRI_COMPLEX();
  check_tensors_cd_DRI_DOUBLE_COMPLEX();
  check_tensors_cf_DRI_COMPLEX_SPLIT();
  check_tensors_cd_DRI_DOUBLE_COMPLEX_SPLIT();
#ifdef TRANSHIP_VSIP_H
  check_tensors_i_DRI_INTEGER();
  check_tensors_si_DRI_SHORT();
  check_tensors_us_DRI_UNSIGNED_SHORT();
  check_tensors_li_DRI_LONG();
  check_tensors_ul_DRI_UNSIGNED_LONG();
#endif
  SHAPES_OF_FLOATS(CALL_MANIPULATED)
#ifdef TRANSHIP_VSIP_H
  SHAPES_OF_INTEGERS(CALL_MANIPULATED)
  check_blocks_of_the_program();
  check_views_of_the_program();
#endif
  check_end_of_channel();
  check_any_type();
  check_shapes();
  check_types();
  check_fewer_dimensions();
  check_ignored_numbers();
  check_refusals();
  OK(DRI_Finalize());
#ifdef FOREIGN_VSIP_H
  EXPECT(foreign_admitted == 0); /* putting a buffer releases its block */
  EXPECT(foreign_objects == 0);  /* each view and block is destroyed once */
#endif
  return failures != 0;
}
