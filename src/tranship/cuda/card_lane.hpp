// Private: CardLane, a lane of a kernel on a card with what kernels do to memory and in their warps. A software card's
// lane (software/lane.hpp) has the same and checks it.
#pragma once

#if defined(__CUDACC__)

#include <tranship/lanes/cuda_lane.hpp>

namespace tranship::cuda {

class CardLane : public CudaLane {
 public:
  __device__ CardLane() {}

  /// Shared memory of the block, one object for each T that the kernel asks for.
  template <class T>
  __device__ T& shared() const {
    __shared__ alignas(T) unsigned char room[sizeof(T)];
    return *reinterpret_cast<T*>(room);
  }
  __device__ void* dynamic_shared() const {
    extern __shared__ uint4 dynamic_room[];
    return dynamic_room;
  }

  template <class V>
  __device__ V load(const void* from) const {
    return *static_cast<const V*>(from);
  }
  template <class V>
  __device__ void store(void* to, const V& value) const {
    *static_cast<V*>(to) = value;
  }
  /// Returns what was there before.
  template <class T>
  __device__ T atomic_add(T* to, T value) const {
    return atomicAdd(to, value);
  }
  /// A word that other lanes, cards or the host write meanwhile.
  template <class T>
  __device__ T load_word(const T* from) const {
    const T value = *static_cast<const volatile T*>(from);
    __threadfence_system();
    return value;
  }
  template <class T>
  __device__ void store_word(T* to, T value) const {
    __threadfence_system();
    *static_cast<volatile T*>(to) = value;
  }

  /// The value of lane `source` of the warp.
  template <class T>
  __device__ T shuffle(T value, int source) const {
    return __shfl_sync(mask(), value, source);
  }
  /// Bit i is that of lane i of the warp.
  __device__ unsigned ballot(bool mine) const { return __ballot_sync(mask(), mine); }
  /// Between two looks for what others will write.
  __device__ void pause() const { __nanosleep(100); }

 private:
  __device__ unsigned mask() const {
    const int count = warp().lanes();
    return count == 32 ? ~0u : (1u << count) - 1;
  }
};

}  // namespace tranship::cuda

#endif
