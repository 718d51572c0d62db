// Detail: What kernel headers share: the mark of a function that runs on host and device, and unaligned access. No
// kernel header includes the standard library or another layer: the same text compiles with g++ and with nvcc.
#pragma once

#if defined(__CUDACC__)
#define TRANSHIP_SHARED __host__ __device__
#else
#define TRANSHIP_SHARED
#endif

namespace tranship::detail {

/// Reads a T from any address; elements need not be aligned.
template <class T>
TRANSHIP_SHARED inline T load(const void* from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}

template <class T>
TRANSHIP_SHARED inline void store(const T& value, void* to) {
  __builtin_memcpy(to, &value, sizeof(T));
}

/// A broken precondition. Kernels cannot throw, and going on would leave the target wrong without a word.
[[noreturn]] TRANSHIP_SHARED inline void trap() {
#if defined(__CUDA_ARCH__)
  __trap();
#else
  __builtin_trap();
#endif
}

}  // namespace tranship::detail
