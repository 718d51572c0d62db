// This program has a planted fault, which shows whether tools find what they must find: `clean`, `out_of_bounds`, or
// `race`.
#include <cstring>

#include "support/card.hpp"

namespace {

__global__ void shift(const int* source, int* target, int count, int by) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < count) target[i + by] = source[i];
}
__global__ void rotate(int* values, int step) {
  __shared__ int row[256];
  row[threadIdx.x] = values[threadIdx.x];
  if (step == 0) __syncthreads();
  values[threadIdx.x] = row[(threadIdx.x + 64) % 256];
}

}  // namespace

int main(int count, char** words) {
  using namespace tranship::device;
  const char* kind = count > 1 ? words[1] : "clean";
  CardArray<int> source(std::vector<int>(1024, 7)), target(1024);
  shift<<<4, 256>>>(source.data(), target.data(), 1024, std::strcmp(kind, "out_of_bounds") == 0 ? 1 << 20 : 0);
  rotate<<<1, 256>>>(source.data(), std::strcmp(kind, "race") == 0 ? 1 : 0);
  const cudaError_t status = cudaDeviceSynchronize();
  answer("ended with", cudaGetErrorName(status));
}
