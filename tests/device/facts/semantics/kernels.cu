// See kernels.hpp.
#include "facts/semantics/kernels.hpp"
#include "facts/words.hpp"

namespace tranship::device {

__global__ void hold(Levers* levers, Word limit_ns) {
  const Word begin = global_ns();
  store_relaxed_sys(levers->started, 1);
  Word how = 1;
  while (load_relaxed_sys(levers->stop) == 0)
    if (global_ns() - begin > limit_ns) {
      how = 2;
      break;
    }
  store_relaxed_sys(levers->ended, how);
}

__global__ void put_word(Word* at, Word value) {
  *at = value;
}
__global__ void put_by_parameters(PutParameters parameters) {
  *parameters.at = parameters.value;
}
__global__ void put_words(Word* at, unsigned words, Word value) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x) at[i] = value + i;
}
__global__ void count_other_words(const Word* at, unsigned words, Word value, Word* others) {
  Word mine = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < words; i += gridDim.x * blockDim.x)
    mine += load_weak(at + i) != value + i;
  if (mine != 0) atomicAdd(others, mine);
}
__global__ void keep_reading(const Word* at, unsigned words, Word for_ns, Word* started, Word* sum) {
  const Word begin = global_ns();
  store_relaxed_sys(started, 1);
  Word mine = 0;
  // Volatile loads bypass the L1, so that an unmapped page is missed at once.
  for (unsigned i = threadIdx.x; global_ns() - begin < for_ns; i = (i + blockDim.x) % words)
    mine += load_volatile(at + i);
  atomicAdd(sum, mine);
}

__global__ void watch_rounds(const Word* flag, const Word* data, unsigned words, int rounds, int acquires,
                             Word limit_ns, Word* acknowledged, Word* others) {
  __shared__ int came;
  Word mine = 0;
  for (int round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) {
      const Word begin = global_ns();
      came = 1;
      while (load_relaxed_sys(flag) < Word(round))
        if (global_ns() - begin > limit_ns) {
          came = 0;
          break;
        }
      if (acquires) load_acquire_sys(flag);
    }
    __syncthreads();
    const bool goes_on = came != 0;
    if (goes_on)
      for (unsigned i = threadIdx.x; i < words; i += blockDim.x) mine += load_weak(data + i) != Word(round) + i;
    __syncthreads();
    if (!goes_on) break;
    if (threadIdx.x == 0) {
      if (acquires) fence_sys();
      store_relaxed_sys(acknowledged, Word(round));
    }
  }
  if (mine != 0) atomicAdd(others, mine);
}

__device__ void stay_for(Word ns) {
  const Word begin = global_ns();
  while (global_ns() - begin < ns) {
  }
}

__global__ void count_present(Word* present, Word* most, Word stay_ns) {
  atomicMax(most, atomicAdd(present, 1ull) + 1);
  stay_for(stay_ns);
  atomicAdd(present, ~0ull);
}
__global__ void count_resident(Word* present, Word* most, Word* present_of, Word* most_of, Word stay_ns) {
  if (threadIdx.x == 0) {
    const unsigned here = multiprocessor() % 1024;
    atomicMax(most, atomicAdd(present, 1ull) + 1);
    atomicMax(most_of + here, atomicAdd(present_of + here, 1ull) + 1);
    stay_for(stay_ns);
    atomicAdd(present_of + here, ~0ull);
    atomicAdd(present, ~0ull);
  }
  // The block's other warps stay resident until the first has counted.
  __syncthreads();
}
__global__ void gather(Gathering* gathering, Word wanted, Word limit_ns) {
  if (threadIdx.x == 0) {
    atomicAdd(gathering->present, 1ull);
    const Word begin = global_ns();
    for (;;) {
      const Word present = load_relaxed_gpu(gathering->present);
      if (present >= wanted) break;
      const bool is_late = global_ns() - begin > limit_ns;
      if (is_late || load_relaxed_gpu(gathering->abort) != 0) {
        if (is_late) atomicMin(gathering->fewest_seen, present);
        store_relaxed_gpu(gathering->abort, 1);
        atomicAdd(gathering->gave_up, 1ull);
        break;
      }
    }
  }
  __syncthreads();
}
__global__ void stay(Span* span, Word stay_ns) {
  if (threadIdx.x == 0) {
    atomicMin(&span->first_begin_ns, global_ns());
    stay_for(stay_ns);
    atomicMax(&span->last_end_ns, global_ns());
  }
  __syncthreads();
}
__global__ void note_multiprocessors(unsigned* of_block) {
  if (threadIdx.x == 0) of_block[blockIdx.x] = multiprocessor();
}

