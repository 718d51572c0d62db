// This device code sums over ranks, which are blocks of one launch, in five ways. Every rank has two sources, two
// targets and two sets of packets, which alternate by the parity of the call's number: a rank that begins call n + 2
// has heard in call n + 1 from all others, which have then finished call n. Read next: reductions.cu.
#pragma once

#include "facts/packets/packets.hpp"

namespace tranship::device {

constexpr int ranks_max = 8, parts_max = 16;
constexpr unsigned reduced_floats_max = 1 << 18;

enum class Way { packets, packets_in_two, loads, two_pulling, two_pushing };
constexpr Way ways[] = {Way::packets, Way::packets_in_two, Way::loads, Way::two_pulling, Way::two_pushing};

inline const char* words_of(Way way) {
  switch (way) {
    case Way::packets:
      return "LL16 packets to all";
    case Way::packets_in_two:
      return "LL16 packets, reduce-scatter and all-gather";
    case Way::loads:
      return "a signal, then loads of all";
    case Way::two_pulling:
      return "signals, reduce-scatter by loads, all-gather by loads";
    case Way::two_pushing:
      return "signals, reduce-scatter by loads, all-gather by stores";
  }
  return "";
}

/// Holds the memory of all ranks. Block `rank * parts + part` is part `part` of a rank.
struct Field {
  float* sources;   ///< [rank][parity]
  float* targets;   ///< [rank][parity]
  Vector* packets;  ///< [rank][parity][from]
  Vector* results;  ///< [rank][parity][from], a half as long each
  Word* signals;    ///< [rank][phase][part][from]; words of one part share a line
  Word* calls;      ///< [block]: the number of calls so far
  Word* elapsed_ns;
  Word* lost;
  unsigned count;  ///< number of floats, even
  unsigned parts;
  unsigned warm_rounds, rounds;

  __device__ float* source(unsigned rank, unsigned parity) const {
    return sources + std::size_t(rank * 2 + parity) * reduced_floats_max;
  }
  __device__ float* target(unsigned rank, unsigned parity) const {
    return targets + std::size_t(rank * 2 + parity) * reduced_floats_max;
  }
  __device__ Vector* packets_of(unsigned rank, unsigned parity, unsigned from) const {
    return packets + std::size_t((rank * 2 + parity) * ranks_max + from) * (reduced_floats_max / 2);
  }
  __device__ Vector* results_of(unsigned rank, unsigned parity, unsigned from) const {
    return results + std::size_t((rank * 2 + parity) * ranks_max + from) * (reduced_floats_max / 4);
  }
  __device__ Word* signal(unsigned rank, unsigned phase, unsigned part, unsigned from) const {
    return signals + ((rank * 2 + phase) * parts_max + part) * 16 + from;
  }
};

/// Describes the work of a block.
struct Share {
  unsigned rank, part, parity, flag;
};

__device__ inline float2 sum_of(float2 a, float2 b) {
  return {a.x + b.x, a.y + b.y};
}
__device__ inline float4 sum_of(float4 a, float4 b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w};
}
__device__ inline Vector packets_for(float2 v, unsigned flag) {
  return {packet(__float_as_uint(v.x), flag), packet(__float_as_uint(v.y), flag)};
}
__device__ inline float2 floats_of(const Vector& v) {
  return {__uint_as_float(unsigned(v.x)), __uint_as_float(unsigned(v.y))};
}
__device__ inline bool has_flag(const Vector& v, unsigned flag) {
  return flag_of(v.x) == flag && flag_of(v.y) == flag;
}

/// Returns the first of `count` things that belongs to a part.
__device__ inline unsigned begin_of(unsigned count, unsigned part, unsigned parts) {
  return unsigned(Word(count) * part / parts);
}

/// Waits for packet i of all other ranks; `place(q)` points to the packets of rank q.
template <unsigned ranks, class Place>
__device__ inline void take_all(Vector (&held)[ranks], const Share& share, bool& lost, const Place& place) {
  await_ready(lost, [&] {
    bool ready = true;
#pragma unroll
    for (unsigned q = 0; q < ranks; ++q)
      if (q != share.rank) held[q] = load16<Access::relaxed_gpu_b128>(place(q));
#pragma unroll
    for (unsigned q = 0; q < ranks; ++q)
      if (q != share.rank) ready = ready && has_flag(held[q], share.flag);
    return ready;
  });
}
/// Sums in the order of ranks, where `own` is this rank's value.
template <unsigned ranks>
__device__ inline float2 sum_in_order(const Vector (&held)[ranks], float2 own, unsigned rank) {
  float2 sum = rank == 0 ? own : floats_of(held[0]);
#pragma unroll
  for (unsigned q = 1; q < ranks; ++q) sum = sum_of(sum, q == rank ? own : floats_of(held[q]));
  return sum;
}

