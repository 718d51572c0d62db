// Asks what is left after a kernel has failed: which call reports it first, what the others report, whether
// cudaDeviceReset helps, and what becomes of other streams, of host functions and of other processes. Each function
// loses its context.
#include <atomic>

#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

/// Returns an address that no allocation has.
Word* nowhere() {
  return reinterpret_cast<Word*>(std::uintptr_t(0x100000));
}
std::string plain_name(cudaError_t status) {
  return cudaGetErrorName(status);
}

/// Resets the card and tries to start again, once or for up to `limit_us`.
std::string begun_anew(double limit_us = 0) {
  const cudaError_t reset = cudaDeviceReset();
  std::string out = "cudaDeviceReset: " + plain_name(reset);
  const double begin = now_us();
  cudaError_t status = cudaErrorUnknown;
  void* memory = nullptr;
  std::string first;
  do {
    cudaGetLastError();
    status = cudaMalloc(&memory, 4096);
    if (first.empty()) first = plain_name(status);
    if (status != cudaSuccess && limit_us > 0) usleep(50000);
  } while (status != cudaSuccess && now_us() - begin < limit_us);
  out += "; cudaMalloc after it: " + first;
  if (first != plain_name(status)) out += ", then " + plain_name(status) + " after " + us_text(now_us() - begin);
  if (status != cudaSuccess) return out;
  const cudaError_t launched = launch(nullptr, {}, put_word, static_cast<Word*>(memory), Word(3));
  Word seen = 0;
  const cudaError_t copied = cudaMemcpy(&seen, memory, sizeof seen, cudaMemcpyDeviceToHost);
  out += "; a kernel after it: " + (launched != cudaSuccess ? plain_name(launched)
                                    : copied != cudaSuccess ? plain_name(copied)
                                                            : std::string(seen == 3 ? "runs" : "does nothing"));
  return out;
}

/// Launches into a stream, and reports which error comes, whether it stays, and what a reset does.
void ask_fault(const std::string& name, const std::string& expectation,
               const std::function<cudaError_t(cudaStream_t)>& launch_it, const Word* also_set = nullptr) {
  const cudaStream_t stream = new_stream();
  Word* const mark = Marks::next();
  const cudaError_t launched = launch_it(stream);
  const cudaError_t behind = launch(stream, {}, put_word, mark, Word(1));
  const cudaError_t first = cudaStreamSynchronize(stream);
  const cudaError_t again = cudaStreamSynchronize(stream);
  cudaGetLastError();
  void* memory = nullptr;
  const cudaError_t allocated = cudaMalloc(&memory, 4096);
  std::string note = "the launch: " + plain_name(launched) + "; a kernel behind it: " + plain_name(behind) +
                     (now_in(mark) == 1 ? ", which runs" : ", which does not run") +
                     "; the next synchronization: " + plain_name(again) + "; cudaMalloc: " + plain_name(allocated);
  if (also_set != nullptr)
    note += now_in(also_set) == 1 ? "; the node behind it runs" : "; the node behind it does not run";
  // The reset also frees the pinned memory.
  if (first != cudaSuccess) note += "; " + begun_anew();
  answer(name, plain_name(first), note + "; expected: " + expectation);
}

}  // namespace

