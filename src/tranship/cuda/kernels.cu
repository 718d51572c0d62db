// The kernels of the back-end as a card runs them: kernels.hpp, each in one line. For sm_90, ptxas of CUDA 13.0 reports
// no spills.
#include <tranship/cuda/card_memory.hpp>
#include <tranship/cuda/kernels.hpp>
#include <tranship/lanes/cuda_lane.hpp>

namespace tranship::cuda {
namespace {
using packing::lane_vectors_max, packing::lean_vectors, packing::pack_lanes;
}

extern "C" {

__global__ void __launch_bounds__(pack_lanes, 5) tranship_move_lean(const __grid_constant__ MoveArgs args) {
  move_body<lean_vectors>(CudaLane(), CardMemory<>(), args);
}
__global__ void __launch_bounds__(pack_lanes, 4) tranship_move_deep(const __grid_constant__ MoveArgs args) {
  move_body<lane_vectors_max>(CudaLane(), CardMemory<>(), args);
}
__global__ void __launch_bounds__(pack_lanes, 4) tranship_move_tiled(const __grid_constant__ MoveArgs args) {
  __shared__ alignas(16) unsigned char room[packing::room_bytes];
  move_tiled_body(CudaLane(), CardMemory<>(), args, room);
}
__global__ void __launch_bounds__(pack_lanes, 4) tranship_fill(const __grid_constant__ FillArgs args) {
  fill_body(CudaLane(), CardMemory<>(), args);
}
#define TRANSHIP_MAP_KERNEL(name)                                                                              \
  __global__ void __launch_bounds__(pack_lanes, 4) tranship_map_##name(const __grid_constant__ MapArgs args) { \
    map_body<numbers::name>(CudaLane(), CardMemory<>(), args);                                                 \
  }
TRANSHIP_CARD_NUMBERS(TRANSHIP_MAP_KERNEL)
#undef TRANSHIP_MAP_KERNEL

}  // extern "C"

}  // namespace tranship::cuda
