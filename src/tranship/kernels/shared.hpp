// Detail: The mark of a function that runs on host and device, and unaligned access, for all kernel headers. No kernel
// header includes the standard library or another layer, except enumerations of base: the same text compiles with g++,
// with nvcc, and with NVRTC, which has neither a host nor its builtins.
#pragma once

#if defined(__CUDACC__)
#define TRANSHIP_SHARED __host__ __device__
#else
#define TRANSHIP_SHARED
#endif

/// Code that is compiled at run time has no host: neither its long double nor functions without a mark.
#if defined(__CUDACC_RTC__)
#define TRANSHIP_DEVICE_ONLY
#endif

/// Unrolls the next loop on a device, fully or by `turns`, so that its loads are in flight together.
#if defined(__CUDA_ARCH__)
#define TRANSHIP_PRAGMA(text) _Pragma(#text)
#define TRANSHIP_UNROLL _Pragma("unroll")
#define TRANSHIP_UNROLL_BY(turns) TRANSHIP_PRAGMA(unroll turns)
#else
#define TRANSHIP_UNROLL
#define TRANSHIP_UNROLL_BY(turns)
#endif

namespace tranship::detail {

template <class A, class B>
inline constexpr bool is_same = false;
template <class A>
inline constexpr bool is_same<A, A> = true;

TRANSHIP_SHARED inline void copy_bytes(void* to, const void* from, unsigned long bytes) {
#if defined(TRANSHIP_DEVICE_ONLY)
  memcpy(to, from, bytes);
#else
  __builtin_memcpy(to, from, bytes);
#endif
}

// A device moves an aligned word as a whole, and any other word byte by byte. Where the compiler does not know whether
// an address is aligned, these functions test it.

#if defined(__CUDA_ARCH__)
template <int width>
__device__ inline bool is_placed(const void* at) {
  return reinterpret_cast<unsigned long long>(at) % width == 0;
}
/// Hides where an address comes from. Otherwise the compiler would merge a copy of words and a copy of bytes into one
/// copy of bytes.
template <class Address>
__device__ inline Address other(Address at) {
  asm("" : "+l"(at));
  return at;
}
#endif

/// Copies `width` bytes, a power of two, from any address to any other.
template <int width>
TRANSHIP_SHARED inline void copy_element(void* to, const void* from) {
#if defined(__CUDA_ARCH__)
  if (is_placed<width>(to) && is_placed<width>(from))
    copy_bytes(__builtin_assume_aligned(to, width), __builtin_assume_aligned(from, width), width);
  else
    copy_bytes(other(to), other(from), width);
#else
  copy_bytes(to, from, width);
#endif
}

/// Reads a T from any address; elements need not be aligned.
template <class T>
TRANSHIP_SHARED inline T load(const void* from) {
  T value;
#if defined(__CUDA_ARCH__)
  if (is_placed<sizeof(T)>(from))
    copy_bytes(&value, __builtin_assume_aligned(from, sizeof(T)), sizeof(T));
  else
    copy_bytes(&value, other(from), sizeof(T));
#else
  copy_bytes(&value, from, sizeof(T));
#endif
  return value;
}

template <class T>
TRANSHIP_SHARED inline void store(const T& value, void* to) {
#if defined(__CUDA_ARCH__)
  if (is_placed<sizeof(T)>(to))
    copy_bytes(__builtin_assume_aligned(to, sizeof(T)), &value, sizeof(T));
  else
    copy_bytes(other(to), &value, sizeof(T));
#else
  copy_bytes(to, &value, sizeof(T));
#endif
}

/// Stops on a broken precondition. Kernels cannot throw, and continuing would silently corrupt the target.
[[noreturn]] TRANSHIP_SHARED inline void trap() {
#if defined(__CUDA_ARCH__)
  __trap();
#else
  __builtin_trap();
#endif
}

}  // namespace tranship::detail