void fault_by_address(const Options&) {
  const cudaStream_t stream = new_stream(), other = new_stream();
  Word* const pinned = Marks::next();
  *pinned = 77;
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 4096));
  cudaEvent_t event;
  TRANSHIP_CUDA(cudaEventCreate(&event));
  const std::string sticky = "cudaErrorIllegalAddress, as all calls from then on";
  TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
  told("cudaStreamSynchronize after a kernel that stores to an address that is no memory",
       plain_name(cudaStreamSynchronize(stream)), "cudaErrorIllegalAddress");
  const auto after = [](const char* call, cudaError_t status, const std::string& expectation) {
    told(std::string("after an illegal address: ") + call, plain_name(status), expectation);
  };
  after("cudaGetLastError", cudaGetLastError(), sticky);
  after("cudaGetLastError, again", cudaGetLastError(), "cudaErrorIllegalAddress or cudaSuccess");
  after("cudaStreamSynchronize of the stream, again", cudaStreamSynchronize(stream), sticky);
  after("cudaStreamSynchronize of another stream", cudaStreamSynchronize(other), sticky);
  after("cudaStreamQuery of another stream", cudaStreamQuery(other), sticky);
  after("cudaDeviceSynchronize", cudaDeviceSynchronize(), sticky);
  after("a kernel launch into another stream", launch(other, {}, put_word, Marks::next(), Word(1)), sticky);
  void* more = nullptr;
  after("cudaMalloc", cudaMalloc(&more, 4096), sticky);
  after("cudaHostAlloc", cudaHostAlloc(&more, 4096, cudaHostAllocDefault), sticky);
  Word seen = 0;
  after("cudaMemcpy from the card", cudaMemcpy(&seen, memory, 8, cudaMemcpyDeviceToHost), sticky);
  after("cudaEventCreate", cudaEventCreate(&event), sticky);
  after("cudaEventQuery", cudaEventQuery(event), sticky);
  cudaStream_t made = nullptr;
  after("cudaStreamCreate", cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), sticky);
  cudaPointerAttributes attributes;
  after("cudaPointerGetAttributes", cudaPointerGetAttributes(&attributes, memory), "unknown");
  std::size_t free_bytes = 0, all_bytes = 0;
  after("cudaMemGetInfo", cudaMemGetInfo(&free_bytes, &all_bytes), sticky);
  int count = 0;
  after("cudaGetDeviceCount", cudaGetDeviceCount(&count), "cudaSuccess");
  after("cudaStreamDestroy", cudaStreamDestroy(other), sticky);
  after("cudaFree", cudaFree(memory), sticky);
  said("after an illegal address: pinned memory can be read by the host", now_in(pinned) == 77, "yes");
  cudaGetLastError();
  told("after an illegal address: begin anew", begun_anew(1.5e6), "a reset that helps");
}

void fault_seen_first(const Options&) {
  const cudaStream_t stream = new_stream(), other = new_stream();
  Word* const mark = Marks::next();
  cudaEvent_t event;
  TRANSHIP_CUDA(cudaEventCreate(&event));
  TRANSHIP_CUDA(cudaEventRecord(event, other));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  void* memory = nullptr;
  TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
  usleep(50000);
  const std::pair<const char*, std::function<cudaError_t()>> calls[] = {
      {"cudaPeekAtLastError", [] { return cudaPeekAtLastError(); }},
      {"cudaGetLastError", [] { return cudaGetLastError(); }},
      {"cudaGetDevice",
       [] {
         int device = 0;
         return cudaGetDevice(&device);
       }},
      {"cudaEventQuery of an event that was complete before", [&] { return cudaEventQuery(event); }},
      {"cudaEventRecord into another stream", [&] { return cudaEventRecord(event, other); }},
      {"a kernel launch into another stream", [&] { return launch(other, {}, put_word, mark, Word(1)); }},
      {"cudaMalloc", [&] { return cudaMalloc(&memory, 1 << 20); }},
      {"cudaStreamQuery of another stream", [&] { return cudaStreamQuery(other); }},
      {"cudaStreamQuery of the stream", [&] { return cudaStreamQuery(stream); }},
      {"cudaDeviceSynchronize", [] { return cudaDeviceSynchronize(); }},
  };
  std::string first, before;
  for (const auto& [name, call] : calls) {
    const cudaError_t status = call();
    if (status != cudaSuccess && status != cudaErrorNotReady) {
      first = std::string(name) + ": " + plain_name(status);
      break;
    }
    before += (before.empty() ? "" : ", ") + std::string(name);
  }
  answer("50 ms after a kernel has failed and nothing was asked, the first call that says so, in this order",
         first.empty() ? "none" : first, "these say nothing: " + before + "; expected: the launch into another stream");
  said("a kernel that was launched into another stream before the error was known has run", now_in(mark) == 1, "no");
}

