// Instantiates templates of the headers for kernels: NVRTC does not check a template before something uses it
// (nvrtc_headers.cpp).
#include <tranship/lanes/collectives.hpp>
#include <tranship/lanes/cuda_lane.hpp>

namespace tranship::device {

__global__ void put_array(HeapView heap, StridedSpan<double> target, StridedSpan<const double> source, int peer) {
  heap.put(CudaLane().warp(), target, source, peer);
}

struct Sum {
  TRANSHIP_SHARED float operator()(float a, float b) const { return a + b; }
};

__global__ void combine(HeapView heap, TeamView team, Span<float> target, Span<const float> source) {
  const auto block = CudaLane().block();
  const MulticastSpan<float> all = heap.multicast_array(block, target, team.first, team.stride, team.count);
  all.store(0, source, block.lane(), block.lanes());
  barrier(block, heap, team);
  all.load_reduce(target, 0, Sum{}, block.lane(), block.lanes());
  reduce(block, heap, team, target, source, Reduction::sum);
}

}  // namespace tranship::device
