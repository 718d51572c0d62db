// Private: The FFTs of fft.cpp, which alone includes FFTW, for other sources.
#pragma once

#include <tranship/face/vsip/vsip.h>

namespace tranship::vsip {

/// The n real numbers whose DFT begins with the n/2 + 1 complex ones of `spectrum`, interleaved, times n. Overwrites
/// the spectrum; false where memory is short.
bool real_signal(vsip_length n, double* spectrum, double* signal);

}  // namespace tranship::vsip