void fault_beside_others(const Options&) {
  const cudaStream_t stream = new_stream(), idle = new_stream(), busy = new_stream();
  Word* const behind = Marks::next();
  cudaEvent_t event;
  TRANSHIP_CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  const Gate gate(busy, 0.5);
  TRANSHIP_CUDA(launch(busy, {}, put_word, behind, Word(1)));
  TRANSHIP_CUDA(cudaEventRecord(event, busy));
  TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
  const double begin = now_us();
  const cudaError_t of_idle = cudaStreamSynchronize(idle);
  const cudaError_t of_busy_query = cudaStreamQuery(busy);
  const double at_once = now_us() - begin;
  usleep(20000);
  const bool held = gate.holds();
  const cudaError_t of_event = cudaEventQuery(event);
  const cudaError_t of_idle_later = cudaStreamSynchronize(idle);
  gate.open();
  const double sync_begin = now_us();
  const cudaError_t of_busy = cudaStreamSynchronize(busy);
  const double sync_us = now_us() - sync_begin;
  usleep(20000);
  answer("a kernel fails in one stream: cudaStreamSynchronize of an idle stream at once, and 20 ms later",
         plain_name(of_idle) + ", " + plain_name(of_idle_later),
         "cudaStreamQuery of a busy one: " + plain_name(of_busy_query) + "; after " + us_text(at_once) +
             "; expected: cudaSuccess, then the error of the other stream");
  answer("a kernel fails in one stream while a kernel spins in another: cudaEventQuery of an event behind that",
         plain_name(of_event), "expected: the error of the other stream");
  answer("a kernel fails in one stream: cudaStreamSynchronize of a stream in which another spins", plain_name(of_busy),
         "after " + us_text(sync_us) + "; expected: the error of the other stream");
  told("a kernel fails in one stream: the kernel that spins in another",
       !held               ? "had given up before"
       : gate.ended() == 1 ? "goes on and ends when it is told to"
       : gate.ended() == 2 ? "goes on until it gives up"
                           : "is ended",
       "is ended");
  said("a kernel fails in one stream: the kernel behind the one that spins in another runs", now_in(behind) == 1, "no");
}

void fault_before_host_functions(const Options&) {
  struct Call {
    std::atomic<int> done{0}, status{-1};
    static void CUDART_CB run(void* at) { static_cast<Call*>(at)->done = 1; }
    static void CUDART_CB run_with_status(cudaStream_t, cudaError_t status, void* at) {
      static_cast<Call*>(at)->status = int(status);
      static_cast<Call*>(at)->done = 1;
    }
  };
  static Call before, behind, callback, elsewhere, later;
  const cudaStream_t stream = new_stream(), other = new_stream();
  TRANSHIP_CUDA(cudaLaunchHostFunc(stream, Call::run, &before));
  TRANSHIP_CUDA(cudaLaunchHostFunc(other, Call::run, &before));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  {
    // Everything is enqueued before the error can be known.
    const Gate gate(stream);
    TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
    TRANSHIP_CUDA(cudaLaunchHostFunc(stream, Call::run, &behind));
    TRANSHIP_CUDA(cudaStreamAddCallback(stream, Call::run_with_status, &callback, 0));
    gate.open();
  }
  const cudaError_t first = cudaStreamSynchronize(stream);
  const cudaError_t status = cudaLaunchHostFunc(other, Call::run, &later);
  usleep(50000);
  answer("a host function behind a kernel that fails", behind.done ? "is called" : "is not called",
         "synchronization: " + plain_name(first) + "; expected: is not called");
  answer("a callback of cudaStreamAddCallback behind a kernel that fails",
         callback.done ? "is called with " + plain_name(cudaError_t(int(callback.status))) : "is not called",
         "expected: is called with the error");
  answer("cudaLaunchHostFunc after a kernel has failed",
         plain_name(status) + (later.done ? ", is called" : ", is not called"), "expected: the error, is not called");
}

void fault_quietly(const Options&) {
  const cudaStream_t stream = new_stream();
  TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
  if (cudaStreamSynchronize(stream) == cudaSuccess) fault("a store to an address that is no memory did not fail");
  std::_Exit(0);
}