template <unsigned ranks>
__device__ inline void reduce_by_packets(const Field& f, const Share& s, bool& lost) {
  const unsigned units = f.count / 2;
  const unsigned first = begin_of(units, s.part, f.parts) + threadIdx.x, last = begin_of(units, s.part + 1, f.parts);
  const float2* const source = reinterpret_cast<const float2*>(f.source(s.rank, s.parity));
  float2* const target = reinterpret_cast<float2*>(f.target(s.rank, s.parity));
  for (unsigned i = first; i < last; i += blockDim.x) {
    const Vector v = packets_for(source[i], s.flag);
#pragma unroll
    for (unsigned p = 1; p < ranks; ++p)
      store16<Access::relaxed_gpu_b128>(f.packets_of((s.rank + p) % ranks, s.parity, s.rank) + i, v);
  }
  for (unsigned i = first; i < last; i += blockDim.x) {
    Vector held[ranks] = {};
    take_all<ranks>(held, s, lost, [&](unsigned q) { return f.packets_of(s.rank, s.parity, q) + i; });
    target[i] = sum_in_order<ranks>(held, source[i], s.rank);
  }
}

/// Each rank sums its share of the elements and sends the sums to all. The same lane handles a unit in all three loops,
/// so packets of the call before last are never overwritten unread.
template <unsigned ranks>
__device__ inline void reduce_by_packets_in_two(const Field& f, const Share& s, bool& lost) {
  const unsigned units = f.count / 2 / ranks;
  const unsigned first = begin_of(units, s.part, f.parts) + threadIdx.x, last = begin_of(units, s.part + 1, f.parts);
  const float2* const source = reinterpret_cast<const float2*>(f.source(s.rank, s.parity));
  float2* const target = reinterpret_cast<float2*>(f.target(s.rank, s.parity));
  for (unsigned i = first; i < last; i += blockDim.x) {
    float2 values[ranks];
#pragma unroll
    for (unsigned p = 1; p < ranks; ++p) values[p] = source[(s.rank + p) % ranks * units + i];
#pragma unroll
    for (unsigned p = 1; p < ranks; ++p)
      store16<Access::relaxed_gpu_b128>(f.packets_of((s.rank + p) % ranks, s.parity, s.rank) + i,
                                        packets_for(values[p], s.flag));
  }
  for (unsigned i = first; i < last; i += blockDim.x) {
    Vector held[ranks] = {};
    take_all<ranks>(held, s, lost, [&](unsigned q) { return f.packets_of(s.rank, s.parity, q) + i; });
    const float2 sum = sum_in_order<ranks>(held, source[s.rank * units + i], s.rank);
    target[s.rank * units + i] = sum;
#pragma unroll
    for (unsigned p = 1; p < ranks; ++p)
      store16<Access::relaxed_gpu_b128>(f.results_of((s.rank + p) % ranks, s.parity, s.rank) + i,
                                        packets_for(sum, s.flag));
  }
  for (unsigned i = first; i < last; i += blockDim.x) {
    Vector held[ranks] = {};
    take_all<ranks>(held, s, lost, [&](unsigned q) { return f.results_of(s.rank, s.parity, q) + i; });
#pragma unroll
    for (unsigned q = 0; q < ranks; ++q)
      if (q != s.rank) target[q * units + i] = floats_of(held[q]);
  }
}

/// Waits until this part of all ranks has come to this place; what they wrote before can then be read. All lanes call
/// it.
template <unsigned ranks>
__device__ inline void meet(const Field& f, const Share& s, unsigned phase, bool& lost) {
  __syncthreads();
  if (threadIdx.x < ranks && threadIdx.x != s.rank) {
    fence_gpu();
    store_relaxed_gpu(f.signal(threadIdx.x, phase, s.part, s.rank), s.flag);
    const Word* const mine = f.signal(s.rank, phase, s.part, threadIdx.x);
    await_ready(lost, [&] { return load_relaxed_gpu(mine) >= s.flag; });
    load_acquire_gpu(mine);
  }
  __syncthreads();
}

