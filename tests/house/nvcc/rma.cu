// Every operation of lanes/rma.hpp at every scope, in a kernel.
#include <tranship/lanes/cuda_lane.hpp>
#include <tranship/lanes/rma.hpp>

namespace {

using namespace tranship;

struct Odd {
  float parts[3];
};

struct Arguments {
  HeapView heap;
  Span<short> target;
  Span<const short> source;
  double* real;
  float* single;
  unsigned long* signal;
  int* counter;
  long long* wide;
  Span<long long> places;
  Span<const int> skip;
  Odd* odd;
  int peer;
};

struct Sum {
  TRANSHIP_SHARED short operator()(short x, short y) const { return static_cast<short>(x + y); }
};

template <class Group>
TRANSHIP_SHARED void waits(const Group& group, const Arguments& a) {
  const Span<int> all(a.counter, 4);
  if (a.heap.signal_fetch(group, a.signal) > 1 || a.heap.test(group, a.counter, Comparison::equal, 1))
    a.heap.wait_until_all(group, all, Comparison::greater, 1, a.skip);
  a.places[0] =
      a.heap.wait_until_any(group, all, Comparison::less, 1) + a.heap.test_any(group, all, Comparison::less, 1);
  a.heap.wait_until_some(group, all, a.places, Comparison::equal, 1, a.skip);
  if (a.heap.test_all(group, all, Comparison::equal, 1)) a.heap.test_some(group, all, a.places, Comparison::equal, 1);
}

template <class Group>
TRANSHIP_SHARED void arrays(const Group& group, const Arguments& a) {
  const StridedSpan<double> there{.data = a.real, .dims = 2, .extents = {5, 3}, .strides = {8, 1}};
  const StridedSpan<double> here{.data = a.real + 40, .dims = 2, .extents = {5, 3}, .strides = {1, -5}};
  a.heap.put(group, there, here, a.peer);
  a.heap.put_nbi(group, there, here, a.peer);
  a.heap.get(group, here, there, a.peer);
  a.heap.get_nbi(group, here, there, a.peer);
  a.heap.put_signal(group, there, here, a.signal, 1, SignalOp::add, a.peer);
  a.heap.put_signal_nbi(group, there, here, a.signal, 1, SignalOp::add, a.peer);
  const StridedSpan<Odd> odd{.data = a.odd, .dims = 1, .extents = {7}, .strides = {2}};
  a.heap.put(group, odd, odd, a.peer);
}

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
  a.heap.fetch_nbi(group, at + 1, at, a.peer);
  a.heap.swap_nbi(group, at + 1, at, 1, a.peer);
  a.heap.compare_swap_nbi(group, at + 1, at, 1, 2, a.peer);
  a.heap.fetch_inc_nbi(group, at + 1, at, a.peer);
  a.heap.fetch_add_nbi(group, at + 1, at, 1, a.peer);
  a.heap.fetch_bit_and_nbi(group, at + 1, at, 1, a.peer);
  a.heap.fetch_bit_or_nbi(group, at + 1, at, 1, a.peer);
  a.heap.fetch_bit_xor_nbi(group, at + 1, at, 1, a.peer);
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
  waits(lane.warp(), a);
  arrays(lane.block(), a);
  if (lane.index() + lane.lanes() * lane.block_index() == lane.blocks()) a.heap.inc(lane.thread(), a.counter, a.peer);
}

__global__ void launched(Arguments a) {
  at_every_scope(CudaLane(), a);
}

}  // namespace

void launch(const Arguments& a) {
  launched<<<2, 96>>>(a);
}
