// Shows the first example of the draft of DRI, corrected (docs/dri.md): 2 ranks send rows, 5 receive them with overlap.
// Prints "right" for each rank that has sent its rows, or has checked the rows that came and their transforms.
// Run: build/release/bin/example_dri_rows (7 ranks that are threads; main shows how to start two programs)
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dri.h>
#include <vsip.h>

enum { columns = 64, rows = 20, senders = 2, receivers = 5, frames = 3, chan_id = 2000 };

/* Every call of DRI returns a code. */
static void check(int code, const char *call) {
  if (code == DRI_SUCCESS) return;
  fprintf(stderr, "%s: %s: %s\n", call, DRI_Error_string(code), DRI_Error_detail());
  exit(1);
}
#define CHECK(call) check(call, #call)

static const int global_dims[2] = {columns, rows}; /* no memory order is meant */

/* A wave along each row, whose frequency is the number of the row: its transform is one line. */
static vsip_cscalar_f value(int frame, int column, int row) {
  const double angle = 2 * 3.14159265358979323846 * row * column / (double)columns;
  return vsip_cmplx_f((vsip_scalar_f)((frame + 1) * cos(angle)), (vsip_scalar_f)((frame + 1) * sin(angle)));
}

static int send_frames(DRI_Group *P) {
  const int proc_dims[2] = {1, senders};
  DRI_Global_Data *GDO;
  DRI_Partition parts[2];
  DRI_Distribution *distr;
  DRI_Bufferset *bufset;
  DRI_Channel *snd_chan;
  DRI_Buffer_Id *buf;
  DRI_Blockinfo info;
  vsip_cmview_f *matrix = NULL;
  int frame, row, column;

  CHECK(DRI_Global_Data_create(2, global_dims, DRI_COMPLEX, &GDO));
  CHECK(DRI_Partition_whole_create(&parts[0]));
  CHECK(DRI_Partition_block_create(NULL, NULL, 0, 1, &parts[1]));
  CHECK(DRI_Distribution_create(GDO, P, proc_dims, parts, NULL, &distr));
  CHECK(DRI_Bufferset_system_create(2, distr, &bufset));
  CHECK(DRI_Channel_create_send(chan_id, distr, bufset, &snd_chan));
  CHECK(DRI_Channel_connect(snd_chan));
  CHECK(DRI_Distribution_get_slice(distr, 0, &info));
  for (frame = 0; frame < frames; frame++) {
    CHECK(DRI_Channel_get(snd_chan, &buf));
    CHECK(DRI_Buffer_get_cmview(buf, 0, &matrix)); /* the form with an OUT parameter */
    for (row = 0; row < info.dims[1].length; row++)
      for (column = 0; column < columns; column++)
        vsip_cmput_f(matrix, (vsip_index)row, (vsip_index)column, value(frame, column, (int)info.dims[1].first + row));
    CHECK(DRI_Channel_put(snd_chan, &buf));
  }
  CHECK(DRI_Channel_destroy(&snd_chan));
  CHECK(DRI_Bufferset_destroy(&bufset));
  CHECK(DRI_Distribution_destroy(&distr));
  return 0;
}

/* 64 columns by 20 rows come in pairs of rows, with an overlap of one row on both sides that goes around the edge. The
 * rows are transformed in place; rows and transforms are checked. */
