// Kernels whose instructions golden.py looks at. Each does one thing with the headers' own operations.
#include <tranship/lanes/collectives.hpp>
#include <tranship/lanes/cuda_lane.hpp>

namespace tranship::device {

/// A HeapView as ranks have it whose heaps lie at equal distances, on one card or on several.
template <bool is_on_one_device>
__device__ HeapView reached(HeapView heap) {
  heap.heaps.is_complete = true;
  heap.heaps.is_on_one_device = is_on_one_device;
  return heap;
}

extern "C" {

__global__ void golden_put(HeapView heap, Span<unsigned char> target, Span<const unsigned char> source, int peer) {
  reached<true>(heap).put(CudaLane().block(), target, source, peer);
}
__global__ void golden_get_by_warp(HeapView heap, Span<double> target, Span<const double> source, int peer) {
  reached<true>(heap).get(CudaLane().warp(), target, source, peer);
}

__global__ void golden_signal_on_card(HeapView heap, Span<int> target, Span<const int> source, long long* signal,
                                      int peer) {
  reached<true>(heap).put_signal(CudaLane().block(), target, source, signal, 1, SignalOp::set, peer);
}
__global__ void golden_signal_between_cards(HeapView heap, Span<int> target, Span<const int> source, long long* signal,
                                            int peer) {
  reached<false>(heap).put_signal(CudaLane().block(), target, source, signal, 1, SignalOp::set, peer);
}
__global__ void golden_wait_on_card(HeapView heap, long long* signal) {
  reached<true>(heap).signal_wait(CudaLane().block(), signal, Comparison::greater_equal, 1);
}
__global__ void golden_wait_between_cards(HeapView heap, long long* signal) {
  reached<false>(heap).signal_wait(CudaLane().block(), signal, Comparison::greater_equal, 1);
}
__global__ void golden_fence_on_card(HeapView heap) {
  reached<true>(heap).fence(CudaLane().block());
}
__global__ void golden_quiet_on_card(HeapView heap) {
  reached<true>(heap).quiet(CudaLane().block());
}
__global__ void golden_quiet_between_cards(HeapView heap) {
  reached<false>(heap).quiet(CudaLane().block());
}

__global__ void golden_barrier(HeapView heap, TeamView team) {
  barrier(CudaLane().block(), reached<true>(heap), team);
}
__global__ void __launch_bounds__(256)
    golden_sum(HeapView heap, TeamView team, Span<float> target, Span<const float> source) {
  reduce(CudaLane().block(), reached<true>(heap), team, target, source, Reduction::sum);
}
__global__ void __launch_bounds__(256)
    golden_scattered_sum(HeapView heap, TeamView team, Span<double> target, Span<const double> source) {
  reducescatter(CudaLane().block(), reached<true>(heap), team, target, source, Reduction::sum);
}
__global__ void __launch_bounds__(256)
    golden_gather(HeapView heap, TeamView team, Span<float> target, Span<const float> source) {
  fcollect(CudaLane().block(), reached<true>(heap), team, target, source);
}
__global__ void golden_put_array(HeapView heap, StridedSpan<double> target, StridedSpan<const double> source,
                                 int peer) {
  reached<true>(heap).put(CudaLane().block(), target, source, peer);
}

#if defined(TRANSHIP_GOLDEN_BROKEN)
/// Moves words byte by byte, through local memory, between fences of all kinds.
__global__ void golden_broken(HeapView heap, Span<unsigned char> target, Span<const unsigned char> source, int at) {
  unsigned char bytes[64];
  for (int i = 0; i < 64; ++i) bytes[i] = source[i];
  __threadfence_system();
  for (int i = 0; i < 64; ++i) target[i] = bytes[(i * at) & 63];
}
#endif

}  // extern "C"
}  // namespace tranship::device
