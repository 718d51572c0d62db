// Measures what a launch costs: plain, cooperative, with long arguments, from a graph, and of a host function; by the
// host's clock and by the card's events. The goals of the small exchanges rest on these numbers.
#include <cooperative_groups.h>

#include "facts/options.hpp"

namespace tranship::device {
namespace {

template <int bytes>
struct Arguments {
  unsigned char value[bytes];
};

__global__ void empty() {}
template <int bytes>
__global__ void reads_arguments(const __grid_constant__ Arguments<bytes> arguments, unsigned char* out) {
  // The condition never holds, but the compiler cannot know that and keeps the argument.
  if (out != nullptr) out[threadIdx.x] = arguments.value[(threadIdx.x * 61u) % bytes];
}
__global__ void grid_syncs(int count) {
  const auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < count; ++i) grid.sync();
}

constexpr int batch =
    200;  // launches in a row: the queue holds more than that, so that the host does not wait for the card

template <class Launch>
void measure(const std::string& what, cudaStream_t stream, int rounds, const Launch& launch,
             const std::string& note = {}) {
  const auto settle = [&] { TRANSHIP_CUDA(cudaStreamSynchronize(stream)); };
  const auto many = [&] {
    for (int i = 0; i < batch; ++i) launch();
  };
  const auto per_launch = [](double us) { return us / batch; };
  figure(what + ": host time of one of many in a row", host_us(rounds, many, settle).mapped(per_launch), "us", note);
  figure(what + ": card time of one of many in a row", card_us(stream, rounds, many).mapped(per_launch), "us", note);
  figure(what + ": launch and synchronize by the host's clock",
         host_us(
             rounds * 4,
             [&] {
               launch();
               settle();
             },
             [] {}),
         "us", note);
  figure(what + ": one between two events", card_us(stream, rounds * 4, launch), "us", note);
  TRANSHIP_CUDA(cudaGetLastError());
}

cudaGraphExec_t captured(cudaStream_t stream, int nodes) {
  cudaGraph_t graph;
  cudaGraphExec_t out;
  TRANSHIP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < nodes; ++i) empty<<<1, 32, 0, stream>>>();
  TRANSHIP_CUDA(cudaStreamEndCapture(stream, &graph));
  TRANSHIP_CUDA(cudaGraphInstantiate(&out, graph, 0));
  TRANSHIP_CUDA(cudaGraphDestroy(graph));
  TRANSHIP_CUDA(cudaGraphUpload(out, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  return out;
}

void graphs(cudaStream_t stream, int rounds) {
  for (const int nodes : {1, 10, 100}) {
    const cudaGraphExec_t graph = captured(stream, nodes);
    const auto launch = [&] { TRANSHIP_CUDA(cudaGraphLaunch(graph, stream)); };
    const auto settle = [&] { TRANSHIP_CUDA(cudaStreamSynchronize(stream)); };
    const std::string what = "graph of " + std::to_string(nodes) + " kernel node" + (nodes > 1 ? "s" : "");
    figure(what + ": card time a node",
           card_us(stream, rounds * 4, launch).mapped([&](double us) { return us / nodes; }), "us",
           "one graph launch between two events");
    figure(what + ": host time of the launch call", host_us(rounds * 4, launch, settle), "us");
    figure(what + ": launch to finish by the host's clock",
           host_us(
               rounds * 4,
               [&] {
                 launch();
                 settle();
               },
               [] {}),
           "us", nodes == 1 ? "expected: 5 us or less, the floor of the one-quantity halo exchange" : "");
    const int many = 20;
    figure(what + ": card time a node, 20 graphs in a row",
           card_us(stream, rounds,
                   [&] {
                     for (int i = 0; i < many; ++i) launch();
                   })
               .mapped([&](double us) { return us / nodes / many; }),
           "us");
    TRANSHIP_CUDA(cudaGraphExecDestroy(graph));
  }
}

void cooperative(cudaStream_t stream, int rounds) {
  int per_multiprocessor = 0;
  TRANSHIP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, grid_syncs, 256, 0));
  const int most = per_multiprocessor * multiprocessors();
  for (const int blocks : {1, multiprocessors(), most}) {
    int count = 0;
    void* arguments[] = {&count};
    const auto launch = [&] {
      TRANSHIP_CUDA(cudaLaunchCooperativeKernel(grid_syncs, dim3(blocks), dim3(256), arguments, 0, stream));
    };
    const std::string what = "cooperative launch of " + std::to_string(blocks) + " blocks of 256";
    measure(what, stream, rounds, launch);
    const int syncs = 100;
    count = syncs;
    const Samples with = card_us(stream, rounds, launch);
    count = 0;
    const double without = card_us(stream, rounds, launch).median();
    figure("a grid-wide sync of " + std::to_string(blocks) + " blocks of 256",
           with.mapped([&](double us) { return (us - without) / syncs; }), "us", "cooperative_groups::grid.sync()");
  }
  int count = 0;
  void* arguments[] = {&count};
  const cudaError_t status = cudaLaunchCooperativeKernel(grid_syncs, dim3(most + 1), dim3(256), arguments, 0, stream);
  answer("a cooperative launch with one block too many", cudaGetErrorName(status),
         "expected: cudaErrorCooperativeLaunchTooLarge, and the next launch works");
  cudaGetLastError();
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
}

