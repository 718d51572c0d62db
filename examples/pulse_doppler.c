// Shows a pulse-Doppler radar on 4 ranks, a pipeline over DRI channels with VSIPL views.
// Prints the targets that it detects in 3 frames; writes a picture of the last frame's power.
// Run: build/release/bin/example_pulse_doppler [PICTURE.svg [PULSES CELLS]]
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <dri.h>
#include <vsip.h>

enum { ranks = 4, frames = 3, chirp_length = 64, targets = 5, echo_channel = 1, power_channel = 2 };

static const double pi = 3.14159265358979323846;
static int pulses = 64, cells = 512;
static const char *picture = NULL;
static vsip_cscalar_d *ground = NULL; /* its echo, which is the same in each pulse; read by all ranks */

static void check(int code, const char *call) {
  if (code == DRI_SUCCESS) return;
  fprintf(stderr, "%s: %s: %s\n", call, DRI_Error_string(code), DRI_Error_detail());
  exit(1);
}
#define CHECK(call) check(call, #call)

/* ---- The scene -------------------------------------------------------------------------------------------------- */

typedef struct {
  double range;   /* as a part of the cells that a whole echo fits in */
  double moves;   /* cells a frame */
  double doppler; /* as a part of the pulse frequency, -0.5 to 0.5 */
  double amplitude;
} target;
static const target scene[targets] = {{0.15, 3, 0.21, 0.5}, {0.34, -2, -0.30, 0.4}, {0.5, 0, 0.34, 0.45},
                                      {0.52, 6, -0.16, 0.6}, {0.85, -5, 0.12, 0.5}};

static int range_of(const target *t, int frame) {
  return (int)(t->range * (cells - chirp_length)) + (int)t->moves * frame;
}

static vsip_cscalar_d chirp(int sample) {
  const double x = sample - (chirp_length - 1) / 2.0;
  return vsip_rect_d(1, pi * 0.8 * x * x / (double)chirp_length);
}

/* Noise of unit power, the same on every rank that computes it. */
static vsip_cscalar_d noise(int frame, int pulse, int cell) {
  uint64_t x = ((uint64_t)frame << 40) + ((uint64_t)pulse << 20) + (uint64_t)cell + 1;
  double u, v;
  x *= 0x9E3779B97F4A7C15u;
  x ^= x >> 31;
  x *= 0xBF58476D1CE4E5B9u;
  x ^= x >> 29;
  u = ((double)(x >> 32) + 1) / 4294967297.0;
  v = (double)(x & 0xFFFFFFFFu) / 4294967296.0;
  return vsip_rect_d(sqrt(-log(u)), 2 * pi * v);
}

/* What the antenna receives: echoes of the targets, of the ground near by (which stands still), and noise. */
static vsip_cscalar_d echo(int frame, int pulse, int cell) {
  vsip_cscalar_d sum = noise(frame, pulse, cell);
  int t;
  for (t = 0; t < targets; t++) {
    const int sample = cell - range_of(&scene[t], frame);
    if (sample >= 0 && sample < chirp_length)
      sum = vsip_cadd_d(sum, vsip_cmul_d(vsip_rect_d(scene[t].amplitude, 2 * pi * scene[t].doppler * pulse),
                                         chirp(sample)));
  }
  return vsip_cadd_d(sum, ground[cell]);
}

/* The ground scatters everywhere, the less the farther away it is. */
static int lay_ground(void) {
  int cell, sample;
  ground = (vsip_cscalar_d *)calloc((size_t)cells, sizeof *ground);
  for (cell = 0; ground != NULL && cell < cells; cell++)
    for (sample = 0; sample < chirp_length && sample <= cell; sample++) {
      const int at = cell - sample;
      const vsip_cscalar_d scatterer = vsip_rcmul_d(3 * exp(-10.0 * at / cells), noise(0, 0, at));
      ground[cell] = vsip_cadd_d(ground[cell], vsip_cmul_d(scatterer, chirp(sample)));
    }
  return ground != NULL;
}

/* ---- The chain -------------------------------------------------------------------------------------------------- */

