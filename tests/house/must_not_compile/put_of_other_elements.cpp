// expect: could not convert|no known conversion|cannot convert|no matching function
#include <tranship/fabric/lanes/cpu_lanes.hpp>

void wrong(const tranship::CpuLane& lane, const tranship::HeapView& heap, tranship::Span<float> target,
           tranship::Span<int> source) {
  heap.put(lane.block(), target, source, 0);
}
