// Measures what goes on while a kernel spins: hops with __nanosleep, how many spinning kernels the queues let in, the
// first launch of a kernel that is not loaded, which calls of the host wait for the spinning kernel, and stream memory
// operations. CUDA reads the settings at its first call, so the program runs itself again for each, with --case and a
// changed environment. Every kernel ends by itself.
#include <csignal>
#include <functional>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts/driver.hpp"
#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

// ---- hops with sleep ----

/// Block 0 and block 1 raise each other's word, and sleep for `sleep_ns` after each look that has seen nothing.
__global__ void sleepy_hops(Word* words, int rounds, unsigned sleep_ns, Word* elapsed_ns) {
  const int me = int(blockIdx.x);
  Word* const mine = words + 16 * me;
  Word* const theirs = words + 16 * (1 - me);
  Word begin = 0;
  for (int round = 1; round <= rounds; ++round) {
    if (round == 2) begin = global_ns();
    for (int half = 0; half < 2; ++half) {
      if (half == me) {
        fence_gpu();
        store_relaxed_gpu(theirs, Word(round));
        continue;
      }
      int looks = 0;
      while (load_relaxed_gpu(mine) < Word(round)) {
        if (++looks == looks_max) return;
        if (sleep_ns != 0) __nanosleep(sleep_ns);
      }
      load_acquire_gpu(mine);
    }
  }
  if (me == 0) *elapsed_ns = global_ns() - begin;
}

void hops(const Options& options) {
  CardArray<Word> words(32), elapsed(1);
  const int rounds = options.quick() ? 20 : 1001;
  for (const unsigned sleep_ns : {0u, 20u, 50u, 100u, 200u, 500u, 1000u}) {
    Samples samples;
    const std::string name = "hop of a signal, __nanosleep(" + std::to_string(sleep_ns) + ") between looks";
    for (int round = -1; round < (options.quick() ? 1 : 9); ++round) {
      words.fill(0);
      elapsed.fill(0);
      sleepy_hops<<<2, 1>>>(words.data(), rounds, sleep_ns, elapsed.data());
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      const Word ns = elapsed.read()[0];
      if (ns == 0) {
        fault(name + ": gave up");
        break;
      }
      if (round >= 0) samples.values.push_back(double(ns) / (2.0 * (rounds - 1)));
    }
    if (!samples.values.empty())
      figure(name, samples, "ns", sleep_ns == 0 ? "without the call" : "expected: up to the sleep itself is added");
  }
}

// ---- how many spinning kernels are let in ----

struct Meeting {
  Word present[16];
  Word give_up[16];
  Word fewest_at_give_up;
  Word gave_up;
};

__global__ void meet(Meeting* meeting, Word wanted, Word limit_ns) {
  atomicAdd(meeting->present, 1ull);
  const Word begin = global_ns();
  for (;;) {
    const Word present = load_relaxed_gpu(meeting->present);
    if (present >= wanted) return;
    if (load_relaxed_gpu(meeting->give_up) != 0) break;
    if (global_ns() - begin > limit_ns) {
      atomicMin(&meeting->fewest_at_give_up, present);
      store_relaxed_gpu(meeting->give_up, 1);
      break;
    }
  }
  atomicAdd(&meeting->gave_up, 1ull);
}

__global__ void behind() {}

