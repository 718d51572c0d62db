// Measures what it costs when the lanes of a block wait for one another: __syncthreads and its variants, shuffles and
// mbarriers. On Hopper it also measures the barrier of a cluster, and a message between two blocks of a cluster through
// each other's shared memory, beside one through global memory. Read next: step_lists.cu.
#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

struct Times {
  Word ns;
  Word sum;
  Word lost;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ unsigned shared_address(const void* at) {
  return unsigned(__cvta_generic_to_shared(at));
}
/// Returns the address of `at` in the shared memory of block `block` of the cluster.
__device__ unsigned mapped_address(unsigned at, unsigned block) {
  unsigned out;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(out) : "r"(at), "r"(block));
  return out;
}
__device__ void init_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ bool has_passed(unsigned barrier, unsigned parity) {
  unsigned passed;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, "
      "p;\n}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}
__device__ bool has_passed_cluster(unsigned barrier, unsigned parity) {
  unsigned passed;
  asm volatile(
      "{\n .reg .pred p;\n mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, "
      "p;\n}"
      : "=r"(passed)
      : "r"(barrier), "r"(parity)
      : "memory");
  return passed != 0;
}
__device__ void meet_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif

/// A wait gives up after this many looks at shared memory: a quarter of a second or more, for a look takes some 15 ns.
[[maybe_unused]] constexpr int shared_looks_max = 1 << 24;

/// Waits by looks that suspend the lane, so that their number says little about the time.
template <class Ready>
[[maybe_unused]] __device__ void await_half_a_second(bool& lost, const Ready& ready) {
  if (lost || ready()) return;
  const Word begin = global_ns();
  while (!ready())
    if (global_ns() - begin > 500'000'000) {
      lost = true;
      return;
    }
}

// ---- one block ----

enum class Meeting { threads, threads_or, part, warp, shuffle, vote, barrier };

/// Stores the time of `times` meetings in `out->ns`.
template <Meeting meeting>
__global__ void __launch_bounds__(1024) meetings(int times, Times* out) {
  __shared__ alignas(8) Word room[1];
  unsigned sum = threadIdx.x;
  bool lost = false;
  if constexpr (meeting == Meeting::barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) init_barrier(shared_address(room), blockDim.x);
#endif
  } else if (threadIdx.x == 0) {
    room[0] = 0;
  }
  __syncthreads();
  const Word begin = global_ns();
#pragma unroll 4
  for (int i = 0; i < times; ++i) {
    if constexpr (meeting == Meeting::threads) __syncthreads();
    if constexpr (meeting == Meeting::threads_or) sum += unsigned(__syncthreads_or(int(sum == 0xffffffffu)));
    // Half of the block meets at a barrier of its own.
    if constexpr (meeting == Meeting::part)
      if (threadIdx.x < blockDim.x / 2) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x / 2) : "memory");
    if constexpr (meeting == Meeting::warp) {
      // The volatile store keeps the meeting from being empty.
      if (threadIdx.x % 32 == unsigned(i) % 32) *const_cast<volatile Word*>(room) = Word(i);
      __syncwarp();
    }
    if constexpr (meeting == Meeting::shuffle) sum += __shfl_xor_sync(~0u, sum, 1);
    if constexpr (meeting == Meeting::vote) sum += unsigned(__any_sync(~0u, sum == unsigned(i)));
    if constexpr (meeting == Meeting::barrier) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
      const unsigned at = shared_address(room);
      asm volatile("mbarrier.arrive.release.cta.shared::cta.b64 _, [%0];" ::"r"(at) : "memory");
      await_half_a_second(lost, [&] { return has_passed(at, unsigned(i) & 1u); });
#endif
    }
  }
  __syncthreads();
  const Word ns = global_ns() - begin;
  if (lost) atomicAdd(&out->lost, 1ull);
  if (threadIdx.x == 0) {
    out->ns = ns;
    out->sum = sum;
  }
}

class Bench {
 public:
  explicit Bench(const Options& options) : quick(options.quick()), times_(1) {}