/// Sums vectors [first, last) of all ranks' sources; `put` takes each sum.
template <unsigned ranks, class V, class Put>
__device__ inline void sum_loaded(const Field& f, const Share& s, unsigned first, unsigned last, const Put& put) {
  for (unsigned i = first + threadIdx.x; i < last; i += blockDim.x) {
    V held[ranks];
#pragma unroll
    for (unsigned q = 0; q < ranks; ++q) held[q] = reinterpret_cast<const V*>(f.source(q, s.parity))[i];
    V sum = held[0];
#pragma unroll
    for (unsigned q = 1; q < ranks; ++q) sum = sum_of(sum, held[q]);
    put(i, sum);
  }
}

template <unsigned ranks>
__device__ inline void reduce_by_loads(const Field& f, const Share& s, bool& lost) {
  meet<ranks>(f, s, 0, lost);
  float* const target = f.target(s.rank, s.parity);
  const auto all = [&]<class V>(V*) {
    const unsigned count = f.count * 4 / unsigned(sizeof(V));
    sum_loaded<ranks, V>(f, s, begin_of(count, s.part, f.parts), begin_of(count, s.part + 1, f.parts),
                         [&](unsigned i, V sum) { reinterpret_cast<V*>(target)[i] = sum; });
  };
  if (f.count % 4 == 0)
    all(static_cast<float4*>(nullptr));
  else
    all(static_cast<float2*>(nullptr));
}

template <unsigned ranks, bool pushing>
__device__ inline void reduce_in_two(const Field& f, const Share& s, bool& lost) {
  meet<ranks>(f, s, 0, lost);
  const unsigned count = f.count / 4 / ranks;
  const unsigned first = begin_of(count, s.part, f.parts), last = begin_of(count, s.part + 1, f.parts);
  float4* const target = reinterpret_cast<float4*>(f.target(s.rank, s.parity));
  sum_loaded<ranks, float4>(f, s, s.rank * count + first, s.rank * count + last, [&](unsigned i, float4 sum) {
    target[i] = sum;
    if constexpr (pushing) {
#pragma unroll
      for (unsigned p = 1; p < ranks; ++p) reinterpret_cast<float4*>(f.target((s.rank + p) % ranks, s.parity))[i] = sum;
    }
  });
  meet<ranks>(f, s, 1, lost);
  if constexpr (!pushing)
    for (unsigned i = first + threadIdx.x; i < last; i += blockDim.x) {
      float4 held[ranks];
#pragma unroll
      for (unsigned q = 0; q < ranks; ++q)
        if (q != s.rank) held[q] = reinterpret_cast<const float4*>(f.target(q, s.parity))[q * count + i];
#pragma unroll
      for (unsigned q = 0; q < ranks; ++q)
        if (q != s.rank) target[q * count + i] = held[q];
    }
}

template <Way way, unsigned ranks>
__global__ void __launch_bounds__(512) reductions(Field f) {
  __shared__ unsigned before;
  if (threadIdx.x == 0) before = unsigned(f.calls[blockIdx.x]);
  __syncthreads();
  bool lost = false;
  Word begin = 0;
  Share share{blockIdx.x / f.parts, blockIdx.x % f.parts, 0, before};
  for (unsigned round = 1; round <= f.warm_rounds + f.rounds; ++round) {
    ++share.flag;
    share.parity = share.flag & 1;
    if constexpr (way == Way::packets) reduce_by_packets<ranks>(f, share, lost);
    if constexpr (way == Way::packets_in_two) reduce_by_packets_in_two<ranks>(f, share, lost);
    if constexpr (way == Way::loads) reduce_by_loads<ranks>(f, share, lost);
    if constexpr (way == Way::two_pulling) reduce_in_two<ranks, false>(f, share, lost);
    if constexpr (way == Way::two_pushing) reduce_in_two<ranks, true>(f, share, lost);
    if (round == f.warm_rounds) begin = global_ns();
  }
  if (lost) atomicAdd(f.lost, 1ull);
  if (threadIdx.x != 0) return;
  f.calls[blockIdx.x] = share.flag;
  if (blockIdx.x == 0) *f.elapsed_ns = global_ns() - begin;
}

}  // namespace tranship::device
