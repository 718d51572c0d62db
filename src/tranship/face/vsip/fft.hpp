// Private: FFTs for other sources, so that fft.cpp alone includes FFTW.
#pragma once

#include <tranship/face/vsip/vsip.h>

namespace tranship::vsip {

/// Computes n times the n real numbers whose DFT begins with the n/2 + 1 interleaved complex numbers of `spectrum`.
/// Overwrites the spectrum. Returns false when memory is short.
bool real_signal(vsip_length n, double* spectrum, double* signal);

}  // namespace tranship::vsip
