// These kernels lose their context, or nearly do. They are apart from the others because assertions and printf have the
// driver do more at each synchronization. See kernels.hpp.
#undef NDEBUG
#include <cassert>

#include "facts/semantics/kernels.hpp"
#include "facts/words.hpp"

namespace tranship::device {

__global__ void store_at(Word* at, Word value) {
  store_weak(at, value);
}
__global__ void load_from(const Word* at, Word* to) {
  *to = load_weak(at);
}
__global__ void store_misaligned(Word* at, unsigned offset_bytes) {
  store_weak(reinterpret_cast<Word*>(reinterpret_cast<char*>(at) + offset_bytes), 1);
}
__global__ void store_beyond_shared(unsigned offset_bytes, Word* out) {
  __shared__ Word few[32];
  volatile char* const bytes = reinterpret_cast<volatile char*>(few);
  bytes[offset_bytes] = 1;
  *out = few[threadIdx.x % 32];
}
__global__ void trap() {
  __trap();
}
__global__ void fail_assertion(int value) {
  assert(value == 1);
}
__global__ void divide(int dividend, int divisor, int* out) {
  out[0] = dividend / divisor;
  out[1] = dividend % divisor;
}
__device__ __noinline__ Word dive(Word depth, Word seed) {
  volatile Word room[32];
  room[depth % 32] = seed;
  if (depth == 0) return room[seed % 32];
  const Word below = dive(depth - 1, scrambled(seed));
  return below + room[depth % 32];
}
__global__ void recurse(Word depth, Word* out) {
  *out = dive(depth, depth);
}
__global__ void print_lines(unsigned lines) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
    printf("line %u of a kernel\n", i);
}

}  // namespace tranship::device