  /// Returns nanoseconds of one out of `count`, where `launch(Times*)` runs them all.
  template <class Launch>
  Samples per_one(int count, const Launch& launch) {
    Samples out;
    for (int sample = -1; sample < (quick ? 1 : 9); ++sample) {
      times_.fill(0);
      launch(times_.data());
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      last = times_.read()[0];
      if (last.lost != 0) return {};
      if (sample >= 0) out.values.push_back(double(last.ns) / count);
    }
    return out;
  }
  int count(int usual) const { return quick ? 64 : usual; }

  bool quick;
  Times last = {};

 private:
  CardArray<Times> times_;
};

template <Meeting meeting>
void meeting_costs(Bench& bench, const std::string& name, std::initializer_list<unsigned> all_lanes) {
  const int times = bench.count(8192);
  for (const unsigned lanes : all_lanes)
    figure(name + ", block of " + std::to_string(lanes) + " lanes",
           bench.per_one(times, [&](Times* out) { meetings<meeting><<<1, lanes>>>(times, out); }), "ns");
}

// ---- clusters ----

/// Launches blocks as one cluster; where the card refuses, reports an answer and returns false.
template <class... Arguments>
bool launch_cluster(void (*kernel)(Arguments...), unsigned blocks, unsigned lanes,
                    std::type_identity_t<Arguments>... arguments) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {blocks, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(blocks);
  config.blockDim = dim3(lanes);
  config.attrs = &attribute;
  config.numAttrs = 1;
  const cudaError_t status = cudaLaunchKernelEx(&config, kernel, arguments...);
  if (status == cudaSuccess) return true;
  answer("a cluster of " + std::to_string(blocks) + " blocks", cudaGetErrorName(status));
  cudaGetLastError();
  return false;
}

__global__ void __launch_bounds__(1024) cluster_meetings(int times, Times* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  meet_cluster();
  const Word begin = global_ns();
  for (int i = 0; i < times; ++i) meet_cluster();
  if (blockIdx.x == 0 && threadIdx.x == 0) out->ns = global_ns() - begin;
#endif
}

enum class Through { remote_arrival, remote_flag, async_store, global_cluster, global_gpu };

const char* words_of(Through through) {
  switch (through) {
    case Through::remote_arrival:
      return "stores to the other's shared memory, an arrival at its mbarrier";
    case Through::remote_flag:
      return "stores to the other's shared memory, fence.acq_rel.cluster, a flag there";
    case Through::async_store:
      return "st.async to the other's shared memory, counted by its mbarrier";
    case Through::global_cluster:
      return "stores to global memory, fence.acq_rel.cluster, st.relaxed.cluster";
    case Through::global_gpu:
      return "stores to global memory, fence.acq_rel.gpu, st.relaxed.gpu";
  }
  return "";
}

struct Mail {
  uint4 data[2][256];
  Word signals[2][16];
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ uint4 letter(int round, unsigned from) {
  const unsigned bits = unsigned(round) * 0x9e3779b1u ^ threadIdx.x * 0x85ebca6bu;
  return {bits, bits >> 7, unsigned(round), from};
}
__device__ bool same(const uint4& a, const uint4& b) {
  return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

/// Describes what a block of the cluster plays with; all addresses are in the window of shared memory.
struct Seat {
  unsigned me;
  unsigned room, barrier, flag;              ///< those of this block
  unsigned far_room, far_barrier, far_flag;  ///< those of the other block
};

template <Through through>
__device__ void post(const Seat& seat, Mail* mail, int round) {
  const uint4 v = letter(round, seat.me);
  const unsigned to = seat.far_room + threadIdx.x * 16;
  if constexpr (through == Through::async_store) {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w), "r"(seat.far_barrier)
                 : "memory");
  } else if constexpr (through == Through::remote_arrival || through == Through::remote_flag) {
    asm volatile("st.shared::cluster.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
    __syncthreads();
    if (threadIdx.x != 0) return;
    if constexpr (through == Through::remote_arrival) {
      // A fence that reaches the cluster is needed to order the lanes' stores before the arrival of lane 0.
      asm volatile("fence.acq_rel.cluster;\n mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(
                       seat.far_barrier)
                   : "memory");
    } else {
      asm volatile("fence.acq_rel.cluster;\n st.relaxed.cluster.shared::cluster.u32 [%0], %1;" ::"r"(seat.far_flag),
                   "r"(round)
                   : "memory");
    }
  } else {
    mail->data[1 - seat.me][threadIdx.x] = v;
    __syncthreads();
    if (threadIdx.x != 0) return;
    Word* const signal = mail->signals[1 - seat.me];
    if constexpr (through == Through::global_cluster)
      asm volatile("fence.acq_rel.cluster;\n st.relaxed.cluster.global.u64 [%0], %1;" ::"l"(signal), "l"(Word(round))
                   : "memory");
    else
      asm volatile("fence.acq_rel.gpu;\n st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(signal), "l"(Word(round))
                   : "memory");
  }
}

