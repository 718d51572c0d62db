// Loads, stores and fences 8-byte words, in each order and scope that PTX has. Each function is one instruction, so
// that an experiment runs exactly the instruction that its name says. Read next: signals.cu.
#pragma once

#include <cuda_runtime.h>

namespace tranship::device {

using Word = unsigned long long;

#define TRANSHIP_WORD_LOAD(name, instruction)                                  \
  __device__ inline Word name(const Word* at) {                                \
    Word value;                                                                \
    asm volatile(instruction " %0, [%1];" : "=l"(value) : "l"(at) : "memory"); \
    return value;                                                              \
  }
TRANSHIP_WORD_LOAD(load_weak, "ld.weak.global.u64")
TRANSHIP_WORD_LOAD(load_level1, "ld.global.ca.u64")
TRANSHIP_WORD_LOAD(load_level2, "ld.global.cg.u64")
TRANSHIP_WORD_LOAD(load_volatile, "ld.volatile.global.u64")
TRANSHIP_WORD_LOAD(load_relaxed_gpu, "ld.relaxed.gpu.global.u64")
TRANSHIP_WORD_LOAD(load_relaxed_sys, "ld.relaxed.sys.global.u64")
TRANSHIP_WORD_LOAD(load_acquire_gpu, "ld.acquire.gpu.global.u64")
TRANSHIP_WORD_LOAD(load_acquire_sys, "ld.acquire.sys.global.u64")
#undef TRANSHIP_WORD_LOAD

#define TRANSHIP_WORD_STORE(name, instruction)                               \
  __device__ inline void name(Word* at, Word value) {                        \
    asm volatile(instruction " [%0], %1;" ::"l"(at), "l"(value) : "memory"); \
  }
TRANSHIP_WORD_STORE(store_weak, "st.weak.global.u64")
TRANSHIP_WORD_STORE(store_volatile, "st.volatile.global.u64")
TRANSHIP_WORD_STORE(store_relaxed_gpu, "st.relaxed.gpu.global.u64")
TRANSHIP_WORD_STORE(store_relaxed_sys, "st.relaxed.sys.global.u64")
TRANSHIP_WORD_STORE(store_release_gpu, "st.release.gpu.global.u64")
TRANSHIP_WORD_STORE(store_release_sys, "st.release.sys.global.u64")
TRANSHIP_WORD_STORE(add_relaxed_gpu, "red.relaxed.gpu.global.add.u64")
TRANSHIP_WORD_STORE(add_relaxed_sys, "red.relaxed.sys.global.add.u64")
TRANSHIP_WORD_STORE(add_release_sys, "red.release.sys.global.add.u64")
#undef TRANSHIP_WORD_STORE

#define TRANSHIP_FENCE(name, instruction)       \
  __device__ inline void name() {               \
    asm volatile(instruction ";" ::: "memory"); \
  }
TRANSHIP_FENCE(fence_gpu, "fence.acq_rel.gpu")
TRANSHIP_FENCE(fence_sys, "fence.acq_rel.sys")
TRANSHIP_FENCE(fence_alias, "fence.proxy.alias")
#undef TRANSHIP_FENCE

__device__ inline Word global_ns() {
  Word ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}
__device__ inline unsigned multiprocessor() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

/// Scrambles a number; the experiments take their random data from it.
__host__ __device__ inline Word scrambled(Word x) {
  x = (x ^ (x >> 31)) * 0x9fb21c651e98df25ull;
  x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}

/// A wait gives up after this many looks at a word of the card. A look takes 0.3 to 1 us, so this is about two seconds.
/// Counting costs nothing beside a look; a clock would change the time that is measured.
constexpr int looks_max = 1 << 22;
/// A wait gives up after this many looks at a word in host memory, each of which takes 1 to 2 us.
constexpr int host_looks_max = 1 << 20;

}  // namespace tranship::device
