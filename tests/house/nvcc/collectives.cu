// Every operation of lanes/collectives.hpp at every scope, in a kernel.
#include <tranship/lanes/collectives.hpp>
#include <tranship/lanes/cuda_lane.hpp>

namespace {

using namespace tranship;

template <class T>
struct Arguments {
  HeapView heap;
  TeamView team;
  Span<T> target;
  Span<const T> source;
  Reduction op;
};

template <class Group, class T>
TRANSHIP_SHARED void everything(const Group& group, const Arguments<T>& a) {
  sync(group, a.heap, a.team);
  barrier(group, a.heap, a.team);
  broadcast(group, a.heap, a.team, a.target, a.source, 0);
  fcollect(group, a.heap, a.team, a.target, a.source);
  alltoall(group, a.heap, a.team, a.target, a.source);
  reduce(group, a.heap, a.team, a.target, a.source, a.op);
  reducescatter(group, a.heap, a.team, a.target, a.source, a.op);
}

template <class T>
__global__ void by_scopes(Arguments<T> a) {
  const CudaLane lane;
  everything(lane.block(), a);
  if (lane.index() < 32) everything(lane.warp(), a);
  if (lane.index() == 0) everything(lane.thread(), a);
}
template <class T>
__global__ void by_blocks(Arguments<T> a) {
  reduce(CudaLane().block(), a.heap, a.team, a.target, a.source, a.op);
}

}  // namespace

void launch(const Arguments<int>& i, const Arguments<signed char>& c, const Arguments<double>& d) {
  by_scopes<<<1, 96>>>(i);
  by_blocks<<<1, 96>>>(c);
  by_blocks<<<1, 96>>>(d);
}
