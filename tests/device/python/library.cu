// Offers one-sided operations to kernels that are not C++: plain functions over one HeapView, which numba_seed.py links
// into the kernels that Numba compiles. Addresses are numbers, so that a caller needs no pointer types; all lanes of
// the scope in a function's name call it together. The host copies the HeapView of its rank to `ts_heap` before a
// kernel runs.
#include <tranship/lanes/cuda_lane.hpp>
#include <tranship/lanes/rma.hpp>

__constant__ tranship::HeapView ts_heap;

// card.py knows their layouts.
static_assert(sizeof(tranship::HeapView) == 64 && sizeof(tranship::WaitGuard) == 32);
namespace tranship::device {

using Address = unsigned long long;
using Byte = unsigned char;

__device__ inline auto thread() {
  return CudaLane().thread();
}
__device__ inline auto warp() {
  return CudaLane().warp();
}
__device__ inline auto block() {
  return CudaLane().block();
}

__device__ inline Span<Byte> target_of(Address at, long long bytes) {
  return {reinterpret_cast<Byte*>(at), bytes};
}
__device__ inline Span<const Byte> source_of(Address at, long long bytes) {
  return {reinterpret_cast<const Byte*>(at), bytes};
}
template <class T>
__device__ inline T* pointer(Address at) {
  return reinterpret_cast<T*>(at);
}

}  // namespace tranship::device

using namespace tranship::device;
using tranship::Comparison;
using tranship::SignalOp;

extern "C" {

__device__ int ts_my_pe() {
  return ts_heap.rank;
}
__device__ int ts_n_pes() {
  return ts_heap.size;
}

#define TS_OF_SCOPE(scope)                                                                                         \
  __device__ void ts_put_##scope(Address target, Address source, long long bytes, int peer) {                      \
    ts_heap.put(scope(), target_of(target, bytes), source_of(source, bytes), peer);                                \
  }                                                                                                                \
  __device__ void ts_put_nbi_##scope(Address target, Address source, long long bytes, int peer) {                  \
    ts_heap.put_nbi(scope(), target_of(target, bytes), source_of(source, bytes), peer);                            \
  }                                                                                                                \
  __device__ void ts_get_##scope(Address target, Address source, long long bytes, int peer) {                      \
    ts_heap.get(scope(), target_of(target, bytes), source_of(source, bytes), peer);                                \
  }                                                                                                                \
  __device__ void ts_get_nbi_##scope(Address target, Address source, long long bytes, int peer) {                  \
    ts_heap.get_nbi(scope(), target_of(target, bytes), source_of(source, bytes), peer);                            \
  }                                                                                                                \
  __device__ void ts_put_signal_##scope(Address target, Address source, long long bytes, Address signal,           \
                                        unsigned long long value, int op, int peer) {                              \
    ts_heap.put_signal(scope(), target_of(target, bytes), source_of(source, bytes),                                \
                       pointer<unsigned long long>(signal), value, static_cast<SignalOp>(op), peer);               \
  }                                                                                                                \
  __device__ void ts_signal_##scope(Address signal, unsigned long long value, int op, int peer) {                  \
    ts_heap.signal(scope(), pointer<unsigned long long>(signal), value, static_cast<SignalOp>(op), peer);          \
  }                                                                                                                \
  __device__ unsigned long long ts_signal_wait_##scope(Address signal, int comparison, unsigned long long value) { \
    return ts_heap.signal_wait(scope(), pointer<unsigned long long>(signal), static_cast<Comparison>(comparison),  \
                               value);                                                                             \
  }                                                                                                                \
  __device__ void ts_fence_##scope() {                                                                             \
    ts_heap.fence(scope());                                                                                        \
  }                                                                                                                \
  __device__ void ts_quiet_##scope() {                                                                             \
    ts_heap.quiet(scope());                                                                                        \
  }
TS_OF_SCOPE(thread)
TS_OF_SCOPE(warp)
TS_OF_SCOPE(block)
#undef TS_OF_SCOPE

#define TS_OF_WIDTH(width, Word)                                                 \
  __device__ void ts_p_##width(Address target, Word value, int peer) {           \
    ts_heap.p(thread(), pointer<Word>(target), value, peer);                     \
  }                                                                              \
  __device__ Word ts_g_##width(Address source, int peer) {                       \
    return ts_heap.g(thread(), pointer<Word>(source), peer);                     \
  }                                                                              \
  __device__ Word ts_fetch_add_##width(Address variable, Word value, int peer) { \
    return ts_heap.fetch_add(thread(), pointer<Word>(variable), value, peer);    \
  }
TS_OF_WIDTH(4, unsigned)
TS_OF_WIDTH(8, unsigned long long)
#undef TS_OF_WIDTH

}  // extern "C"