void queues(const Options& options) {
  const char* const setting = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const std::string with = setting == nullptr ? "not set" : setting;
  CardArray<Meeting> meeting(1);
  const auto clear = [&] {
    meeting.fill(0);
    TRANSHIP_CUDA(cudaMemset(&meeting.data()->fewest_at_give_up, 0xff, sizeof(Word)));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  };
  clear();
  meet<<<1, 1>>>(meeting.data(), 1, 1'000'000);  // loads the kernels
  behind<<<1, 1>>>();
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  std::vector<cudaStream_t> streams;
  for (int i = 0; i < 128; ++i) streams.push_back(new_stream());
  // A kernel behind each spinning one makes its queue wait, and with it all streams that share the queue.
  for (const int followers : {0, 1}) {
    std::string met = "none";
    for (const int count : {1, 8, 9, 16, 17, 32, 33, 64, 128}) {
      if (options.quick() && count > 9) break;
      clear();
      for (int i = 0; i < count; ++i) {
        const cudaStream_t stream = streams[std::size_t(i)];
        meet<<<1, 1, 0, stream>>>(meeting.data(), Word(count), 300'000'000);
        if (followers) behind<<<1, 1, 0, stream>>>();
      }
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      const Meeting seen = meeting.read()[0];
      if (seen.gave_up != 0) {
        met = "all of fewer than " + std::to_string(count) + "; of " + std::to_string(count) + " only " +
              std::to_string(seen.fewest_at_give_up) + " run at once";
        break;
      }
      met = "all, up to " + std::to_string(count);
    }
    answer("kernels on as many streams that spin for one another, " +
               std::string(followers ? "a second kernel behind each" : "nothing behind them") +
               ", CUDA_DEVICE_MAX_CONNECTIONS " + with,
           met, "expected: with 8 queues the ninth is kept out, with 32 the 33rd");
  }
  for (const cudaStream_t stream : streams) TRANSHIP_CUDA(cudaStreamDestroy(stream));
}

// ---- calls while a kernel spins ----

struct Levers {
  Word started[16];
  Word stop[16];
};

__global__ void spin(Levers* levers, Word limit_ns) {
  const Word begin = global_ns();
  store_relaxed_sys(levers->started, 1);
  while (load_relaxed_sys(levers->stop) == 0 && global_ns() - begin < limit_ns) {
  }
}
template <int number>
__global__ void fresh(unsigned* out) {
  if (out != nullptr) out[threadIdx.x] = number + threadIdx.x;
}
/// This kernel needs `number` words of local memory a lane.
template <unsigned number>
__global__ void deep(unsigned* out, unsigned seed) {
  volatile unsigned room[number];
  for (unsigned i = 0; i < number; ++i) room[(i * 7u + seed) % number] = i;
  if (out != nullptr) out[threadIdx.x] = room[(seed + threadIdx.x) % number];
}