template <Through through>
__device__ void fetch(const Seat& seat, const Mail* mail, int round, bool& lost, unsigned& wrong) {
  const unsigned parity = unsigned(round - 1) & 1u;
  uint4 v;
  if constexpr (through == Through::async_store || through == Through::remote_arrival) {
    await_half_a_second(lost, [&] { return has_passed_cluster(seat.barrier, parity); });
    if constexpr (through == Through::async_store)
      // The next phase expects the same number of bytes; the other block sends them only after an answer to this
      // message.
      if (threadIdx.x == 0)
        asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(seat.barrier),
                     "r"(blockDim.x * 16)
                     : "memory");
  } else if constexpr (through == Through::remote_flag) {
    if (threadIdx.x == 0) {
      int seen = 0;
      for (int looks = 0; !lost && seen != round; ++looks) {
        asm volatile("ld.relaxed.cluster.shared::cta.u32 %0, [%1];" : "=r"(seen) : "r"(seat.flag) : "memory");
        lost = looks == shared_looks_max;
      }
      asm volatile("fence.acq_rel.cluster;" ::: "memory");
    }
    __syncthreads();
  } else {
    if (threadIdx.x == 0) {
      const Word* const signal = mail->signals[seat.me];
      if constexpr (through == Through::global_cluster) {
        await_ready(lost, [&] {
          Word seen;
          asm volatile("ld.relaxed.cluster.global.u64 %0, [%1];" : "=l"(seen) : "l"(signal) : "memory");
          return seen == Word(round);
        });
        asm volatile("fence.acq_rel.cluster;" ::: "memory");
      } else {
        await_ready(lost, [&] { return load_relaxed_gpu(signal) == Word(round); });
        load_acquire_gpu(signal);
      }
    }
    __syncthreads();
  }
  if constexpr (through == Through::global_cluster || through == Through::global_gpu)
    v = mail->data[seat.me][threadIdx.x];
  else
    asm volatile("ld.shared::cta.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(seat.room + threadIdx.x * 16)
                 : "memory");
  wrong += !same(v, letter(round, 1 - seat.me));
  // All lanes have read before one of them answers.
  __syncthreads();
}
#endif

