// Launches pack_body.hpp on a card, with loads and stores that are instructions of global memory. For sm_90, ptxas of
// CUDA 13.0 reports no spills, and registers for 5 blocks on a multiprocessor if the list is lean, or else for 4.
#include <tranship/lanes/cuda_lane.hpp>

#include "packing/pack.hpp"
#include "packing/pack_body.hpp"

namespace tranship::device {
namespace {

/// Addresses come from a table, so the compiler cannot know that they are global; the instructions say so.
template <PackGrid::Hints hints>
struct CardMemory {
  static constexpr bool is_streaming = hints == PackGrid::Hints::streaming;

  /// Wide vectors are read once and leave the first-level cache to narrow ones, which come back to their sectors. The
  /// loads are not .nc, because the assembler lets such loads follow stores, and the stores would wait for their values
  /// first.
  template <class V>
  __device__ V load(const unsigned char* from) const {
    const auto at = __cvta_generic_to_global(from);
    V value;
    if constexpr (sizeof(V) == 16 && is_streaming)
      asm volatile("ld.global.L1::no_allocate.L2::128B.v2.u64 {%0, %1}, [%2];"
                   : "=l"(value.low), "=l"(value.high)
                   : "l"(at));
    else if constexpr (sizeof(V) == 16)
      asm volatile("ld.global.L1::no_allocate.v2.u64 {%0, %1}, [%2];" : "=l"(value.low), "=l"(value.high) : "l"(at));
    else if constexpr (sizeof(V) == 8)
      asm volatile("ld.global.u64 %0, [%1];" : "=l"(value) : "l"(at));
    else if constexpr (sizeof(V) == 4)
      asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(at));
    else if constexpr (sizeof(V) == 2)
      asm volatile("ld.global.u16 %0, [%1];" : "=h"(value) : "l"(at));
    else {
      unsigned wide;
      asm volatile("ld.global.u8 %0, [%1];" : "=r"(wide) : "l"(at));
      value = static_cast<V>(wide);
    }
    return value;
  }
  template <class V>
  __device__ void store(unsigned char* to, const V& value) const {
    const auto at = __cvta_generic_to_global(to);
    if constexpr (sizeof(V) == 16 && is_streaming)
      asm volatile("st.global.cs.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(value.low), "l"(value.high) : "memory");
    else if constexpr (sizeof(V) == 16)
      asm volatile("st.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(value.low), "l"(value.high) : "memory");
    else if constexpr (sizeof(V) == 8)
      asm volatile("st.global.u64 [%0], %1;" ::"l"(at), "l"(value) : "memory");
    else if constexpr (sizeof(V) == 4)
      asm volatile("st.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
    else if constexpr (sizeof(V) == 2)
      asm volatile("st.global.u16 [%0], %1;" ::"l"(at), "h"(value) : "memory");
    else
      asm volatile("st.global.u8 [%0], %1;" ::"l"(at), "r"(unsigned(value)) : "memory");
  }
};

template <PackGrid::Hints hints, unsigned vectors_max>
__global__ void __launch_bounds__(pack_lanes, vectors_max > lean_vectors ? 4 : 5)
    pack_kernel(const __grid_constant__ PieceListView list, const __grid_constant__ Bases bases, Order order) {
  pack_body<false, vectors_max>(CudaLane(), CardMemory<hints>(), list, bases, order, nullptr);
}
__global__ void __launch_bounds__(pack_lanes, 4)
    pack_tiled_kernel(const __grid_constant__ PieceListView list, const __grid_constant__ Bases bases, Order order) {
  __shared__ alignas(16) unsigned char room[room_bytes];
  pack_body<true, lane_vectors_max>(CudaLane(), CardMemory<PackGrid::Hints::plain>(), list, bases, order, room);
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