class Experiment {
 public:
  explicit Experiment(std::string suffix, double limit_s)
      : suffix_(std::move(suffix)),
        limit_ns_(Word(limit_s * 1e9)),
        levers_(1),
        spinner_(new_stream()),
        other_(new_stream()) {
    levers_[0].stop[0] = 1;
    spin<<<1, 1, 0, spinner_>>>(levers_.data(), 1000);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  Experiment(const Experiment&) = delete;
  Experiment& operator=(const Experiment&) = delete;
  ~Experiment() {
    cudaStreamDestroy(spinner_);
    cudaStreamDestroy(other_);
  }

  cudaStream_t other() const { return other_; }

  /// Reports whether `call` returns, and whether what it put into `stream` finishes, while a kernel spins.
  void run(const std::string& name, const std::string& expectation, cudaStream_t stream,
           const std::function<cudaError_t()>& call) {
    levers_[0] = {};
    spin<<<1, 1, 0, spinner_>>>(levers_.data(), limit_ns_);
    TRANSHIP_CUDA(cudaGetLastError());
    const volatile Word* const started = levers_[0].started;
    for (const double limit = now_us() + 1e6; *started == 0;)
      if (now_us() > limit) {
        fault(name + ": the spinning kernel does not start");
        break;
      }
    const double begin = now_us();
    const cudaError_t status = call();
    const double returned = now_us() - begin;
    const bool spins_at_return = spins();
    bool spins_at_finish = spins_at_return;
    while (spins_at_finish && cudaStreamQuery(stream) == cudaErrorNotReady) spins_at_finish = spins();
    const double finished = now_us() - begin;
    *const_cast<volatile Word*>(levers_[0].stop) = 1;
    TRANSHIP_CUDA(cudaStreamSynchronize(spinner_));
    cudaGetLastError();
    std::string value = !spins_at_return   ? "waits for the kernel"
                        : !spins_at_finish ? "returns, but finishes after the kernel"
                                           : "does not wait";
    if (status != cudaSuccess) value += std::string(", and fails: ") + cudaGetErrorName(status);
    char times[96];
    std::snprintf(times, sizeof times, "returned after %.1f us, finished after %.1f us; expected: ", returned,
                  finished);
    answer("while a kernel spins" + suffix_ + ": " + name, value, times + expectation);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }

 private:
  bool spins() const { return cudaStreamQuery(spinner_) == cudaErrorNotReady; }

  std::string suffix_;
  Word limit_ns_;
  PinnedArray<Levers> levers_;
  cudaStream_t spinner_, other_;
};

template <class Launch>
cudaError_t launched(const Launch& launch) {
  launch();
  return cudaGetLastError();
}

void loading(const Options&) {
  const char* const setting = std::getenv("CUDA_MODULE_LOADING");
  const std::string with = setting == nullptr ? "not set" : setting;
  const bool lazy = with != "EAGER";
  Experiment experiment(", CUDA_MODULE_LOADING " + with, 0.5);
  const cudaStream_t stream = experiment.other();
  const std::string expectation = lazy ? "may wait, the load synchronises" : "does not wait";
  experiment.run("the first launch of a kernel", expectation, stream,
                 [&] { return launched([&] { fresh<0><<<1, 32, 0, stream>>>(nullptr); }); });
  experiment.run("its second launch", "does not wait", stream,
                 [&] { return launched([&] { fresh<0><<<1, 32, 0, stream>>>(nullptr); }); });
  experiment.run("cudaFuncGetAttributes of a kernel never launched", expectation, stream, [&] {
    cudaFuncAttributes attributes;
    return cudaFuncGetAttributes(&attributes, fresh<1>);
  });
  experiment.run("the first launch after cudaFuncGetAttributes", "does not wait", stream,
                 [&] { return launched([&] { fresh<1><<<1, 32, 0, stream>>>(nullptr); }); });
  experiment.run("the first launch of a kernel that needs more local memory than any before",
                 "waits, the local memory of all grows", stream,
                 [&] { return launched([&] { deep<1024><<<1, 32, 0, stream>>>(nullptr, 3); }); });
  cudaFuncAttributes attributes;
  TRANSHIP_CUDA(cudaFuncGetAttributes(&attributes, deep<2048>));
  experiment.run("the first launch of such a kernel after cudaFuncGetAttributes alone", "waits, as above", stream,
                 [&] { return launched([&] { deep<2048><<<1, 32, 0, stream>>>(nullptr, 3); }); });
}

void calls(const Options&) {
  Driver::get();
  const std::size_t bytes = 1 << 20;
  CardArray<unsigned char> card(bytes), card_too(bytes);
  PinnedArray<unsigned char> pinned(bytes);
  std::vector<unsigned char> pageable(bytes, 7);
  fresh<2><<<1, 32>>>(nullptr);
  TRANSHIP_CUDA(cudaGetLastError());
  Experiment experiment("", 0.4);
  const cudaStream_t stream = experiment.other();
  TRANSHIP_CUDA(cudaMemcpyAsync(card.data(), pinned.data(), bytes, cudaMemcpyHostToDevice, stream));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const std::string no = "does not wait", yes = "waits";

  experiment.run("a loaded kernel on another non-blocking stream", no, stream,
                 [&] { return launched([&] { fresh<2><<<1, 32, 0, stream>>>(nullptr); }); });
  experiment.run("a loaded kernel on the default stream", no + ", the spinner's stream is non-blocking", nullptr,
                 [&] { return launched([&] { fresh<2><<<1, 32>>>(nullptr); }); });
  experiment.run("cudaMemcpyAsync, pinned to card, non-blocking stream", no, stream,
                 [&] { return cudaMemcpyAsync(card.data(), pinned.data(), bytes, cudaMemcpyHostToDevice, stream); });
  experiment.run("cudaMemcpyAsync, card to pinned, non-blocking stream", no, stream,
                 [&] { return cudaMemcpyAsync(pinned.data(), card.data(), bytes, cudaMemcpyDeviceToHost, stream); });
  experiment.run("cudaMemcpyAsync, card to card, non-blocking stream", no, stream, [&] {
    return cudaMemcpyAsync(card_too.data(), card.data(), bytes, cudaMemcpyDeviceToDevice, stream);
  });
  experiment.run("cudaMemcpyAsync, pageable to card, non-blocking stream", no, stream,
                 [&] { return cudaMemcpyAsync(card.data(), pageable.data(), bytes, cudaMemcpyHostToDevice, stream); });
  experiment.run("cudaMemcpyAsync, card to pageable, non-blocking stream", no, stream,
                 [&] { return cudaMemcpyAsync(pageable.data(), card.data(), bytes, cudaMemcpyDeviceToHost, stream); });
  experiment.run("cudaMemcpy, pageable to card", no, nullptr,
                 [&] { return cudaMemcpy(card.data(), pageable.data(), bytes, cudaMemcpyHostToDevice); });
  experiment.run("cudaMemcpy, card to pageable", no, nullptr,
                 [&] { return cudaMemcpy(pageable.data(), card.data(), bytes, cudaMemcpyDeviceToHost); });
  experiment.run("cudaMemcpy, card to card", no, nullptr,
                 [&] { return cudaMemcpy(card_too.data(), card.data(), bytes, cudaMemcpyDeviceToDevice); });
  experiment.run("cudaMemset", no, nullptr, [&] { return cudaMemset(card.data(), 1, bytes); });
  void* small = nullptr;
  void* large = nullptr;
  experiment.run("cudaMalloc of 64 KiB", "may wait", stream, [&] { return cudaMalloc(&small, 64 << 10); });
  experiment.run("cudaMalloc of 512 MiB", "may wait", stream, [&] { return cudaMalloc(&large, 512 << 20); });
  experiment.run("cudaFree of 64 KiB", yes, stream, [&] { return cudaFree(small); });
  experiment.run("cudaFree of 512 MiB", yes, stream, [&] { return cudaFree(large); });
  void* pooled = nullptr;
  experiment.run("cudaMallocAsync, the first from the pool", no, stream,
                 [&] { return cudaMallocAsync(&pooled, bytes, stream); });
  experiment.run("cudaFreeAsync", no, stream, [&] { return cudaFreeAsync(pooled, stream); });
  experiment.run("cudaMallocAsync, again", no, stream, [&] { return cudaMallocAsync(&pooled, bytes, stream); });
  TRANSHIP_CUDA(cudaFreeAsync(pooled, stream));
  TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  void* host = nullptr;
  experiment.run("cudaHostAlloc", "may wait", stream,
                 [&] { return cudaHostAlloc(&host, bytes, cudaHostAllocDefault); });
  experiment.run("cudaFreeHost", yes, stream, [&] { return cudaFreeHost(host); });
  experiment.run("cudaHostRegister", "may wait", stream,
                 [&] { return cudaHostRegister(pageable.data(), bytes, cudaHostRegisterDefault); });
  experiment.run("cudaHostUnregister", yes, stream, [&] { return cudaHostUnregister(pageable.data()); });
  cudaStream_t made;
  experiment.run("cudaStreamCreateWithFlags", no, stream,
                 [&] { return cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking); });
  experiment.run("cudaStreamDestroy", no, stream, [&] { return cudaStreamDestroy(made); });
  cudaGraph_t graph;
  cudaGraphExec_t graph_exec = nullptr;
  TRANSHIP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  fresh<2><<<1, 32, 0, stream>>>(nullptr);
  TRANSHIP_CUDA(cudaStreamEndCapture(stream, &graph));
  experiment.run("cudaGraphInstantiate of a loaded kernel", "may wait", stream,
                 [&] { return cudaGraphInstantiate(&graph_exec, graph, 0); });
  experiment.run("the first cudaGraphLaunch", no, stream, [&] { return cudaGraphLaunch(graph_exec, stream); });
  int per_multiprocessor = 0;
  TRANSHIP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_multiprocessor, fresh<2>, 32, 0));
  unsigned* nothing = nullptr;
  void* arguments[] = {&nothing};
  experiment.run("a cooperative launch that fits beside the kernel", no, stream, [&] {
    return cudaLaunchCooperativeKernel(fresh<2>, dim3(multiprocessors()), dim3(32), arguments, 0, stream);
  });
  experiment.run("a cooperative launch that needs the whole card", "finishes after the kernel", stream, [&] {
    return cudaLaunchCooperativeKernel(fresh<2>, dim3(unsigned(per_multiprocessor * multiprocessors())), dim3(32),
                                       arguments, 0, stream);
  });

  Physical physical;
  physical.bytes = Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  const CUmemAllocationProp wanted = Physical::properties(Physical::Sharing::none);
  const CUmemAccessDesc access = read_and_write();
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, physical.bytes, 0, 0, 0));
  const auto as_runtime = [](CUresult status) { return status == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown; };
  experiment.run("cuMemCreate of one chunk", no, stream,
                 [&] { return as_runtime(Driver::get().cuMemCreate(&physical.handle, physical.bytes, &wanted, 0)); });
  experiment.run("cuMemMap", no, stream,
                 [&] { return as_runtime(Driver::get().cuMemMap(at, physical.bytes, 0, physical.handle, 0)); });
  experiment.run("cuMemSetAccess", "may wait", stream,
                 [&] { return as_runtime(Driver::get().cuMemSetAccess(at, physical.bytes, &access, 1)); });
  experiment.run("cuMemUnmap", "may wait", stream,
                 [&] { return as_runtime(Driver::get().cuMemUnmap(at, physical.bytes)); });
  experiment.run("cuMemRelease", no, stream, [&] { return as_runtime(Driver::get().cuMemRelease(physical.handle)); });
  TRANSHIP_DRIVER(cuMemAddressFree(at, physical.bytes));
  TRANSHIP_CUDA(cudaGraphExecDestroy(graph_exec));
  TRANSHIP_CUDA(cudaGraphDestroy(graph));
}

