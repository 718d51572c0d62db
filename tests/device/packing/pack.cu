// Launches kernels/move_pieces.hpp on a card, with loads and stores that are instructions of global memory. For sm_90,
// ptxas of
// CUDA 13.0 reports no spills, and registers for 5 blocks on a multiprocessor if the list is lean, or else for 4.
#include <tranship/cuda/card_memory.hpp>
#include <tranship/kernels/move_pieces.hpp>
#include <tranship/lanes/cuda_lane.hpp>

#include "packing/pack.hpp"

namespace tranship::device {
namespace {

template <PackGrid::Hints hints>
using Memory = cuda::CardMemory<hints == PackGrid::Hints::streaming>;

template <PackGrid::Hints hints, unsigned vectors_max>
__global__ void __launch_bounds__(pack_lanes, vectors_max > lean_vectors ? 4 : 5)
    pack_kernel(const __grid_constant__ PieceListView list, const __grid_constant__ Bases bases, Order order) {
  move_pieces<false, vectors_max>(CudaLane(), Memory<hints>(), list, bases, order, nullptr);
}
__global__ void __launch_bounds__(pack_lanes, 4)
    pack_tiled_kernel(const __grid_constant__ PieceListView list, const __grid_constant__ Bases bases, Order order) {
  __shared__ alignas(16) unsigned char room[room_bytes];
  move_pieces<true, lane_vectors_max>(CudaLane(), Memory<PackGrid::Hints::plain>(), list, bases, order, room);
}

using PackKernel = void (*)(PieceListView, Bases, Order);
constexpr PackKernel lean_kernel = pack_kernel<PackGrid::Hints::plain, lean_vectors>;
constexpr PackKernel deep_kernel = pack_kernel<PackGrid::Hints::plain, lane_vectors_max>;
constexpr PackKernel streaming_kernel = pack_kernel<PackGrid::Hints::streaming, lean_vectors>;

int resident_blocks(PackKernel kernel) {
  int blocks = 0;
  TRANSHIP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, pack_lanes, 0));
  return blocks;
}

PackKernel kernel_of(const UploadedList& list, const PackGrid& grid) {
  if (list.has_transposed()) return pack_tiled_kernel;
  if (list.view().lane_vectors > lean_vectors) return deep_kernel;
  return grid.hints == PackGrid::Hints::streaming ? streaming_kernel : lean_kernel;
}

std::string resources_of(PackKernel kernel) {
  cudaFuncAttributes attributes;
  TRANSHIP_CUDA(cudaFuncGetAttributes(&attributes, kernel));
  return "registers " + std::to_string(attributes.numRegs) + ", local memory " +
         std::to_string(attributes.localSizeBytes) + " bytes, shared memory " +
         std::to_string(attributes.sharedSizeBytes) + " bytes, blocks an SM " + std::to_string(resident_blocks(kernel));
}

}  // namespace

unsigned pack_groups_min() {
  int device = 0, multiprocessors = 0;
  TRANSHIP_CUDA(cudaGetDevice(&device));
  TRANSHIP_CUDA(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device));
  return static_cast<unsigned>(multiprocessors);
}

unsigned pack_blocks(const UploadedList& list) {
  return pack_groups_min() * static_cast<unsigned>(std::max(1, resident_blocks(kernel_of(list, {}))));
}

void UploadedList::upload(const PieceList& list) {
  // The arrays are in the order of their alignments.
  const std::size_t pieces = list.pieces().size() * sizeof(Piece);
  const std::size_t starts = list.starts().size() * sizeof(GroupStart);
  const std::size_t units = list.first_units().size() * sizeof(unsigned);
  staging_.resize(pieces + starts + units);
  std::copy_n(reinterpret_cast<const unsigned char*>(list.pieces().data()), pieces, staging_.data());
  std::copy_n(reinterpret_cast<const unsigned char*>(list.starts().data()), starts, staging_.data() + pieces);
  std::copy_n(reinterpret_cast<const unsigned char*>(list.first_units().data()), units,
              staging_.data() + pieces + starts);
  if (capacity_bytes_ < staging_.size()) {
    TRANSHIP_CUDA(cudaFree(memory_));
    memory_ = nullptr;
    capacity_bytes_ = 2 * staging_.size();
    TRANSHIP_CUDA(cudaMalloc(&memory_, capacity_bytes_));
  }
  TRANSHIP_CUDA(cudaMemcpy(memory_, staging_.data(), staging_.size(), cudaMemcpyHostToDevice));
  // A copy from pageable memory may return before its last bytes have arrived, and other streams do not wait for it.
  TRANSHIP_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  view_ = list.view();
  view_.pieces = reinterpret_cast<const Piece*>(memory_);
  if (view_.starts) view_.starts = reinterpret_cast<const GroupStart*>(memory_ + pieces);
  view_.first_units = reinterpret_cast<const unsigned*>(memory_ + pieces + starts);
  has_transposed_ = list.has_transposed();
  alignments_ = list.alignments();
}

void UploadedList::require(const Bases& bases) const {
  if (bases.many) return;
  if (alignments_.size() > Bases::few_max) throw std::invalid_argument("a list has too many bases for arguments");
  for (std::size_t i = 0; i < alignments_.size(); ++i)
    if (reinterpret_cast<std::uintptr_t>(bases.few[i]) % static_cast<std::uintptr_t>(alignments_[i]) != 0)
      throw std::invalid_argument("base " + std::to_string(i) + " is not a multiple of " +
                                  std::to_string(alignments_[i]));
}

void pack(const UploadedList& list, const Bases& bases, cudaStream_t stream, const PackGrid& grid) {
  list.require(bases);
  const unsigned blocks = std::max(1u, std::min(list.view().groups, grid.blocks_max));
  kernel_of(list, grid)<<<blocks, pack_lanes, 0, stream>>>(list.view(), bases, grid.order);
  TRANSHIP_CUDA(cudaGetLastError());
}

std::string pack_resources() {
  return "lean: " + resources_of(lean_kernel) + "; deep: " + resources_of(deep_kernel) +
         "; with tiles: " + resources_of(pack_tiled_kernel);
}

}  // namespace tranship::device
