/* A program in C that links the library: a pulse is found in a vector by correlation, done by FFTs. Exits with 0 when the
 * answer is right. */
#include <stdio.h>
#include <vsip.h>

enum { n = 64, delay = 19 };

int main(void) {
  vsip_cvview_f *pulse, *signal;
  vsip_vview_f* power;
  vsip_fft_f *forward, *inverse;
  vsip_index i, peak = 0;
  vsip_scalar_f largest;

  if (vsip_init(NULL) != 0) return 1;
  pulse = vsip_cvcreate_f(n, VSIP_MEM_NONE);
  signal = vsip_cvcreate_f(n, VSIP_MEM_NONE);
  power = vsip_vcreate_f(n, VSIP_MEM_NONE);
  forward = vsip_ccfftip_create_f(n, 1.0F, VSIP_FFT_FWD, 0, VSIP_ALG_TIME);
  inverse = vsip_ccfftip_create_f(n, 1.0F / n, VSIP_FFT_INV, 0, VSIP_ALG_TIME);
  vsip_cvfill_f(vsip_cmplx_f(0, 0), pulse);
  for (i = 0; i < 8; ++i) vsip_cvput_f(pulse, i, vsip_rect_f(1, 0.05F * (vsip_scalar_f)(i * i)));
  for (i = 0; i < n; ++i) vsip_cvput_f(signal, (i + delay) % n, vsip_cvget_f(pulse, i));

  vsip_ccfftip_f(forward, pulse);
  vsip_ccfftip_f(forward, signal);
  vsip_cvjmul_f(signal, pulse, signal);
  vsip_ccfftip_f(inverse, signal);
  vsip_vcmagsq_f(signal, power);
  largest = vsip_vmaxval_f(power, &peak);
  printf("the pulse is at %lu, with a power of %.1f\n", (unsigned long)peak, (double)largest);

  vsip_fft_destroy_f(forward);
  vsip_fft_destroy_f(inverse);
  vsip_cvalldestroy_f(pulse);
  vsip_cvalldestroy_f(signal);
  vsip_valldestroy_f(power);
  vsip_finalize(NULL);
  return peak == delay && largest > 63.0F && largest < 65.0F ? 0 : 1;
}