// ---- stream memory operations ----

__global__ void wait_for_word(const Word* word, Word* started, int* gave_up) {
  store_relaxed_sys(started, 1);
  const Word begin = global_ns();
  while (load_relaxed_sys(word) == 0)
    if (global_ns() - begin > 1'000'000'000) {
      *gave_up = 1;
      return;
    }
}
/// Raises `word` after a while, and then stays.
__global__ void raise_and_stay(Word* word, Word* raised_ns, Word stay_ns) {
  const Word begin = global_ns();
  while (global_ns() - begin < 2'000'000) {
  }
  *raised_ns = global_ns();
  fence_sys();
  store_relaxed_sys(word, 1);
  while (global_ns() - begin < stay_ns) {
  }
}
__global__ void note_time(Word* ns) {
  *ns = global_ns();
}

void stream_values(const Options& options) {
  const Driver& driver = Driver::get();
  const cudaStream_t spinner = new_stream(), other = new_stream();
  CardArray<Word> on_card(64);
  PinnedArray<Word> on_host(64);
  CardArray<int> gave_up(1);
  for (const bool is_host : {false, true}) {
    Word* const words = is_host ? on_host.data() : on_card.data();
    const std::string where = is_host ? "pinned host memory" : "the card";
    Samples returned, seen, passed;
    bool failed = false;
    std::string error = "not in the driver";
    for (int round = -1; round < (options.quick() ? 1 : 9) && !failed; ++round) {
      on_card.fill(0);
      gave_up.fill(0);
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      for (int i = 0; i < 64; ++i) on_host[std::size_t(i)] = 0;
      wait_for_word<<<1, 1, 0, spinner>>>(words, on_host.data() + 48, gave_up.data());
      TRANSHIP_CUDA(cudaGetLastError());
      const volatile Word* const started = on_host.data() + 48;
      for (const double limit = now_us() + 1e6; *started == 0 && now_us() < limit;) {
      }
      const double begin = now_us();
      if (driver.cuStreamWriteValue64 == nullptr) {
        failed = true;
      } else {
        const CUresult status =
            driver.cuStreamWriteValue64(other, CUdeviceptr(words), 1, CU_STREAM_WRITE_VALUE_DEFAULT);
        failed = status != CUDA_SUCCESS;
        error = driver.error(status);
      }
      const double call_us = now_us() - begin;
      TRANSHIP_CUDA(cudaStreamSynchronize(spinner));
      const double seen_us = now_us() - begin;
      failed = failed || gave_up.read()[0] != 0;
      if (round >= 0) {
        returned.values.push_back(call_us);
        seen.values.push_back(seen_us);
      }
    }
    answer("cuStreamWriteValue64 to a word on " + where + " releases a spinning kernel", failed ? "no" : "yes", error);
    if (!failed) {
      figure("cuStreamWriteValue64 to " + where + ": host time of the call", returned, "us");
      figure("cuStreamWriteValue64 to " + where + ": call to end of the kernel that waits for it", seen, "us",
             "host's clock");
    }
    failed = false;
    error = "not in the driver";
    CardArray<Word> times(2);
    note_time<<<1, 1, 0, other>>>(times.data() + 1);  // loads the kernel, which may not be possible later
    TRANSHIP_CUDA(cudaGetLastError());
    long long after_the_kernel = 0;
    for (int round = -1; round < (options.quick() ? 1 : 9) && !failed; ++round) {
      on_card.fill(0);
      times.fill(0);
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      for (int i = 0; i < 64; ++i) on_host[std::size_t(i)] = 0;
      if (driver.cuStreamWaitValue64 == nullptr) {
        failed = true;
        break;
      }
      // The kernel comes first, so that a wait that keeps others out cannot hang the card.
      raise_and_stay<<<1, 1, 0, spinner>>>(words, times.data(), 20'000'000);
      const CUresult status = driver.cuStreamWaitValue64(other, CUdeviceptr(words), 1, CU_STREAM_WAIT_VALUE_GEQ);
      failed = status != CUDA_SUCCESS;
      error = driver.error(status);
      note_time<<<1, 1, 0, other>>>(times.data() + 1);
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaStreamSynchronize(other));
      if (round >= 0 && cudaStreamQuery(spinner) != cudaErrorNotReady) ++after_the_kernel;
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      const std::vector<Word> at = times.read();
      if (round >= 0) passed.values.push_back((double(at[1]) - double(at[0])) * 1e-3);
    }
    answer("cuStreamWaitValue64 of a word on " + where + " sees what a running kernel wrote",
           failed                  ? "no"
           : after_the_kernel == 0 ? "yes"
                                   : "after the kernel, " + std::to_string(after_the_kernel) + " times",
           error);
    if (!failed)
      figure("cuStreamWaitValue64 of a word on " + where + ": store to the start of the next kernel of the stream",
             passed, "us");
  }
  TRANSHIP_CUDA(cudaStreamDestroy(spinner));
  TRANSHIP_CUDA(cudaStreamDestroy(other));
}

