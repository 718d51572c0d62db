// Launches cases on the card: as blocks of one cooperative grid, or with a stream and a launch for each rank.
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>

#include <tranship/fabric/lanes/lost_wait.hpp>

#include "lanes/card.hpp"
#include "lanes/card_parts.hpp"
#include "support/card.hpp"

namespace tranship::device {
namespace {

using Clock = std::chrono::steady_clock;

struct Watched {
  std::mutex mutex;
  std::string what;
  Clock::time_point until = Clock::time_point::max();
};
/// The object is never freed, because the thread that looks at it ends with the program.
Watched& watched() {
  static auto* const one = new Watched;
  return *one;
}

}  // namespace

Watchdog::Watchdog(double limit_s) : limit_s_(limit_s) {
  std::thread([limit_s] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const std::lock_guard lock(watched().mutex);
      if (Clock::now() < watched().until) continue;
      fault("not finished after " + std::to_string(int(limit_s)) + " s: " + watched().what);
      std::_Exit(4);
    }
  }).detach();
}
void Watchdog::begin(const std::string& what) {
  const std::lock_guard lock(watched().mutex);
  watched().what = what;
  watched().until = Clock::now() + std::chrono::milliseconds(static_cast<long long>(limit_s_ * 1e3));
}
void Watchdog::end() {
  const std::lock_guard lock(watched().mutex);
  watched().until = Clock::time_point::max();
}

Card::Card(double limit_s) : watchdog_(limit_s), parts_(new Parts) {
  watchdog_.begin("the set-up of the card");
  TRANSHIP_CUDA(cudaSetDevice(0));
  for (cudaStream_t& stream : parts_->streams) TRANSHIP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  TRANSHIP_CUDA(cudaMalloc(&parts_->heaps, ranks_max * heap_bytes));
  TRANSHIP_CUDA(cudaMallocHost(&parts_->staging, ranks_max * heap_bytes));
  TRANSHIP_CUDA(cudaMalloc(&parts_->table, ranks_max * sizeof(unsigned char*)));
  TRANSHIP_CUDA(cudaMalloc(&parts_->guard, sizeof(WaitGuard)));
  TRANSHIP_CUDA(cudaMallocHost(&parts_->record, sizeof(WaitRecord)));
  watchdog_.end();
}
Card::~Card() {
  for (cudaStream_t stream : parts_->streams) cudaStreamDestroy(stream);
  cudaFree(parts_->heaps);
  cudaFree(parts_->table);
  cudaFreeHost(parts_->staging);
  cudaFree(parts_->guard);
  cudaFreeHost(parts_->record);
  delete parts_;
}

void Card::Parts::arm(cudaStream_t stream, unsigned long long limit_ns, bool traps) {
  *record = {};
  WaitGuard armed;
  armed.limit_ns = limit_ns;
  armed.record = record;
  armed.traps = traps;
  TRANSHIP_CUDA(cudaMemcpyAsync(guard, &armed, sizeof armed, cudaMemcpyHostToDevice, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
}
std::string Card::Parts::lost_wait() const {
  return has_lost_wait(*record) ? tranship::lost_wait(*record).message() : "";
}

void Card::load(const Kernels& kernels) {
  watchdog_.begin("the first launches of all kernels");
  int registers_max = 0;
  std::size_t local_bytes_max = 0;
  for (const void* kernel : kernels) {
    cudaFuncAttributes attributes;
    TRANSHIP_CUDA(cudaFuncGetAttributes(&attributes, kernel));
    registers_max = std::max(registers_max, attributes.numRegs);
    local_bytes_max = std::max(local_bytes_max, attributes.localSizeBytes);
    // With 0 ranks the block returns at once, but the launch allocates room for its stack.
    RunArgs nothing;
    void* arguments[] = {&nothing};
    TRANSHIP_CUDA(cudaLaunchKernel(kernel, dim3(1), dim3(256), arguments, 0, parts_->streams[0]));
    TRANSHIP_CUDA(cudaStreamSynchronize(parts_->streams[0]));
  }
  watchdog_.end();
  answer("kernels of cases", std::to_string(kernels.size()),
         "at most " + std::to_string(registers_max) + " registers and " + std::to_string(local_bytes_max) +
             " bytes of local memory a lane");
}

void Card::run(const void* kernel, As as, RunArgs run, int lanes, std::vector<unsigned char>& bytes,
               const std::string& what) {
  const auto ranks = static_cast<unsigned>(run.ranks), blocks = static_cast<unsigned>(run.blocks);
  if (run.ranks > ranks_max || bytes.size() != ranks * static_cast<std::size_t>(heap_bytes)) {
    fault("more ranks than there is room for: " + what);
    std::_Exit(3);
  }
  watchdog_.begin(what);
  const cudaStream_t first = parts_->streams[0];
  std::memcpy(parts_->staging, bytes.data(), bytes.size());
  TRANSHIP_CUDA(cudaMemcpyAsync(parts_->heaps, parts_->staging, bytes.size(), cudaMemcpyHostToDevice, first));
  unsigned char* heaps[ranks_max] = {};
  // All arenas have the same lists.
  const auto* const lists = reinterpret_cast<const Lists*>(bytes.data() + guard_bytes + lists_at);
  for (unsigned rank = 0; rank < ranks; ++rank)
    heaps[rank] = parts_->heaps + (run.has_places ? static_cast<unsigned>(lists->places[rank]) : rank) * heap_bytes;
  TRANSHIP_CUDA(cudaMemcpyAsync(parts_->table, heaps, sizeof heaps, cudaMemcpyHostToDevice, first));
  TRANSHIP_CUDA(cudaStreamSynchronize(first));
  run.heaps = parts_->table;
  run.guard = parts_->guard;
  parts_->arm(first, static_cast<unsigned long long>(watchdog_.limit_s() * 0.5e9));
  run.spacing_bytes = run.has_places ? 0 : heap_bytes;
  void* arguments[] = {&run};
  const dim3 shape = lanes == 256 ? dim3(8, 4, 8) : lanes == 96 ? dim3(32, 3) : dim3(static_cast<unsigned>(lanes));
  if (as == As::blocks) {
    run.first_rank = 0;
    TRANSHIP_CUDA(cudaLaunchCooperativeKernel(kernel, dim3(ranks, blocks), shape, arguments, 0, first));
  } else {
    for (unsigned rank = 0; rank < ranks; ++rank) {
      run.first_rank = static_cast<int>(rank);
      TRANSHIP_CUDA(cudaLaunchKernel(kernel, dim3(1, blocks), shape, arguments, 0, parts_->streams[rank]));
    }
  }
  TRANSHIP_CUDA(cudaGetLastError());
  for (unsigned rank = 0; rank < (as == As::blocks ? 1 : ranks); ++rank) {
    const cudaError_t status = cudaStreamSynchronize(parts_->streams[rank]);
    if (status == cudaSuccess) continue;
    // The context is lost, so the program ends.
    fault(std::string(cudaGetErrorString(status)) + ": " + what);
    std::_Exit(3);
  }
  TRANSHIP_CUDA(cudaMemcpyAsync(parts_->staging, parts_->heaps, bytes.size(), cudaMemcpyDeviceToHost, first));
  TRANSHIP_CUDA(cudaStreamSynchronize(first));
  std::memcpy(bytes.data(), parts_->staging, bytes.size());
  watchdog_.end();
  if (const std::string lost = parts_->lost_wait(); !lost.empty()) {
    fault(lost + ": " + what);
    std::_Exit(4);
  }
}

}  // namespace tranship::device