void others(cudaStream_t stream, int rounds) {
  const auto settle = [&] { TRANSHIP_CUDA(cudaStreamSynchronize(stream)); };
  figure("a host function on a stream: launch to finish",
         host_us(
             rounds * 4,
             [&] {
               TRANSHIP_CUDA(cudaLaunchHostFunc(
                   stream, [](void*) {}, nullptr));
               settle();
             },
             [] {}),
         "us", "host's clock");
  CardArray<unsigned char> card(4096);
  PinnedArray<unsigned char> host(4096);
  measure("an 8-byte copy from the card to pinned memory", stream, rounds,
          [&] { TRANSHIP_CUDA(cudaMemcpyAsync(host.data(), card.data(), 8, cudaMemcpyDeviceToHost, stream)); });
  measure("an 8-byte copy on the card", stream, rounds,
          [&] { TRANSHIP_CUDA(cudaMemcpyAsync(card.data() + 64, card.data(), 8, cudaMemcpyDeviceToDevice, stream)); });
  const cudaStream_t other = new_stream();
  cudaEvent_t event;
  TRANSHIP_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const auto hop = [&] {
    TRANSHIP_CUDA(cudaEventRecord(event, stream));
    TRANSHIP_CUDA(cudaStreamWaitEvent(other, event, 0));
    empty<<<1, 32, 0, other>>>();
    TRANSHIP_CUDA(cudaEventRecord(event, other));
    TRANSHIP_CUDA(cudaStreamWaitEvent(stream, event, 0));
    empty<<<1, 32, 0, stream>>>();
  };
  figure("two kernels on two streams ordered by events: card time of a pair",
         card_us(stream, rounds,
                 [&] {
                   for (int i = 0; i < 50; ++i) hop();
                 })
             .mapped([](double us) { return us / 50; }),
         "us");
  TRANSHIP_CUDA(cudaEventDestroy(event));
  TRANSHIP_CUDA(cudaStreamDestroy(other));
}

void run(const Options& options) {
  const int rounds = options.quick() ? 3 : 21;
  const cudaStream_t stream = new_stream();
  measure("empty kernel, 1 block of 32", stream, rounds, [&] { empty<<<1, 32, 0, stream>>>(); });
  const int blocks = multiprocessors() * 4;
  measure("empty kernel, 4 blocks of 256 a multiprocessor", stream, rounds,
          [&] { empty<<<blocks, 256, 0, stream>>>(); });
  Arguments<64> little;
  Arguments<4088> much;  // 4 KiB together with the pointer
  for (unsigned char& byte : little.value) byte = 7;
  for (unsigned char& byte : much.value) byte = 7;
  measure("kernel with 64 bytes of arguments", stream, rounds,
          [&] { reads_arguments<64><<<1, 32, 0, stream>>>(little, nullptr); });
  measure("kernel with 4 KiB of arguments", stream, rounds,
          [&] { reads_arguments<4088><<<1, 32, 0, stream>>>(much, nullptr); });
  TRANSHIP_CUDA(cudaGetLastError());
  graphs(stream, rounds);
  cooperative(stream, rounds);
  others(stream, rounds);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  TRANSHIP_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
