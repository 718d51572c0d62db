// CudaLane, the lanes of a CUDA kernel (lane.hpp). Lanes of a block with up to three dimensions are numbered as CUDA
// numbers them, x first. Only nvcc sees the declarations.
//
//   __global__ void launched(...) { kernel(CudaLane(), ...); }
#pragma once

#if defined(__CUDACC__)

#include <tranship/kernels/word.hpp>
#include <tranship/lanes/lane.hpp>
#include <tranship/lanes/wait_guard.hpp>

namespace tranship {

template <Scope scope>
class CudaGroup {
 public:
  __device__ CudaGroup(int lane, int lanes) : lane_(lane), lanes_(lanes) {}

  static constexpr bool runs_side_by_side = true;

  __device__ int lane() const { return lane_; }
  __device__ int lanes() const { return lanes_; }
  __device__ void sync() const {
    if constexpr (scope == Scope::warp) __syncwarp(mask());
    if constexpr (scope == Scope::block) __syncthreads();
  }

  template <class Call>
  __device__ void enter(const Call&) const {
    sync();
  }
  template <class Call>
  __device__ void leave(const Call&) const {
    sync();
  }
  template <class Call, class T>
  __device__ T share(const Call&, T value) const {
    static_assert(sizeof(T) <= 8);
    if constexpr (scope == Scope::thread) return value;
    unsigned long long bits = 0;
    detail::copy_bytes(&bits, &value, sizeof value);
    if constexpr (scope == Scope::warp) {
      bits = __shfl_sync(mask(), bits, 0);
      __syncwarp(mask());  // A shuffle orders no memory.
    }
    if constexpr (scope == Scope::block) {
      // The slot is not written again before the next enter().
      __shared__ unsigned long long slot;
      if (lane_ == 0) slot = bits;
      __syncthreads();
      bits = slot;
    }
    detail::copy_bytes(&value, &bits, sizeof value);
    return value;
  }
  template <class Call, class T, class Ready>
  __device__ bool wait(const detail::WaitPlace& place, const Call& call, const T* word, Comparison comparison, T value,
                       const Ready& ready) const {
    constexpr unsigned looks_at_a_time = 64;
    unsigned long long begin_ns = 0;
    for (unsigned looks = 1; !ready(); ++looks) {
      if (looks % looks_at_a_time != 0) continue;
      const unsigned long long now_ns = detail::global_ns();
      if (begin_ns == 0) begin_ns = now_ns;
      if (detail::may_wait(place.guard, now_ns - begin_ns)) continue;
      const GroupCall made = call();
      if (detail::give_up(place, block_index(), comparison, T(-1) < T(1), extended(value),
                          extended(detail::load_word(word)), now_ns - begin_ns, made.name, made.where.file,
                          made.where.line))
        return false;
    }
    return true;
  }
  template <class Call>
  [[noreturn]] __device__ void refuse(const Call&, const char*) const {
    detail::trap();
  }

 private:
  __device__ static int block_index() { return int(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)); }
  /// Extends a value as the host does, to 64 bits with its sign.
  template <class T>
  __device__ static unsigned long long extended(T value) {
    return static_cast<unsigned long long>(static_cast<long long>(value));
  }
  /// Returns the lanes of this warp; the last warp of a block may have fewer.
  __device__ unsigned mask() const { return lanes_ == 32 ? ~0u : (1u << lanes_) - 1; }

  int lane_;
  int lanes_;
};

class CudaLane {
 public:
  __device__ CudaLane()
      : index_(int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z))),
        lanes_(int(blockDim.x * blockDim.y * blockDim.z)) {}

  __device__ int index() const { return index_; }
  __device__ int lanes() const { return lanes_; }
  __device__ int block_index() const { return int(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)); }
  __device__ int blocks() const { return int(gridDim.x * gridDim.y * gridDim.z); }

  __device__ CudaGroup<Scope::thread> thread() const { return {0, 1}; }
  __device__ CudaGroup<Scope::warp> warp() const {
    const int left = lanes_ - index_ / 32 * 32;
    return {index_ % 32, left < 32 ? left : 32};
  }
  __device__ CudaGroup<Scope::block> block() const { return {index_, lanes_}; }

 private:
  int index_;
  int lanes_;
};

}  // namespace tranship

#endif
