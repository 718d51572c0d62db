// Private: CardMemory, how kernels of a card load and store the vectors of move_pieces.hpp.
#pragma once

#if defined(__CUDACC__)

#include <tranship/kernels/move_pieces.hpp>

namespace tranship::cuda {

/// Addresses come from a table, so the compiler cannot know that they are global; the instructions say so.
template <bool is_streaming = false>
struct CardMemory {
  /// Wide vectors are read once and leave the first-level cache to narrow ones, which come back to their sectors. The
  /// loads are not .nc, because the assembler lets such loads follow stores, and the stores would wait for their values
  /// first.
  template <class V>
  __device__ V load(const unsigned char* from) const {
    const auto at = __cvta_generic_to_global(from);
    V value;
    if constexpr (sizeof(V) == 16 && is_streaming)
      asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u64 {%0, %1}, [%2];"
                   : "=l"(value.low), "=l"(value.high)
                   : "l"(at));
    else if constexpr (sizeof(V) == 16)
      asm volatile("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(at));
    else if constexpr (sizeof(V) == 8)
      asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(at));
    else if constexpr (sizeof(V) == 4)
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at));
    else if constexpr (sizeof(V) == 2)
      asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(at));
    else {
      unsigned wide;
      asm volatile("ld.global.u8 %0, [%1];" : "=r"(wide) : "l"(at));
      value = static_cast<V>(wide);
    }
    return value;
  }
  template <class V>
  __device__ void store(unsigned char* to, const V& value) const {
    const auto at = __cvta_generic_to_global(to);
    if constexpr (sizeof(V) == 16 && is_streaming)
      asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(value.low), "l"(value.high) : "memory");
    else if constexpr (sizeof(V) == 16)
      asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(value.low), "l"(value.high) : "memory");
    else if constexpr (sizeof(V) == 8)
      asm volatile("st.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    else if constexpr (sizeof(V) == 4)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
    else if constexpr (sizeof(V) == 2)
      asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "h"(value) : "memory");
    else
      asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(unsigned(value)) : "memory");
  }
};

}  // namespace tranship::cuda

#endif