void fault_in_another_process(const Options& options) {
  const Stream stream, other;
  Word* const mark = Marks::next();
  const Gate gate(stream, 1);
  TRANSHIP_CUDA(launch(stream, {}, put_word, mark, Word(1)));
  const double begin = now_us();
  const int status = run_case("fault quietly", options.quick(), 4);
  const double us = now_us() - begin;
  const bool held = gate.holds();
  int failed = 0, runs = 0;
  for (; runs < 100; ++runs) {
    Word* const each = Marks::next();
    const cudaError_t launched = launch(other, {}, put_word, each, Word(1));
    const cudaError_t synchronized = cudaStreamSynchronize(other);
    failed += launched != cudaSuccess || synchronized != cudaSuccess || now_in(each) != 1;
  }
  gate.open();
  const cudaError_t of_gate = cudaStreamSynchronize(stream);
  said("a process goes on after a kernel of another process has failed", failed == 0, "yes",
       std::to_string(failed) + " of " + std::to_string(runs) + " kernels failed; the other process ended with " +
           std::to_string(status) + " after " + us_text(us));
  answer("a kernel that spins while a kernel of another process fails",
         plain_name(of_gate) +
             (now_in(mark) == 1 ? ", and the kernel behind it runs" : ", and the kernel behind it does not run"),
         std::string(held ? "it still spun when the other process had ended"
                          : "it had given up before the other process ended") +
             "; expected: cudaSuccess, and the kernel behind it runs");
}

void fault_by_trap(const Options&) {
  ask_fault("a kernel that traps", "cudaErrorLaunchFailure", [](cudaStream_t s) { return launch(s, {}, trap); });
}
void fault_by_assertion(const Options&) {
  ask_fault("a kernel whose assertion fails", "cudaErrorAssert", [](cudaStream_t s) {
    return launch(s, {1, 32}, fail_assertion, 2);
  });
}
void fault_by_misalignment(const Options&) {
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 4096));
  ask_fault("a store of 8 bytes at an address that 8 does not divide", "cudaErrorMisalignedAddress",
            [&](cudaStream_t s) { return launch(s, {}, store_misaligned, static_cast<Word*>(memory), 4u); });
}
void fault_beyond_shared(const Options&) {
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 4096));
  ask_fault("a store 1 MiB beyond shared memory", "cudaErrorIllegalAddress or cudaErrorLaunchFailure",
            [&](cudaStream_t s) { return launch(s, {}, store_beyond_shared, 1u << 20, static_cast<Word*>(memory)); });
}
void fault_by_recursion(const Options&) {
  std::size_t bytes = 0;
  TRANSHIP_CUDA(cudaDeviceGetLimit(&bytes, cudaLimitStackSize));
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 4096));
  ask_fault("a recursion of 100000 calls of 256 bytes each, stack limit " + std::to_string(bytes) + " bytes",
            "cudaErrorIllegalAddress or cudaErrorLaunchFailure",
            [&](cudaStream_t s) { return launch(s, {}, recurse, Word(100000), static_cast<Word*>(memory)); });
}
void fault_in_graph(const Options&) {
  const cudaStream_t stream = new_stream();
  Word* const mark = Marks::next();
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  TRANSHIP_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  TRANSHIP_CUDA(launch(stream, {}, store_at, nowhere(), Word(1)));
  TRANSHIP_CUDA(launch(stream, {}, put_word, mark, Word(1)));
  TRANSHIP_CUDA(cudaStreamEndCapture(stream, &graph));
  TRANSHIP_CUDA(cudaGraphInstantiate(&executable, graph, 0));
  ask_fault(
      "a kernel of a graph stores to an address that is no memory", "cudaErrorIllegalAddress",
      [&](cudaStream_t s) { return cudaGraphLaunch(executable, s); }, mark);
}
void fault_after_free(const Options&) {
  void* memory = nullptr;
  TRANSHIP_CUDA(cudaMalloc(&memory, 64 << 20));
  TRANSHIP_CUDA(cudaFree(memory));
  ask_fault("a store to an allocation of 64 MiB that was freed", "cudaErrorIllegalAddress",
            [&](cudaStream_t s) { return launch(s, {}, store_at, static_cast<Word*>(memory), Word(1)); });
}
void launch_into_destroyed_stream(const Options&) {
  const cudaStream_t stream = new_stream();
  Word* const mark = Marks::next();
  TRANSHIP_CUDA(cudaStreamDestroy(stream));
  const cudaError_t status = launch(stream, {}, put_word, mark, Word(1));
  const cudaError_t synchronized = cudaDeviceSynchronize();
  told("a launch into a stream that was destroyed",
       plain_name(status) + ", " + plain_name(synchronized) + (comes(mark, 50) ? ", and the kernel runs" : ""),
       "undefined: an error, or the end of the process");
  told("cudaStreamDestroy for the second time", plain_name(cudaStreamDestroy(stream)),
       "undefined: an error, or the end of the process");
}

}  // namespace tranship::device
