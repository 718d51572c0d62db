// Asks the contract of drivers of the card's driver: each case of tests/cuda/contract is a check. Cases after which the
// context is lost run in processes of their own.
//
//   device_contract [--case NAME]
#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/contract/calls.hpp"
#include "cuda/contract/cases.hpp"
#include "support/findings.hpp"

namespace {

using tranship::contract::Bench;
using tranship::contract::Case;
using tranship::cuda::software::AllCalls;
using tranship::device::answer;
using tranship::device::check;
using tranship::device::fault;

void run(const AllCalls& calls, const std::string& code, const Case& one) {
  Bench bench(calls, code.c_str());
  one.run(bench);
  std::string wrong;
  for (const std::string& text : bench.wrong) wrong += (wrong.empty() ? "" : "; ") + text;
  check(one.name, bench.checks, static_cast<long long>(bench.wrong.size()), wrong);
}

/// The documents leave open when a copy reads pinned memory between its call and its end. Software cards must not be
/// milder than what a card does.
void ask_when_pinned_memory_is_read(const AllCalls& cu) {
  static std::atomic<bool> is_released;
  CUcontext context = nullptr;
  CUstream own = nullptr;
  CUdeviceptr card = 0;
  void* pinned = nullptr;
  constexpr std::size_t most = std::size_t(1) << 20;
  if (cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cu.cuCtxSetCurrent(context) != CUDA_SUCCESS ||
      cu.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || cu.cuMemAlloc(&card, most) != CUDA_SUCCESS ||
      cu.cuMemHostAlloc(&pinned, most, 0) != CUDA_SUCCESS) {
    fault("no stream or no memory to ask when pinned memory is read");
    return;
  }
  for (const std::size_t bytes : {std::size_t(1), std::size_t(4), std::size_t(8), std::size_t(16), std::size_t(64),
                                  std::size_t(256), std::size_t(4096), std::size_t(65536), most})
    for (const CUstream stream : {CUstream(nullptr), own}) {
      std::memset(pinned, 1, bytes);
      is_released = false;
      cu.cuLaunchHostFunc(
          stream,
          [](void*) {
            while (!is_released) sched_yield();
          },
          nullptr);
      const CUresult result = cu.cuMemcpyAsync(card, reinterpret_cast<CUdeviceptr>(pinned), bytes, stream);
      std::memset(pinned, 7, bytes);
      is_released = true;
      cu.cuStreamSynchronize(stream);
      cu.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(pinned), card, bytes, stream);
      cu.cuStreamSynchronize(stream);
      answer("a copy of " + std::to_string(bytes) + " bytes from pinned memory in " +
                 (stream ? "a stream that does not block" : "the default stream") + " reads",
             result != CUDA_SUCCESS                                ? "nothing: error " + std::to_string(int(result))
             : static_cast<unsigned char*>(pinned)[bytes - 1] == 7 ? "when its turn comes"
                                                                   : "at the call");
    }
  cu.cuMemFreeHost(pinned);
  cu.cuMemFree(card);
  cu.cuStreamDestroy(own);
}

}  // namespace

int main(int argc, char** argv) {
  const char* const wanted = argc == 3 && std::strcmp(argv[1], "--case") == 0 ? argv[2] : nullptr;
  // Those that lose their contexts first: no driver was started when the process is copied.
  if (!wanted)
    for (const Case& one : tranship::contract::all_cases()) {
      if (!one.breaks) continue;
      const pid_t child = fork();
      if (child == 0) {
        execl("/proc/self/exe", argv[0], "--case", one.name, nullptr);
        _exit(127);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0)
        fault(std::string("the process of the case '") + one.name + "' ended with status " + std::to_string(status));
    }
  AllCalls calls;
  try {
    calls = tranship::contract::calls_of("libcuda.so.1");
  } catch (const std::exception& error) {
    fault(error.what());
    return 3;
  }
  if (const CUresult result = calls.cuInit(0); result != CUDA_SUCCESS) {
    fault("cuInit: error " + std::to_string(int(result)));
    return 3;
  }
  std::ifstream file(TRANSHIP_CONTRACT_KERNELS_FILE, std::ios::binary);
  const std::string code{std::istreambuf_iterator<char>(file), {}};
  if (code.empty()) {
    fault("the kernels of the contract are not at " TRANSHIP_CONTRACT_KERNELS_FILE);
    return 3;
  }
  int cards = 0;
  calls.cuDeviceGetCount(&cards);
  if (!wanted) ask_when_pinned_memory_is_read(calls);
  for (const Case& one : tranship::contract::all_cases()) {
    if (wanted ? std::strcmp(one.name, wanted) != 0 : one.breaks) continue;
    if (one.cards > cards)
      answer(std::string(one.name) + ": skipped", std::to_string(cards) + " cards");
    else
      run(calls, code, one);
  }
  return 0;
}
