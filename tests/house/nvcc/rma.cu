// Every operation of lanes/rma.hpp at every scope, in a kernel.
#include <tranship/lanes/cuda_lane.hpp>
#include <tranship/lanes/rma.hpp>

namespace {

using namespace tranship;

struct Arguments {
  HeapView heap;
  Span<short> target;
  Span<const short> source;
  double* real;
  float* single;
  unsigned long* signal;
  int* counter;
  long long* wide;
  int peer;
};

struct Sum {
  TRANSHIP_SHARED short operator()(short x, short y) const { return static_cast<short>(x + y); }
};

template <class Group>
TRANSHIP_SHARED void transfers(const Group& group, const Arguments& a) {
  a.heap.put(group, a.target, a.source, a.peer);
  a.heap.put_nbi(group, a.target, a.source, a.peer);
  a.heap.get(group, a.target, a.source, a.peer);
  a.heap.get_nbi(group, a.target, a.source, a.peer);
  a.heap.quiet(group);
  a.heap.p(group, a.real, 1.5, a.peer);
  *a.single = a.heap.g(group, a.single, a.peer);
  a.heap.put_signal(group, a.target, a.source, a.signal, 1, SignalOp::set, a.peer);
  a.heap.put_signal_nbi(group, a.target, a.source, a.signal, 1, SignalOp::add, a.peer);
  a.heap.signal(group, a.signal, 1, SignalOp::add, a.peer);
  a.heap.signal_wait(group, a.signal, Comparison::greater_equal, 3);
  a.heap.wait_until(group, a.counter, Comparison::not_equal, 0);
  a.heap.fence(group);
  a.heap.peer_array(group, a.target, a.peer)[0] = 1;
  const auto all = a.heap.multicast_array(group, a.target, 0, 1, a.peer + 1);
  all.store(0, 1);
  all.store(0, a.source, group.lane(), group.lanes());
  all.load_reduce(a.target, 0, Sum{}, group.lane(), group.lanes());
  group.sync();
}

template <class Group, class T>
TRANSHIP_SHARED T atomics(const Group& group, const Arguments& a, T* at) {
  T sum = a.heap.fetch(group, at, a.peer) + a.heap.swap(group, at, 1, a.peer) +
          a.heap.compare_swap(group, at, 1, 2, a.peer) + a.heap.fetch_inc(group, at, a.peer) +
          a.heap.fetch_add(group, at, 1, a.peer) + a.heap.fetch_bit_and(group, at, 1, a.peer) +
          a.heap.fetch_bit_or(group, at, 1, a.peer) + a.heap.fetch_bit_xor(group, at, 1, a.peer);
  a.heap.set(group, at, sum, a.peer);
  a.heap.inc(group, at, a.peer);
  a.heap.add(group, at, 1, a.peer);
  a.heap.bit_and(group, at, 1, a.peer);
  a.heap.bit_or(group, at, 1, a.peer);
  a.heap.bit_xor(group, at, 1, a.peer);
  return sum;
}

template <class Group>
TRANSHIP_SHARED void everything(const Group& group, const Arguments& a) {
  transfers(group, a);
  atomics(group, a, a.counter);
  atomics(group, a, a.wide);
  a.heap.set(group, a.real, a.heap.swap(group, a.real, 2.5, a.peer), a.peer);
  a.heap.set(group, a.single, a.heap.fetch(group, a.single, a.peer), a.peer);
}

template <class Lane>
TRANSHIP_SHARED void at_every_scope(const Lane& lane, const Arguments& a) {
  everything(lane.thread(), a);
  everything(lane.warp(), a);
  everything(lane.block(), a);
  if (lane.index() + lane.lanes() * lane.block_index() == lane.blocks()) a.heap.inc(lane.thread(), a.counter, a.peer);
}

__global__ void launched(Arguments a) {
  at_every_scope(CudaLane(), a);
}

}  // namespace

void launch(const Arguments& a) {
  launched<<<2, 96>>>(a);
}
