// Shows a kernel that moves data by itself: each rank puts a value into the next rank's memory and gets it back.
// Prints the values that rank 0 has put and got.
// Run: build/release/bin/example_device_rma
#include <cstdio>
#include <cstdlib>
#include <string>

#include <tranship/fabric/lanes/cpu_lanes.hpp>
#include <tranship/fabric/launch.hpp>

namespace ts = tranship;

namespace {

/// Here its lanes run on the CPU; compiled by nvcc and launched with CudaLane(), it is the same kernel on a GPU.
template <class Lane>
TRANSHIP_SHARED void rma_kernel(const Lane& lane, const ts::HeapView& heap, ts::Span<int> src, ts::Span<int> dst,
                                ts::Span<int> remote_buf, int peer) {
  if (lane.index() == 0) {
    // Put data from src to remote_buf on the remote rank.
    heap.put(lane.thread(), remote_buf, src, peer);
    heap.quiet(lane.thread());
    // Get data from remote_buf on the remote rank to dst.
    heap.get(lane.thread(), dst, remote_buf, peer);
  }
}

}  // namespace

int main() try {
  constexpr int ranks = 4;
  ts::launch(ranks, [](ts::World& world) {
    const int next = (world.rank() + 1) % world.size(), previous = (world.rank() + ranks - 1) % ranks;
    const auto src = world.allocate<int>(1), dst = world.allocate<int>(1), remote_buf = world.allocate<int>(1);
    src[0] = 100 + world.rank();

    ts::run_block(world, {.lanes = 32}, [&](const ts::CpuLane& lane) {
      rma_kernel(lane, ts::heap_view(world), ts::span_of(src), ts::span_of(dst), ts::span_of(remote_buf), next);
    });
    world.barrier();

    if (dst[0] != 100 + world.rank() || remote_buf[0] != 100 + previous)
      throw ts::Error(ts::ErrorCode::internal,
                      "got " + std::to_string(dst[0]) + " back and " + std::to_string(remote_buf[0]) + " from a peer");
    if (world.rank() == 0)
      std::printf("rank 0 put %d into rank %d, got %d back, and has %d of rank %d\n", src[0], next, dst[0],
                  remote_buf[0], previous);
  });
  std::puts("every value went to the next rank and came back");
} catch (const std::exception& error) {
  std::fprintf(stderr, "device_rma: %s\n", error.what());
  return EXIT_FAILURE;
}