static int receive_frames(DRI_Group *P) {
  const int mem_dim_order[2] = {0, 1};   /* the dimension of 64 elements lies fastest */
  const int mem_dim_strides[2] = {1, 2}; /* rows lie two rows apart: a pitch of 128 elements */
  const int proc_dims[2] = {1, receivers};
  const int num_channel_bufs = 2;
  DRI_Global_Data *GDO;
  DRI_Overlap *l_ovr, *r_ovr;
  DRI_Partition parts[2];
  DRI_Layout layout;
  DRI_Distribution *distr;
  DRI_Bufferset *bufset;
  DRI_Channel *rcv_chan;
  DRI_Buffer_Id *buf;
  DRI_Blockinfo info;
  int num_data_slices, sli_ct, frame, row, column, wrong = 0;
  vsip_fftm_f *FFT_handle;
  vsip_cmview_f *matrix;
  vsip_cmattr_f matrix_attributes;

  CHECK(DRI_Global_Data_create(2, global_dims, DRI_COMPLEX, &GDO));
  CHECK(DRI_Overlap_create(DRI_OVERLAP_TOROIDAL, 1, &l_ovr));
  CHECK(DRI_Overlap_create(DRI_OVERLAP_TOROIDAL, 1, &r_ovr));
  CHECK(DRI_Partition_whole_create(&parts[0]));
  CHECK(DRI_Partition_blockcyclic_create(l_ovr, r_ovr, 2, &parts[1]));
  CHECK(DRI_Layout_create(512, mem_dim_order, mem_dim_strides, &layout)); /* 512 positions up front */
  CHECK(DRI_Distribution_create(GDO, P, proc_dims, parts, layout, &distr));
  CHECK(DRI_Bufferset_system_create(num_channel_bufs, distr, &bufset));
  CHECK(DRI_Channel_create_recv(chan_id, distr, bufset, &rcv_chan));
  CHECK(DRI_Channel_connect(rcv_chan)); /* all processes of both groups meet here */
  CHECK(DRI_Distribution_get_numslices(distr, &num_data_slices));

  /* A slice has 2 rows and one of overlap on each side. */
  FFT_handle = vsip_ccfftmip_f(4, columns, 1.0f, VSIP_FFT_FWD, VSIP_ROW, 0, VSIP_ALG_TIME);
  if (FFT_handle == NULL) return 1;

  for (frame = 0; frame < frames; frame++) {
    CHECK(DRI_Channel_get(rcv_chan, &buf));
    for (sli_ct = 0; sli_ct < num_data_slices; sli_ct++) {
      CHECK(DRI_Buffer_get_slice(buf, sli_ct, &info));
      matrix = DRI_Buffer_get_cmview_f(buf, sli_ct);
      if (matrix == NULL) return 1;
      vsip_cmview_getattrib(matrix, &matrix_attributes);
      if (matrix_attributes.col_length != 4 || matrix_attributes.row_length != columns ||
          matrix_attributes.col_stride != 128)
        return 1;
      for (row = 0; row < 4; row++) { /* the rows as they came */
        const int global_row = ((int)info.dims[1].first + row + rows) % rows;
        for (column = 0; column < columns; column++) {
          const vsip_cscalar_f found = vsip_cmget_f(matrix, (vsip_index)row, (vsip_index)column);
          const vsip_cscalar_f expected = value(frame, column, global_row);
          wrong += vsip_real_f(found) != vsip_real_f(expected) || vsip_imag_f(found) != vsip_imag_f(expected);
        }
      }
      vsip_ccfftmip_f(FFT_handle, matrix);
      for (row = 0; row < 4; row++) { /* one line of 64 times the amplitude, at the number of the row */
        const int global_row = ((int)info.dims[1].first + row + rows) % rows;
        for (column = 0; column < columns; column++) {
          const vsip_cscalar_f found = vsip_cmget_f(matrix, (vsip_index)row, (vsip_index)column);
          const double line = column == global_row ? (double)columns * (frame + 1) : 0;
          wrong += fabs((double)vsip_real_f(found) - line) > 1e-3 || fabs((double)vsip_imag_f(found)) > 1e-3;
        }
      }
    }
    CHECK(DRI_Channel_put(rcv_chan, &buf));
  }
  vsip_fftm_destroy_f(FFT_handle);
  CHECK(DRI_Channel_destroy(&rcv_chan));
  CHECK(DRI_Bufferset_destroy(&bufset));
  CHECK(DRI_Distribution_destroy(&distr));
  return wrong != 0;
}

/* One rank: of a group that is given by ranks where all run one program, else of its program. */
static int run_rank(void *side) {
  const int sending[senders] = {0, 1}, receiving[receivers] = {2, 3, 4, 5, 6};
  DRI_Group *world, *P; /* the processes that share the matrix */
  int rank, sends, failed;
  CHECK(DRI_Init(NULL, NULL));
  CHECK(DRI_Group_create_world(&world));
  CHECK(DRI_Group_rank(world, &rank));
  if (side != NULL) {
    sends = strcmp((const char *)side, "send") == 0;
    CHECK(DRI_Group_create_program(&P));
  } else {
    sends = rank < senders;
    CHECK(DRI_Group_create(sends ? senders : receivers, sends ? sending : receiving, &P));
  }
  vsip_init(NULL);
  failed = sends ? send_frames(P) : receive_frames(P);
  vsip_finalize(NULL);
  printf("rank %d %s: %s\n", rank, sends ? "sent" : "received", failed ? "wrong" : "right");
  CHECK(DRI_Finalize());
  return failed;
}

/* As two programs: tranship launch -n 2 example_dri_rows send : -n 5 example_dri_rows receive */
int main(int argc, char **argv) {
  if (argc > 1) return run_rank(argv[1]);
  CHECK(DRI_Launch_threads(senders + receivers, run_rank, NULL));
  return 0;
}