// ---- one process a case ----

struct Case {
  const char* name;
  void (*run)(const Options&);
  const char* variable;
  const char* value;
};
const Case cases[] = {
    {"hops", hops, nullptr, nullptr},
    {"queues", queues, "CUDA_DEVICE_MAX_CONNECTIONS", nullptr},
    {"queues", queues, "CUDA_DEVICE_MAX_CONNECTIONS", "8"},
    {"queues", queues, "CUDA_DEVICE_MAX_CONNECTIONS", "32"},
    {"loading", loading, "CUDA_MODULE_LOADING", nullptr},
    {"loading", loading, "CUDA_MODULE_LOADING", "EAGER"},
    {"values", stream_values, nullptr, nullptr},
    {"calls", calls, nullptr, nullptr},
};

/// Returns the exit status of the case, or -1 when it had to be killed.
int run_again(const Case& one, bool quick) {
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (one.variable != nullptr && one.value == nullptr) unsetenv(one.variable);
    if (one.variable != nullptr && one.value != nullptr) setenv(one.variable, one.value, 1);
    execl("/proc/self/exe", "device_facts_spinning", "--case", one.name, quick ? "--quick" : nullptr, nullptr);
    _exit(3);
  }
  return status_of(child, 25);
}

int run(const Options& options) {
  const std::string wanted = options.text("--case", "");
  if (!wanted.empty()) {
    for (const Case& one : cases)
      if (wanted == one.name) {
        one.run(options);
        return 0;
      }
    fault("no case " + wanted);
    return 3;
  }
  int lost = 0, count = 0;
  for (const Case& one : cases) {
    const int status = run_again(one, options.quick());
    ++count;
    if (status == 0) continue;
    ++lost;
    fault(std::string("spinning, case ") + one.name +
          (one.variable == nullptr
               ? ""
               : std::string(", ") + one.variable + " " + (one.value == nullptr ? "not set" : one.value)) +
          (status < 0 ? ": killed after 25 s" : ": ended with " + std::to_string(status)));
  }
  return lost == count ? 3 : 0;
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  return tranship::device::run(tranship::device::Options(argc, argv));
}