__global__ void lane_waits_for_lane(int setter, int in_shared, Word* word, Word limit_ns, Word* out) {
  __shared__ Word near;
  volatile Word* const at = in_shared ? &near : word;
  if (threadIdx.x == 0) *at = 0;
  __syncthreads();
  if (int(threadIdx.x) == setter) {
    stay_for(20000);
    *at = 1;
  } else if (int(threadIdx.x) == 1 - setter) {
    const Word begin = global_ns();
    Word how = 1;
    while (*at == 0)
      if (global_ns() - begin > limit_ns) {
        how = 2;
        break;
      }
    *out = how;
  }
}
__global__ void warps_wait_for_warp(int setter, Word* word, Word limit_ns, Word* out) {
  const int warp = int(threadIdx.x / 32);
  if (warp == setter) {
    stay_for(20000);
    if (threadIdx.x % 32 == 0) store_relaxed_gpu(word, 1);
  } else {
    const Word begin = global_ns();
    Word how = 1;
    while (load_relaxed_gpu(word) == 0)
      if (global_ns() - begin > limit_ns) {
        how = 2;
        break;
      }
    atomicMax(out, how);
  }
}

__global__ void work_beside_spinners(Spinning how, Working what, int steps, const Word* chain, Word* stop,
                                     Word limit_ns, Word* out) {
  __shared__ volatile Word near;
  if (threadIdx.x == 0) near = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    // The spinners are running by then.
    stay_for(5000);
    const long long begin = clock64();
    if (what == Working::computing) {
      float a = float(threadIdx.x), b = a + 1, c = a + 2, d = a + 3;
      for (int i = 0; i < steps; ++i) {
        a = fmaf(a, 1.0001f, 0.5f);
        b = fmaf(b, 1.0001f, 0.5f);
        c = fmaf(c, 1.0001f, 0.5f);
        d = fmaf(d, 1.0001f, 0.5f);
      }
      // The condition hardly ever holds; it keeps the compiler from dropping the loop.
      if (a + b + c + d == 0.125f) out[1] = 1;
    } else {
      Word at = threadIdx.x;
      for (int i = 0; i < steps; ++i) at = load_level2(chain + at);
      if (at == ~0ull) out[1] = 1;
    }
    const long long end = clock64();
    __syncwarp();
    if (threadIdx.x == 0) {
      out[0] = Word(end - begin);
      near = 1;
      store_relaxed_gpu(stop, 1);
    }
    return;
  }
  const Word begin = global_ns();
  const bool is_near = how == Spinning::in_shared || how == Spinning::in_shared_sleeping;
  const bool sleeps = how == Spinning::on_the_card_sleeping || how == Spinning::in_shared_sleeping;
  if (how == Spinning::not_at_all) return;
  for (unsigned looks = 1;; ++looks) {
    if ((is_near ? near : load_relaxed_gpu(stop)) != 0) break;
    if (looks % 64 == 0 && global_ns() - begin > limit_ns) break;
    if (sleeps) __nanosleep(100);
  }
}

void load_kernels() {
  const void* const all[] = {
      reinterpret_cast<const void*>(hold),
      reinterpret_cast<const void*>(put_word),
      reinterpret_cast<const void*>(put_by_parameters),
      reinterpret_cast<const void*>(put_words),
      reinterpret_cast<const void*>(count_other_words),
      reinterpret_cast<const void*>(keep_reading),
      reinterpret_cast<const void*>(watch_rounds),
      reinterpret_cast<const void*>(count_present),
      reinterpret_cast<const void*>(count_resident),
      reinterpret_cast<const void*>(gather),
      reinterpret_cast<const void*>(stay),
      reinterpret_cast<const void*>(note_multiprocessors),
      reinterpret_cast<const void*>(lane_waits_for_lane),
      reinterpret_cast<const void*>(warps_wait_for_warp),
      reinterpret_cast<const void*>(work_beside_spinners),
  };
  for (const void* const kernel : all) {
    cudaFuncAttributes attributes;
    TRANSHIP_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  }
}

}  // namespace tranship::device
