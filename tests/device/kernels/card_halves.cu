// Runs the kernels of 16-bit floats. Each chunk of 2^16 results has a block, which sums it.
#include "kernels/card.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

template <Halves kind>
__global__ void sums_kernel(unsigned first, unsigned step, unsigned long long* sums) {
  const unsigned chunk = first + blockIdx.x * step;
  unsigned long long sum = 0;
  for (unsigned low = threadIdx.x; low < 65536; low += blockDim.x) sum += term_of(half_result(kind, chunk, low), low);
  atomicAdd(&sums[blockIdx.x], sum);
}
template <Halves kind>
__global__ void results_kernel(unsigned chunk, unsigned* results) {
  const unsigned low = blockIdx.x * blockDim.x + threadIdx.x;
  if (low < 65536) results[low] = half_result(kind, chunk, low);
}

/// Calls `f` with the kind as a constant.
template <class F>
void with_kind(Halves kind, const F& f) {
  if (kind == Halves::f16_to_float) f.template operator()<Halves::f16_to_float>();
  if (kind == Halves::bf16_to_float) f.template operator()<Halves::bf16_to_float>();
  if (kind == Halves::float_to_f16) f.template operator()<Halves::float_to_f16>();
  if (kind == Halves::float_to_bf16) f.template operator()<Halves::float_to_bf16>();
  if (kind == Halves::f16_sum) f.template operator()<Halves::f16_sum>();
  if (kind == Halves::f16_product) f.template operator()<Halves::f16_product>();
}
struct LaunchSums {
  unsigned first, step, count;
  unsigned long long* sums;
  template <Halves kind>
  void operator()() const {
    sums_kernel<kind><<<count, 256>>>(first, step, sums);
  }
};
struct LaunchResults {
  unsigned chunk;
  unsigned* results;
  template <Halves kind>
  void operator()() const {
    results_kernel<kind><<<256, 256>>>(chunk, results);
  }
};

}  // namespace

std::vector<unsigned long long> half_sums_on_card(Halves kind, unsigned first, unsigned step, unsigned count) {
  const CardArray<unsigned long long> sums(std::vector<unsigned long long>(count, 0));
  with_kind(kind, LaunchSums{first, step, count, sums.data()});
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  return sums.read();
}

std::vector<unsigned> half_results_on_card(Halves kind, unsigned chunk) {
  const CardArray<unsigned> results(65536);
  with_kind(kind, LaunchResults{chunk, results.data()});
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  return results.read();
}

}  // namespace tranship::device
