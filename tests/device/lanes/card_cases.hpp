// Defines the kernels of lists of cases. The header is private to the .cu files, each of which has one list: kernels
// are compiled file by file, and few at a time.
#pragma once

#include <vector>

#include <tranship/lanes/cuda_lane.hpp>

#include "lanes/arena.hpp"
#include "lanes/card.hpp"

namespace tranship::device {

template <class Case, Scope scope>
__global__ void case_kernel(RunArgs run) {
  const CudaLane lane;
  const int rank = run.first_rank + lane.block_index() / run.blocks;
  if (rank >= run.ranks || lane.blocks() % run.blocks != 0) return;
  const HeapView heap{{.own = run.heaps[rank],
                       .size_bytes = heap_bytes,
                       .direct = run.heaps,
                       .count = run.ranks,
                       .is_complete = true,
                       .is_on_one_device = run.is_on_one_device,
                       .spacing_bytes = run.spacing_bytes,
                       .first = run.spacing_bytes ? run.heaps[0] : nullptr},
                      rank,
                      run.ranks,
                      run.guard};
  run_case<Case, scope>(RankLane<CudaLane>(lane, lane.block_index() % run.blocks, run.blocks),
                        case_args(heap, heap.heaps.own + guard_bytes, run));
}

template <class List>
struct KernelsOf;
template <class Case, Scope... scopes>
struct KernelsOf<Of<Case, scopes...>> {
  static void add(Kernels& to) { (to.push_back(reinterpret_cast<const void*>(&case_kernel<Case, scopes>)), ...); }
};
template <class... Ofs>
struct KernelsOf<CaseList<Ofs...>> {
  static void add(Kernels& to) { (KernelsOf<Ofs>::add(to), ...); }
};

}  // namespace tranship::device