/* The spectrum of the matched filter: a chirp with a window, which lowers its side lobes. */
static vsip_cvview_f *matched_filter(void) {
  vsip_cvview_f *filter = vsip_cvcreate_f((vsip_length)cells, VSIP_MEM_NONE);
  vsip_vview_f *window = vsip_vcreate_hamming_f(chirp_length, VSIP_MEM_NONE);
  vsip_fft_f *fft = vsip_ccfftip_create_f((vsip_length)cells, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  vsip_index i;
  vsip_cvfill_f(vsip_cmplx_f(0, 0), filter);
  for (i = 0; i < chirp_length; i++) {
    const vsip_cscalar_d c = chirp((int)i);
    vsip_cvput_f(filter, i, vsip_rcmul_f(vsip_vget_f(window, i), vsip_cmplx_f((float)c.r, (float)c.i)));
  }
  vsip_ccfftip_f(fft, filter);
  vsip_cvconj_f(filter, filter);
  vsip_fft_destroy_f(fft);
  vsip_valldestroy_f(window);
  return filter;
}

/* The same frame in double precision, without any distribution: the power of each pulse frequency (row) and range. */
static vsip_mview_d *reference_power(int frame) {
  const vsip_length m = (vsip_length)pulses, n = (vsip_length)cells;
  vsip_cmview_d *data = vsip_cmcreate_d(m, n, VSIP_ROW, VSIP_MEM_NONE);
  vsip_cmview_d *turned = vsip_cmcreate_d(n, m, VSIP_ROW, VSIP_MEM_NONE), *back = vsip_cmtransview_d(turned);
  vsip_cvview_d *filter = vsip_cvcreate_d(n, VSIP_MEM_NONE);
  vsip_vview_d *range_window = vsip_vcreate_hamming_d(chirp_length, VSIP_MEM_NONE);
  vsip_vview_d *doppler_window = vsip_vcreate_cheby_d(m, 60, VSIP_MEM_NONE);
  vsip_mview_d *power = vsip_mcreate_d(m, n, VSIP_ROW, VSIP_MEM_NONE);
  vsip_fft_d *one = vsip_ccfftip_create_d(n, 1, VSIP_FFT_FWD, 1, VSIP_ALG_SPACE);
  vsip_fftm_d *there = vsip_ccfftmip_create_d(m, n, 1, VSIP_FFT_FWD, VSIP_ROW, 1, VSIP_ALG_SPACE);
  vsip_fftm_d *home = vsip_ccfftmip_create_d(m, n, 1.0 / cells, VSIP_FFT_INV, VSIP_ROW, 1, VSIP_ALG_SPACE);
  vsip_fftm_d *doppler = vsip_ccfftmip_create_d(n, m, 1, VSIP_FFT_FWD, VSIP_ROW, 1, VSIP_ALG_SPACE);
  int i, j;
  for (i = 0; i < pulses; i++)
    for (j = 0; j < cells; j++) vsip_cmput_d(data, (vsip_index)i, (vsip_index)j, echo(frame, i, j));
  vsip_cvfill_d(vsip_cmplx_d(0, 0), filter);
  for (j = 0; j < chirp_length; j++)
    vsip_cvput_d(filter, (vsip_index)j, vsip_rcmul_d(vsip_vget_d(range_window, (vsip_index)j), chirp(j)));
  vsip_ccfftip_d(one, filter);
  vsip_cvconj_d(filter, filter);
  vsip_ccfftmip_d(there, data);
  vsip_cvmmul_d(filter, data, VSIP_ROW, data);
  vsip_ccfftmip_d(home, data);
  vsip_cmtrans_d(data, turned);
  vsip_rvcmmul_d(doppler_window, turned, VSIP_ROW, turned);
  vsip_ccfftmip_d(doppler, turned);
  vsip_mcmagsq_d(back, power);
  vsip_cmdestroy_d(back);
  vsip_cmalldestroy_d(turned);
  vsip_cmalldestroy_d(data);
  vsip_cvalldestroy_d(filter);
  vsip_valldestroy_d(range_window);
  vsip_valldestroy_d(doppler_window);
  vsip_fft_destroy_d(one);
  vsip_fftm_destroy_d(there);
  vsip_fftm_destroy_d(home);
  vsip_fftm_destroy_d(doppler);
  return power;
}

/* Frequencies so near to zero are left to the ground. */
static int is_ground(int row) {
  const int distance = row < pulses / 2 ? row : pulses - row;
  return distance * 16 <= pulses;
}

/* Whether a power stands out: far above the mean of the other frequencies at its range, and no neighbour is larger.
 * Columns beside the outermost ones are in the overlap. */
static int stands_out(const vsip_mview_f *power, int row, int column, float mean) {
  const float here = vsip_mget_f(power, (vsip_index)row, (vsip_index)column);
  const int last = (int)vsip_mgetrowlength_f(power) - 1;
  int i, j;
  if (is_ground(row) || here < 14 * mean) return 0;
  for (i = -1; i <= 1; i++)
    for (j = -1; j <= 1; j++)
      if (column + j >= 0 && column + j <= last &&
          vsip_mget_f(power, (vsip_index)((row + i + pulses) % pulses), (vsip_index)(column + j)) > here)
        return 0;
  return 1;
}

static int is_target(int frame, int row, int range) {
  int t;
  for (t = 0; t < targets; t++) {
    const double expected = scene[t].doppler * pulses;
    const double off = fabs((row < pulses / 2 ? row : row - pulses) - expected);
    if (abs(range - range_of(&scene[t], frame)) <= 1 && off <= 1) return 1;
  }
  return 0;
}

/* ---- The ranks -------------------------------------------------------------------------------------------------- */

/*
 *   ranks 0, 1   receive `pulses` echoes of `cells` samples a frame, divided by pulses, and compress them in range: an
 *                FFT along each pulse, the product with the spectrum of the chirp, the FFT back
 *   the channel  turns the corner: pulses are dealt out by rows, and come out by range cells, pulses together in memory
 *   ranks 2, 3   window and transform along the pulses, which separates velocities, and detect cells that stand out of
 *                the noise of their range and are larger than their neighbours; they check each power against the same
 *                chain in double precision on one rank, and the detections against the targets
 *   rank 3       gathers the power of all cells by a second channel and writes the picture
 *
 * Both channels have two buffers on each side: ranks 0 and 1 work on the next frame while the last one is on its way.
 */

static int compress(DRI_Group *group, const int dims[2]) {
  const int processes[2] = {1, 2};
  DRI_Global_Data *data;
  DRI_Partition parts[2];
  DRI_Distribution *rows;
  DRI_Bufferset *buffers;
  DRI_Channel *out;
  DRI_Buffer_Id *buffer;
  DRI_Blockinfo info;
  vsip_cmview_f *echoes;
  vsip_cvview_f *filter;
  vsip_fftm_f *there, *home;
  int frame, i, j;

  CHECK(DRI_Global_Data_create(2, dims, DRI_COMPLEX, &data));
  CHECK(DRI_Partition_whole_create(&parts[0]));
  CHECK(DRI_Partition_block_create(NULL, NULL, 0, 1, &parts[1]));
  CHECK(DRI_Distribution_create(data, group, processes, parts, NULL, &rows));
  CHECK(DRI_Bufferset_system_create(2, rows, &buffers));
  CHECK(DRI_Channel_create_send(echo_channel, rows, buffers, &out));
  CHECK(DRI_Channel_connect(out));
  CHECK(DRI_Distribution_get_slice(rows, 0, &info));
  filter = matched_filter();
  there = vsip_ccfftmip_create_f((vsip_length)info.dims[1].length, (vsip_length)cells, 1, VSIP_FFT_FWD, VSIP_ROW, 0,
                                 VSIP_ALG_TIME);
  home = vsip_ccfftmip_create_f((vsip_length)info.dims[1].length, (vsip_length)cells, 1.0f / (float)cells, VSIP_FFT_INV,
                                VSIP_ROW, 0, VSIP_ALG_TIME);
  for (frame = 0; frame < frames; frame++) {
    CHECK(DRI_Channel_get(out, &buffer)); /* waits only where both buffers are on their way */
    echoes = DRI_Buffer_get_cmview_f(buffer, 0);
    if (echoes == NULL) return 1;
    for (i = 0; i < info.dims[1].length; i++)
      for (j = 0; j < cells; j++) {
        const vsip_cscalar_d e = echo(frame, (int)info.dims[1].first + i, j);
        vsip_cmput_f(echoes, (vsip_index)i, (vsip_index)j, vsip_cmplx_f((float)e.r, (float)e.i));
      }
    vsip_ccfftmip_f(there, echoes);
    vsip_cvmmul_f(filter, echoes, VSIP_ROW, echoes);
    vsip_ccfftmip_f(home, echoes);
    CHECK(DRI_Channel_put(out, &buffer)); /* starts the corner turn */
  }
  vsip_fftm_destroy_f(there);
  vsip_fftm_destroy_f(home);
  vsip_cvalldestroy_f(filter);
  CHECK(DRI_Channel_destroy(&out));
  CHECK(DRI_Bufferset_destroy(&buffers));
  CHECK(DRI_Distribution_destroy(&rows));
  CHECK(DRI_Partition_destroy(&parts[0]));
  CHECK(DRI_Partition_destroy(&parts[1]));
  CHECK(DRI_Global_Data_destroy(&data));
  return 0;
}

/* The shade of a power: each has 5 dB, and the last one reaches to the largest power. */
enum { shades = 12 };
static int shade_of(float power, float largest) {
  const int shade = shades + (int)floor(10 * log10((double)power / (double)largest + 1e-12) / 5);
  return shade < 0 ? 0 : shade < shades ? shade : shades - 1;
}

/* Writes the last frame as SVG: ranges to the right, frequencies upward, one path of horizontal runs for each shade,
 * and circles around the targets of the scene. */
static int write_picture(const vsip_mview_f *power) {
  enum { left = 70, top = 40, width = 640, height = 320, bar = left + width + 24 };
  const float largest = vsip_mmaxval_f(power, NULL);
  const double x_scale = (double)width / cells, y_scale = (double)height / pulses;
  FILE *file = fopen(picture, "w");
  int i, j, shade, grey;
  if (file == NULL) {
    fprintf(stderr, "%s cannot be written\n", picture);
    return 1;
  }
  fprintf(file,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
          "font-size=\"13\" text-anchor=\"middle\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
          "<text x=\"%d\" y=\"24\">power of frame %d; circles: the targets of the scene</text>\n",
          bar + 100, top + height + 52, left + width / 2, frames - 1);
  fprintf(file, "<g transform=\"translate(%d %d) scale(%g %g)\" fill=\"none\" shape-rendering=\"crispEdges\">\n", left,
          top, x_scale, y_scale);
  for (shade = 0; shade < shades; shade++) {
    grey = 255 * shade / (shades - 1);
    fprintf(file, "<path stroke=\"#%02x%02x%02x\" d=\"", (unsigned)grey, (unsigned)grey, (unsigned)grey);
    for (i = 0; i < pulses; i++) { /* from the lowest frequency up; zero is in the middle */
      const vsip_index row = (vsip_index)((i + pulses - pulses / 2) % pulses);
      int run = 0;
      for (j = 0; j <= cells; j++)
        if (j < cells && shade_of(vsip_mget_f(power, row, (vsip_index)j), largest) == shade)
          run++;
        else if (run > 0) {
          fprintf(file, "M%d %d.5h%d", j - run, pulses - 1 - i, run);
          run = 0;
        }
    }
    fputs("\"/>\n", file);
  }
  fputs("</g>\n", file);
  for (i = 0; i < targets; i++)
    fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"10\" fill=\"none\" stroke=\"#f80\" stroke-width=\"2\"/>\n",
            left + (range_of(&scene[i], frames - 1) + 0.5) * x_scale,
            top + (pulses / 2 - 0.5 - scene[i].doppler * pulses) * y_scale);
  for (i = 0; i <= 4; i++) {
    fprintf(file, "<text x=\"%d\" y=\"%d\">%d</text>\n", left + width * i / 4, top + height + 18, cells * i / 4);
    fprintf(file, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%.1f</text>\n", left - 8,
            top + (pulses / 2 - 0.5 - (i - 2) * 0.2 * pulses) * y_scale + 4, (i - 2) * 0.2);
  }
  for (shade = 0; shade < shades; shade++) {
    grey = 255 * shade / (shades - 1);
    fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"%d\" fill=\"#%02x%02x%02x\"/>\n", bar,
            top + height * (shades - 1 - shade) / shades, height / shades + 1, (unsigned)grey, (unsigned)grey,
            (unsigned)grey);
  }
  fprintf(file, "<rect x=\"%d\" y=\"%d\" width=\"16\" height=\"%d\" fill=\"none\" stroke=\"#000\"/>\n", bar,
          top, height);
  for (i = 0; i <= 3; i++)
    fprintf(file, "<text x=\"%d\" y=\"%d\" text-anchor=\"start\">%d</text>\n", bar + 22,
            top + height * i / 3 + 4, -20 * i);
  fprintf(file,
          "<text x=\"%d\" y=\"%d\">range (cells)</text>\n"
          "<text transform=\"translate(24 %d) rotate(-90)\">Doppler frequency / pulse frequency</text>\n"
          "<text transform=\"translate(%d %d) rotate(-90)\">power relative to the largest (dB)</text>\n</svg>\n",
          left + width / 2, top + height + 40, top + height / 2, bar + 70, top + height / 2);
  return fclose(file) != 0;
}