/// Two blocks of a cluster play ping-pong with 16 bytes of each lane.
template <Through through>
__global__ void __launch_bounds__(256) cluster_ping_pong(Mail* mail, int warm_rounds, int rounds, Times* out) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  __shared__ alignas(16) uint4 room[256];
  __shared__ alignas(8) Word barrier[1];
  __shared__ int flag;
  Seat seat;
  seat.me = blockIdx.x;
  seat.room = shared_address(room);
  seat.barrier = shared_address(barrier);
  seat.flag = shared_address(&flag);
  seat.far_room = mapped_address(seat.room, 1 - seat.me);
  seat.far_barrier = mapped_address(seat.barrier, 1 - seat.me);
  seat.far_flag = mapped_address(seat.flag, 1 - seat.me);
  room[threadIdx.x] = {~0u, ~0u, ~0u, ~0u};
  if (threadIdx.x == 0) {
    flag = -1;
    init_barrier(seat.barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    if constexpr (through == Through::async_store)
      asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(seat.barrier),
                   "r"(blockDim.x * 16)
                   : "memory");
  }
  __syncthreads();
  meet_cluster();
  bool lost = false;
  unsigned wrong = 0;
  Word begin = 0;
  for (int round = 1; round <= warm_rounds + rounds; ++round) {
    for (unsigned half = 0; half < 2; ++half) {
      if (half == seat.me)
        post<through>(seat, mail, round);
      else
        fetch<through>(seat, mail, round, lost, wrong);
    }
    if (round == warm_rounds) begin = global_ns();
  }
  const Word ns = global_ns() - begin;
  if (wrong != 0) atomicAdd(&out->sum, Word(wrong));
  if (lost) atomicAdd(&out->lost, 1ull);
  if (seat.me == 0 && threadIdx.x == 0) out->ns = ns;
  // The other block may still write to this block's shared memory.
  meet_cluster();
#endif
}

template <Through through>
void cluster_hop(Bench& bench) {
  CardArray<Mail> mail(1);
  const int rounds = bench.count(1000);
  for (const unsigned lanes : {32u, 256u}) {
    const std::string name =
        "hop of " + bytes_text(lanes * 16) + " between two blocks of a cluster, " + words_of(through);
    bool launched = true;
    Word wrong = 0;
    const Samples hop_ns = bench.per_one(2 * rounds, [&](Times* out) {
      mail.fill(0xa5);
      launched =
          launched && launch_cluster(cluster_ping_pong<through>, 2, lanes, mail.data(), rounds / 10 + 1, rounds, out);
    });
    wrong = bench.last.sum;
    if (!launched) return;
    figure(name, hop_ns, "ns", bench.last.lost != 0 ? "a message did not come" : "");
    check("right: " + name, 2ll * rounds * lanes, (long long)wrong, "of the last sample");
  }
}

}  // namespace

void block_barriers(const Options& options) {
  Bench bench(options);
  meeting_costs<Meeting::threads>(bench, "__syncthreads", {32, 128, 256, 512, 1024});
  meeting_costs<Meeting::threads_or>(bench, "__syncthreads_or", {32, 256, 1024});
  meeting_costs<Meeting::part>(bench, "bar.sync of half of the lanes", {64, 256, 1024});
  meeting_costs<Meeting::warp>(bench, "store to shared memory and __syncwarp", {32, 256});
  meeting_costs<Meeting::shuffle>(bench, "__shfl_xor_sync that waits for the one before", {32, 256, 1024});
  meeting_costs<Meeting::vote>(bench, "__any_sync that waits for the one before", {32, 256});
  if (is_hopper_or_later())
    meeting_costs<Meeting::barrier>(bench, "mbarrier, arrival and wait of all lanes", {32, 128, 256, 1024});
}

void cluster_hops(const Options& options) {
  if (!is_hopper_or_later()) return answer("clusters", "no", "needs compute capability 9.0");
  Bench bench(options);
  const int times = bench.count(4096);
  for (const unsigned blocks : {2u, 4u, 8u})
    for (const unsigned lanes : {32u, 256u}) {
      bool launched = true;
      const Samples ns = bench.per_one(times, [&](Times* out) {
        launched = launched && launch_cluster(cluster_meetings, blocks, lanes, times, out);
      });
      if (launched)
        figure("barrier of a cluster of " + std::to_string(blocks) + " blocks of " + std::to_string(lanes) + " lanes",
               ns, "ns", "arrive.release and wait.acquire");
    }
  cluster_hop<Through::remote_arrival>(bench);
  cluster_hop<Through::remote_flag>(bench);
  cluster_hop<Through::async_store>(bench);
  cluster_hop<Through::global_cluster>(bench);
  cluster_hop<Through::global_gpu>(bench);
}

}  // namespace tranship::device
