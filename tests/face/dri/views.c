/* The view calls of dri.h: every form, shape and type, over tranship's VSIPL and over another one, as C and as C++. One
 * rank with a sending end, of which the memory is filled by number and looked at through views. Exits with 0 when all is
 * right. */
#include <stdio.h>
#include <string.h>

#include <dri.h>
#include <vsip.h>

static int failures = 0;
#define EXPECT(holds) ((holds) ? (void)0 : (void)(++failures, fprintf(stderr, "line %d: %s: %s\n", __LINE__, #holds, DRI_Error_detail())))
#define OK(call) EXPECT((call) == DRI_SUCCESS)
#define REFUSED(call, code, part) \
  EXPECT((call) == (code));       \
  EXPECT(strstr(DRI_Error_detail(), part) != NULL)

/* Data of up to 3 dimensions with one of them, or none (-1), dealt out in blocks to this rank, in the memory that a buffer
 * of a sending end has. */
typedef struct {
  DRI_Distribution *distribution;
  DRI_Bufferset *buffers;
  DRI_Channel *ends[2];
  DRI_Buffer_Id *buffer;
  void *memory, *imaginary;
  size_t bytes;
} frame;

static frame make_frame(int ndims, const int dims[], DRI_Dataspec type, int cyclic, int size) {
  frame out;
  DRI_Global_Data *data = NULL;
  DRI_Group *world = NULL;
  DRI_Partition parts[3];
  DRI_Bufferset *others = NULL;
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
static void end_frame(frame *f) {
  OK(DRI_Channel_put(f->ends[0], &f->buffer));
  OK(DRI_Channel_destroy(&f->ends[1]));
  OK(DRI_Channel_destroy(&f->ends[0]));
}
static int slices_of(const frame *f) {
  int slices = 0;
  OK(DRI_Distribution_get_numslices(f->distribution, &slices));
  return slices;
}

/* Where an element of a slice lies in its plane, by what DRI says of it. */
static int64_t place_of(const DRI_Blockinfo *slice, int x, int y, int z) {
  return slice->offset + x * slice->dims[0].stride + y * slice->dims[1].stride + z * slice->dims[2].stride;
}

/* VALUE is what an element shows, and FILL makes an element of the memory from its number. */
#define TENSORS_OF(C, T, TYPE, SCALAR, FIRST, VALUE)                                                                 \
  static void check_tensors_##C##T##_##TYPE(void) {                                                                  \
    static const int dims[3] = {3, 4, 5};                                                                            \
    frame f = make_frame(3, dims, TYPE, 2, 2);                                                                       \
    vsip_##C##tview_##T *view = NULL, *again = NULL;                                                                 \
    SCALAR *memory = (SCALAR *)f.memory, *imaginary = (SCALAR *)f.imaginary;                                         \
    int slice, x, y, z;                                                                                              \
    size_t i;                                                                                                        \
    for (i = 0; i < f.bytes / sizeof(SCALAR); ++i) memory[i] = (SCALAR)(i % 100);                                    \
    for (i = 0; imaginary != NULL && i < f.bytes / sizeof(SCALAR); ++i) imaginary[i] = (SCALAR)(50 + i % 7);         \
    EXPECT(slices_of(&f) == 3);                                                                                      \
    for (slice = 0; slice < 3; ++slice) {                                                                            \
      DRI_Blockinfo at;                                                                                              \
      OK(DRI_Buffer_get_slice(f.buffer, slice, &at));                                                                \
      view = DRI_Buffer_get_##C##tview_##T(f.buffer, slice);                                                         \
      EXPECT(view != NULL);                                                                                          \
      EXPECT(view == DRI_Buffer_multid_get_##C##tview_##T(f.buffer, 7, 7, slice));                                   \
      OK(DRI_Buffer_get_##C##tview(f.buffer, slice, &again));                                                        \
      EXPECT(view == again);                                                                                         \
      again = NULL;                                                                                                  \
      OK(DRI_Buffer_multid_get_##C##tview(f.buffer, 0, 0, slice, &again));                                           \
      EXPECT(view == again);                                                                                         \
      for (z = 0; z < at.dims[2].length; ++z)                                                                        \
        for (y = 0; y < 4; ++y)                                                                                      \
          for (x = 0; x < 3; ++x) {                                                                                  \
            const int64_t place = place_of(&at, x, y, z);                                                            \
            EXPECT(VALUE(T, vsip_##C##tget_##T(view, (vsip_index)z, (vsip_index)y, (vsip_index)x)) == FIRST);        \
          }                                                                                                          \
    }                                                                                                                \
    REFUSED(DRI_Buffer_get_##C##tview(f.buffer, 3, &view), DRI_ERR_ARGUMENT, "the number of a slice is 3");          \
    EXPECT(DRI_Buffer_multid_get_##C##tview_##T(f.buffer, 0, 0, -1) == NULL);                                        \
    end_frame(&f);                                                                                                   \
  }
#define REAL_VALUE(T, value) (double)(value)
#define COMPLEX_VALUE(T, value) ((double)vsip_real_##T(value) + 1000 * (double)vsip_imag_##T(value))
#define TENSORS_OF_REAL(T, TYPE) \
  TENSORS_OF(, T, TYPE, vsip_scalar_##T, (double)(place % 100), REAL_VALUE)
#define TENSORS_OF_COMPLEX(T, TYPE) \
  TENSORS_OF(c, T, TYPE, vsip_scalar_##T, (double)(2 * place % 100) + 1000 * (double)((2 * place + 1) % 100), COMPLEX_VALUE)
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

static void number(frame *f) {
  float *memory = (float *)f->memory;
  size_t i;
  for (i = 0; i < f->bytes / sizeof(float); ++i) memory[i] = (float)i;
}

/* A view of fewer dimensions than the data leaves out those of one element, and the others have the numbers. */
static void check_fewer_dimensions(void) {
  static const int stack[3] = {1, 16, 7}, rows[2] = {16, 4}, line[1] = {9};
  vsip_vview_f *vector = NULL;
  vsip_mview_f *matrix = NULL;
  vsip_tview_f *tensor = NULL;
  int slice;
  frame f = make_frame(3, stack, DRI_FLOAT, 2, 2);
  number(&f);
  for (slice = 0; slice < 4; ++slice) { /* the last one has one matrix row: its x is dimension 1 all the same */
    DRI_Blockinfo at;
    OK(DRI_Buffer_get_slice(f.buffer, slice, &at));
    OK(DRI_Buffer_get_mview(f.buffer, slice, &matrix));
    EXPECT(matrix == DRI_Buffer_multid_get_mview_f(f.buffer, 0, slice));
    EXPECT((int64_t)vsip_mget_f(matrix, 0, 3) == place_of(&at, 0, 3, 0));
    EXPECT((int64_t)vsip_mget_f(matrix, at.dims[2].length - 1 == 1, 15) == place_of(&at, 0, 15, at.dims[2].length - 1 == 1));
  }
  REFUSED(DRI_Buffer_get_vview(f.buffer, 0, &vector), DRI_ERR_MISMATCH, "a view of 1 dimensions was asked for; the slices have 2");
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

/* Where nothing is block-cyclic there is one view, whatever the number. */
static void check_ignored_numbers(void) {
  static const int dims[2] = {6, 4};
  int number_of_frame;
  frame f = make_frame(2, dims, DRI_COMPLEX, -1, 0);
  vsip_cmview_f *view = DRI_Buffer_get_cmview_f(f.buffer, 0);
  EXPECT(view != NULL);
  for (number_of_frame = -3; number_of_frame < 1000; ++number_of_frame) {
    EXPECT(view == DRI_Buffer_get_cmview_f(f.buffer, number_of_frame));
    EXPECT(view == DRI_Buffer_multid_get_cmview_f(f.buffer, number_of_frame, -number_of_frame));
  }
  end_frame(&f);
}

static void check_refusals(void) {
  static const int dims[2] = {6, 4};
  frame f = make_frame(2, dims, DRI_COMPLEX, -1, 0);
  vsip_mview_f *real = NULL;
  vsip_cmview_f *view = NULL;
  vsip_cmview_f **nowhere = NULL;
  vsip_cvview_f *vector = NULL;
  int mine = 7;
  int64_t key;
  REFUSED(DRI_Buffer_get_mview(f.buffer, 0, &real), DRI_ERR_MISMATCH, "a view of f32 was asked for; the elements are c64");
  REFUSED(DRI_Buffer_get_cmview(f.buffer, 0, nowhere), DRI_ERR_ARGUMENT, "view is NULL");
  EXPECT(DRI_Buffer_get_cvview_f(f.buffer, 0) == NULL);
  EXPECT(strstr(DRI_Error_detail(), "the slices have 2") != NULL);
  EXPECT(real == NULL && vector == NULL);
  /* What the program keeps with a buffer is not taken for a view. */
  for (key = 0; key < 5000; ++key) OK(DRI_Buffer_attach(f.buffer, key, &mine, NULL, NULL));
  OK(DRI_Buffer_get_cmview(f.buffer, 0, &view));
  EXPECT((void *)view != (void *)&mine);
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
  check_fewer_dimensions();
  check_ignored_numbers();
  check_refusals();
  OK(DRI_Finalize());
#ifdef FOREIGN_VSIP_H
  EXPECT(foreign_admitted == 0); /* putting a buffer releases its block */
#endif
  return failures != 0;
}