static int detect(DRI_Group *group, DRI_Group *last, const int dims[2], int gathers) {
  const int processes[2] = {2, 1}, one[2] = {1, 1}, order[2] = {1, 0}, strides[2] = {1, 1};
  DRI_Global_Data *data, *powers;
  DRI_Overlap *one_cell;
  DRI_Partition columns[2], owned[2], whole[2];
  DRI_Layout pulses_together;
  DRI_Distribution *from, *to, *all = NULL;
  DRI_Bufferset *buffers, *power_buffers, *all_buffers = NULL;
  DRI_Channel *in, *out, *gathered = NULL;
  DRI_Buffer_Id *buffer, *result;
  DRI_Blockinfo info;
  vsip_vview_f *window;
  vsip_fftm_f *doppler;
  vsip_mview_f *power, *mine;
  int frame, i, j, wrong = 0;
  vsip_length m = (vsip_length)pulses, n;

  CHECK(DRI_Global_Data_create(2, dims, DRI_COMPLEX, &data));
  CHECK(DRI_Global_Data_create(2, dims, DRI_FLOAT, &powers));
  CHECK(DRI_Overlap_create(DRI_OVERLAP_TRUNCATE, 1, &one_cell));
  CHECK(DRI_Partition_block_create(one_cell, one_cell, 0, 1, &columns[0]));
  CHECK(DRI_Partition_whole_create(&columns[1]));
  CHECK(DRI_Partition_block_create(NULL, NULL, 0, 1, &owned[0]));
  CHECK(DRI_Partition_whole_create(&owned[1]));
  CHECK(DRI_Partition_whole_create(&whole[0]));
  CHECK(DRI_Partition_whole_create(&whole[1]));
  CHECK(DRI_Layout_create(0, order, strides, &pulses_together));
  CHECK(DRI_Distribution_create(data, group, processes, columns, pulses_together, &from));
  CHECK(DRI_Distribution_create(powers, group, processes, owned, NULL, &to));
  CHECK(DRI_Bufferset_system_create(2, from, &buffers));
  CHECK(DRI_Bufferset_system_create(2, to, &power_buffers));
  CHECK(DRI_Channel_create_recv(echo_channel, from, buffers, &in));
  CHECK(DRI_Channel_connect(in));
  CHECK(DRI_Channel_create_send(power_channel, to, power_buffers, &out));
  if (gathers) {
    CHECK(DRI_Distribution_create(powers, last, one, whole, NULL, &all));
    CHECK(DRI_Bufferset_system_create(2, all, &all_buffers));
    CHECK(DRI_Channel_create_recv(power_channel, all, all_buffers, &gathered));
  }
  CHECK(DRI_Channel_connect(out));
  if (gathers) CHECK(DRI_Channel_connect(gathered));

  CHECK(DRI_Distribution_get_slice(from, 0, &info));
  n = (vsip_length)info.dims[0].length;
  window = vsip_vcreate_cheby_f(m, 60, VSIP_MEM_NONE);
  doppler = vsip_ccfftmip_create_f(m, n, 1, VSIP_FFT_FWD, VSIP_COL, 0, VSIP_ALG_TIME);
  power = vsip_mcreate_f(m, n, VSIP_ROW, VSIP_MEM_NONE);
  mine = vsip_msubview_f(power, 0, (vsip_index)info.dims[0].left, m,
                         n - (vsip_length)(info.dims[0].left + info.dims[0].right));

  for (frame = 0; frame < frames; frame++) {
    vsip_mview_d *reference = reference_power(frame);
    const double largest = vsip_mmaxval_d(reference, NULL);
    double error = 0;
    int found = 0, others = 0;
    vsip_cmview_f *compressed;
    vsip_mview_f *sent;

    CHECK(DRI_Channel_get(in, &buffer));
    compressed = DRI_Buffer_get_cmview_f(buffer, 0);
    if (compressed == NULL) return 1;
    vsip_rvcmmul_f(window, compressed, VSIP_COL, compressed);
    vsip_ccfftmip_f(doppler, compressed);
    vsip_mcmagsq_f(compressed, power);
    CHECK(DRI_Channel_put(in, &buffer));

    for (j = 0; j < (int)n; j++) {
      const int range = (int)info.dims[0].first + j;
      const int owns = j >= info.dims[0].left && j < (int)n - info.dims[0].right;
      float mean = 0;
      int counted = 0;
      for (i = 0; i < pulses; i++) {
        const double p = (double)vsip_mget_f(power, (vsip_index)i, (vsip_index)j);
        error = fmax(error, fabs(p - vsip_mget_d(reference, (vsip_index)i, (vsip_index)range)));
        if (is_ground(i)) continue;
        mean += (float)p;
        counted++;
      }
      mean /= (float)counted;
      for (i = 0; owns && i < pulses; i++)
        if (stands_out(power, i, j, mean)) {
          if (is_target(frame, i, range))
            found++;
          else
            others++;
          printf("frame %d: a target at range %d, pulse frequency %+.3f\n", frame, range,
                 (double)(i < pulses / 2 ? i : i - pulses) / pulses);
        }
    }
    for (i = 0; i < targets; i++) { /* those of this rank */
      const int at = range_of(&scene[i], frame) - (int)info.dims[0].first;
      found -= at >= info.dims[0].left && at < (int)n - info.dims[0].right;
    }
    if (error > 1e-4 * largest || found != 0 || others != 0) {
      printf("frame %d: off by %g of %g; %d targets missed, %d others\n", frame, error, largest, -found, others);
      wrong = 1;
    }
    vsip_malldestroy_d(reference);

    CHECK(DRI_Channel_get(out, &result));
    sent = DRI_Buffer_get_mview_f(result, 0);
    if (sent == NULL) return 1;
    vsip_mcopy_f_f(mine, sent);
    CHECK(DRI_Channel_put(out, &result));
    if (gathers) {
      CHECK(DRI_Channel_get(gathered, &result));
      if (picture != NULL && frame == frames - 1) wrong |= write_picture(DRI_Buffer_get_mview_f(result, 0));
      CHECK(DRI_Channel_put(gathered, &result));
    }
  }
  vsip_mdestroy_f(mine);
  vsip_malldestroy_f(power);
  vsip_valldestroy_f(window);
  vsip_fftm_destroy_f(doppler);
  CHECK(DRI_Channel_destroy(&in));
  CHECK(DRI_Channel_destroy(&out));
  CHECK(DRI_Bufferset_destroy(&buffers));
  CHECK(DRI_Bufferset_destroy(&power_buffers));
  if (gathers) {
    CHECK(DRI_Channel_destroy(&gathered));
    CHECK(DRI_Bufferset_destroy(&all_buffers));
    CHECK(DRI_Distribution_destroy(&all));
  }
  CHECK(DRI_Distribution_destroy(&from));
  CHECK(DRI_Distribution_destroy(&to));
  CHECK(DRI_Layout_destroy(&pulses_together));
  for (i = 0; i < 2; i++) {
    CHECK(DRI_Partition_destroy(&columns[i]));
    CHECK(DRI_Partition_destroy(&owned[i]));
    CHECK(DRI_Partition_destroy(&whole[i]));
  }
  CHECK(DRI_Overlap_destroy(&one_cell));
  CHECK(DRI_Global_Data_destroy(&data));
  CHECK(DRI_Global_Data_destroy(&powers));
  return wrong;
}

