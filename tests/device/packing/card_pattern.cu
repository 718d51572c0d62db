// Holds the kernels of the checks and of the time measurement; none of them is the packing kernel.
#include "packing/card_pattern.hpp"

namespace tranship::device {
namespace {

/// This is the mixing step of SplitMix64 (base/random.hpp), as device code.
__device__ unsigned long long pattern_word(unsigned long long position) {
  unsigned long long x = (position / 8 + 1) * 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}
__device__ unsigned char pattern_byte(unsigned long long position) {
  return static_cast<unsigned char>(pattern_word(position) >> (8 * (position % 8)));
}
__device__ long long first_index() {
  return static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ long long index_step() {
  return static_cast<long long>(gridDim.x) * blockDim.x;
}

__global__ void fill_kernel(unsigned char* data, long long bytes) {
  for (long long word = first_index(); word * 8 < bytes; word += index_step()) {
    const unsigned long long value = pattern_word(static_cast<unsigned long long>(word) * 8);
    if (word * 8 + 8 <= bytes)
      reinterpret_cast<unsigned long long*>(data)[word] = value;
    else
      for (long long i = word * 8; i < bytes; ++i) data[i] = pattern_byte(static_cast<unsigned long long>(i));
  }
}

__global__ void wrong_cells_kernel(const __grid_constant__ CopyBlock block, int width, long long source_position,
                                   const unsigned char* target, unsigned long long* wrong) {
  const long long count = element_count(block);
  unsigned long long mine = 0;
  for (long long i = first_index(); i < count; i += index_step()) {
    long long from = source_position, to = 0, rest = i;
    for (int d = block.dims - 1; d >= 0; --d) {
      const long long next = rest / block.extents[d], at = rest - next * block.extents[d];
      from += at * block.source_strides[d];
      to += at * block.target_strides[d];
      rest = next;
    }
    bool is_wrong = false;
    for (int byte = 0; byte < width; ++byte)
      is_wrong |= target[to + byte] != pattern_byte(static_cast<unsigned long long>(from + byte));
    mine += is_wrong;
  }
  if (mine) atomicAdd(wrong, mine);
}

__global__ void wrong_bytes_kernel(const unsigned char* data, long long bytes, unsigned char value,
                                   unsigned long long* wrong) {
  unsigned long long mine = 0;
  for (long long i = first_index(); i < bytes; i += index_step()) mine += data[i] != value;
  if (mine) atomicAdd(wrong, mine);
}

__global__ void read_kernel(const uint4* data, long long count, unsigned* never) {
  unsigned sum = 0;
  for (long long i = first_index(); i < count; i += index_step()) {
    const uint4 value = data[i];
    sum += value.x ^ value.y ^ value.z ^ value.w;
  }
  // The store never happens, but the compiler does not know that.
  if (sum == 1 && never) *never = sum;
}

__global__ void delay_kernel(unsigned long long nanoseconds) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

__global__ void empty_kernel() {}

constexpr int grid = 2048, lanes = 256;

template <class F>
long long counted(cudaStream_t stream, const F& launch) {
  CardArray<unsigned long long> wrong(1);
  TRANSHIP_CUDA(cudaMemsetAsync(wrong.data(), 0, sizeof(unsigned long long), stream));
  launch(wrong.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  return static_cast<long long>(wrong.read()[0]);
}

}  // namespace

void fill_pattern(unsigned char* data, long long bytes, cudaStream_t stream) {
  fill_kernel<<<grid, lanes, 0, stream>>>(data, bytes);
  TRANSHIP_CUDA(cudaGetLastError());
}

long long wrong_cells(const CopyBlock& block, int width, long long source_position, const unsigned char* target,
                      cudaStream_t stream) {
  return counted(stream, [&](unsigned long long* wrong) {
    wrong_cells_kernel<<<grid, lanes, 0, stream>>>(block, width, source_position, target, wrong);
  });
}

long long wrong_bytes(const unsigned char* data, long long bytes, unsigned char value, cudaStream_t stream) {
  return counted(stream, [&](unsigned long long* wrong) {
    wrong_bytes_kernel<<<grid, lanes, 0, stream>>>(data, bytes, value, wrong);
  });
}

void read_all(const unsigned char* data, long long bytes, cudaStream_t stream) {
  read_kernel<<<grid, lanes, 0, stream>>>(reinterpret_cast<const uint4*>(data), bytes / 16, nullptr);
  TRANSHIP_CUDA(cudaGetLastError());
}

void delay(unsigned microseconds, cudaStream_t stream) {
  delay_kernel<<<1, 1, 0, stream>>>(1000ull * std::min(microseconds, 2000000u));
  TRANSHIP_CUDA(cudaGetLastError());
}

void empty_launch(cudaStream_t stream) {
  empty_kernel<<<1, 32, 0, stream>>>();
  TRANSHIP_CUDA(cudaGetLastError());
}

}  // namespace tranship::device