static int run_rank(void *nothing) {
  const int first[2] = {0, 1}, second[2] = {2, 3}, third[1] = {3};
  const int dims[2] = {cells, pulses};
  DRI_Group *world, *compressing, *detecting, *gathering;
  int rank, failed;
  (void)nothing;
  CHECK(DRI_Init(NULL, NULL));
  vsip_init(NULL);
  CHECK(DRI_Group_create_world(&world));
  CHECK(DRI_Group_create(2, first, &compressing));
  CHECK(DRI_Group_create(2, second, &detecting));
  CHECK(DRI_Group_create(1, third, &gathering));
  CHECK(DRI_Group_rank(world, &rank));
  failed = rank < 2 ? compress(compressing, dims) : detect(detecting, gathering, dims, rank == 3);
  CHECK(DRI_Group_destroy(&world));
  CHECK(DRI_Group_destroy(&compressing));
  CHECK(DRI_Group_destroy(&detecting));
  CHECK(DRI_Group_destroy(&gathering));
  vsip_finalize(NULL);
  CHECK(DRI_Finalize());
  return failed;
}

int main(int argc, char **argv) {
  if (argc > 1 && argv[1][0] != '\0') picture = argv[1];
  if (argc > 3) {
    pulses = atoi(argv[2]);
    cells = atoi(argv[3]);
  }
  if (pulses < 48 || cells < 8 * chirp_length) {
    fprintf(stderr, "at least 48 pulses and %d cells are needed, not %d and %d\n", 8 * chirp_length, pulses, cells);
    return 2;
  }
  if (!lay_ground()) return 1;
  CHECK(DRI_Launch_threads(ranks, run_rank, NULL));
  free(ground);
  printf("every power and every detection is right\n");
  return 0;
}
