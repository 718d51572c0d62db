// Asks which calls a capture allows in each mode, and which calls end it.
#include <array>
#include <atomic>
#include <thread>

#include "facts/driver.hpp"
#include "facts/semantics/cases.hpp"
#include "facts/semantics/graphs.hpp"

namespace tranship::device {
namespace {

void CUDART_CB count_call(void* at) {
  ++*static_cast<std::atomic<int>*>(at);
}

struct Scene {
  cudaStream_t captured = nullptr, other = nullptr, blocking = nullptr;
  cudaEvent_t event = nullptr;
  cudaGraphExec_t executable = nullptr;
  Word *card = nullptr, *pinned = nullptr, *mark = nullptr;
  std::vector<Word> pageable = std::vector<Word>(512);
  void* to_free = nullptr;
  std::vector<std::function<void()>> afterwards;
};
struct Call {
  std::string name;
  std::function<cudaError_t(Scene&)> call;
  std::string expectation;
};

const char* mode_name(cudaStreamCaptureMode mode) {
  return mode == cudaStreamCaptureModeGlobal        ? "global"
         : mode == cudaStreamCaptureModeThreadLocal ? "thread-local"
                                                    : "relaxed";
}

enum class Caller { same_thread, another_thread };

/// The answer covers all three modes.
void ask_call(Scene& scene, const Call& call, Caller caller, cudaStream_t captured) {
  std::string value;
  for (const cudaStreamCaptureMode mode :
       {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed}) {
    TRANSHIP_CUDA(cudaMalloc(&scene.to_free, 1 << 16));
    TRANSHIP_CUDA(cudaStreamBeginCapture(captured, mode));
    TRANSHIP_CUDA(put(captured, scene.mark));
    cudaError_t status = cudaSuccess;
    if (caller == Caller::same_thread) {
      status = call.call(scene);
    } else {
      std::thread other([&] {
        status = call.call(scene);
        cudaGetLastError();
      });
      other.join();
    }
    cudaStreamCaptureStatus is = cudaStreamCaptureStatusNone;
    const cudaError_t asked = cudaStreamIsCapturing(captured, &is);
    cudaGraph_t graph = nullptr;
    const cudaError_t end = cudaStreamEndCapture(captured, &graph);
    cudaGetLastError();
    if (graph != nullptr) cudaGraphDestroy(graph);
    value += (value.empty() ? "" : "; ") + std::string(mode_name(mode)) + ": " + name_of(status);
    if (end != cudaSuccess) value += ", capture lost: " + name_of(end);
    if ((is == cudaStreamCaptureStatusActive) != (end == cudaSuccess))
      value += ", cudaStreamIsCapturing said " + std::to_string(int(is)) + " and " + name_of(asked);
    for (const auto& each : scene.afterwards) each();
    scene.afterwards.clear();
    if (scene.to_free != nullptr) TRANSHIP_CUDA(cudaFree(scene.to_free));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    cudaGetLastError();
  }
  told("during a capture" + std::string(caller == Caller::same_thread ? "" : ", by another thread") +
           (captured == scene.blocking ? ", of a blocking stream" : "") + ": " + call.name,
       value, call.expectation);
}

}  // namespace

void ask_captures(const Options&) {
  Scene scene;
  const Stream captured, other;
  scene.captured = captured;
  scene.other = other;
  TRANSHIP_CUDA(cudaStreamCreate(&scene.blocking));
  const Event event(cudaEventDisableTiming);
  scene.event = event;
  CardArray<Word> card(512);
  PinnedArray<Word> pinned(512);
  scene.card = card.data();
  scene.pinned = pinned.data();
  scene.mark = Marks::next();
  TRANSHIP_CUDA(cudaEventRecord(event, other));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Graph graph(other, [&] { TRANSHIP_CUDA(put(other, scene.mark)); });
  const Executable executable(graph);
  scene.executable = executable;

  const std::string lost = "cudaErrorStreamCaptureUnsupported, and the capture is lost", fine = "cudaSuccess";
  const std::string unsafe = "global and thread-local: " + lost + "; relaxed: cudaSuccess";
  const auto free_later = [](Scene& s, cudaError_t status, auto& made, const auto& release) {
    if (status == cudaSuccess) s.afterwards.push_back([made, release] { release(made); });
    return status;
  };
  const auto calls = std::to_array<Call>({
      {"cudaStreamQuery of the captured stream", [](Scene& s) { return cudaStreamQuery(s.captured); }, lost},
      {"cudaStreamSynchronize of the captured stream", [](Scene& s) { return cudaStreamSynchronize(s.captured); },
       lost},
      {"cudaStreamQuery of another stream", [](Scene& s) { return cudaStreamQuery(s.other); }, unsafe},
      {"cudaStreamSynchronize of another stream", [](Scene& s) { return cudaStreamSynchronize(s.other); }, unsafe},
      {"cudaDeviceSynchronize", [](Scene&) { return cudaDeviceSynchronize(); }, lost},
      {"cudaEventQuery of a complete event", [](Scene& s) { return cudaEventQuery(s.event); }, unsafe},
      {"cudaEventSynchronize of a complete event", [](Scene& s) { return cudaEventSynchronize(s.event); }, unsafe},
      {"cudaEventCreate",
       [&](Scene& s) {
         cudaEvent_t made = nullptr;
         return free_later(s, cudaEventCreate(&made), made, [](cudaEvent_t e) { cudaEventDestroy(e); });
       },
       fine},
      {"cudaStreamCreateWithFlags",
       [&](Scene& s) {
         cudaStream_t made = nullptr;
         return free_later(s, cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), made,
                           [](cudaStream_t t) { cudaStreamDestroy(t); });
       },
       fine},
      {"a kernel launch into another stream", [](Scene& s) { return put(s.other, s.mark); }, fine},
      {"a kernel launch into the default stream", [](Scene& s) { return put(nullptr, s.mark); },
       "cudaSuccess, the captured stream is non-blocking"},
      {"cudaGraphLaunch into another stream", [](Scene& s) { return cudaGraphLaunch(s.executable, s.other); }, fine},
      {"cudaEventRecord into another stream", [](Scene& s) { return cudaEventRecord(s.event, s.other); }, fine},
      {"cudaMalloc",
       [&](Scene& s) {
         void* made = nullptr;
         return free_later(s, cudaMalloc(&made, 1 << 16), made, [](void* m) { cudaFree(m); });
       },
       unsafe},
      {"cudaFree",
       [](Scene& s) {
         const cudaError_t status = cudaFree(s.to_free);
         if (status == cudaSuccess) s.to_free = nullptr;
         return status;
       },
       unsafe},
      {"cudaHostAlloc",
       [&](Scene& s) {
         void* made = nullptr;
         return free_later(s, cudaHostAlloc(&made, 1 << 16, cudaHostAllocDefault), made,
                           [](void* m) { cudaFreeHost(m); });
       },
       unsafe},
      {"cudaMallocAsync and cudaFreeAsync in the captured stream",
       [](Scene& s) {
         void* made = nullptr;
         const cudaError_t status = cudaMallocAsync(&made, 1 << 16, s.captured);
         return status == cudaSuccess ? cudaFreeAsync(made, s.captured) : status;
       },
       fine},
      {"cudaMallocAsync and cudaFreeAsync in another stream",
       [](Scene& s) {
         void* made = nullptr;
         const cudaError_t status = cudaMallocAsync(&made, 1 << 16, s.other);
         return status == cudaSuccess ? cudaFreeAsync(made, s.other) : status;
       },
       fine},
      {"cudaMemcpy from pageable memory",
       [](Scene& s) { return cudaMemcpy(s.card, s.pageable.data(), 4096, cudaMemcpyHostToDevice); }, unsafe},
      {"cudaMemset", [](Scene& s) { return cudaMemset(s.card, 1, 4096); }, unsafe},
      {"cudaMemcpyAsync from pageable memory into another stream",
       [](Scene& s) { return cudaMemcpyAsync(s.card, s.pageable.data(), 4096, cudaMemcpyHostToDevice, s.other); },
       fine},
      {"cudaMemcpyAsync from pinned memory into another stream",
       [](Scene& s) { return cudaMemcpyAsync(s.card, s.pinned, 4096, cudaMemcpyHostToDevice, s.other); }, fine},
      {"cudaMemGetInfo",
       [](Scene&) {
         std::size_t free_bytes = 0, all = 0;
         return cudaMemGetInfo(&free_bytes, &all);
       },
       fine},
      {"cudaPointerGetAttributes",
       [](Scene& s) {
         cudaPointerAttributes attributes;
         return cudaPointerGetAttributes(&attributes, s.card);
       },
       fine},
      {"cudaGetLastError", [](Scene&) { return cudaGetLastError(); }, fine},
      {"cudaLaunchHostFunc into the captured stream",
       [](Scene& s) {
         static std::atomic<int> calls_made{0};
         return cudaLaunchHostFunc(s.captured, count_call, &calls_made);
       },
       fine},
      {"cuStreamWriteValue64 into the captured stream",
       [](Scene& s) {
         const Driver& driver = Driver::get();
         if (driver.cuStreamWriteValue64 == nullptr) return cudaErrorNotSupported;
         const CUresult status = driver.cuStreamWriteValue64(s.captured, reinterpret_cast<CUdeviceptr>(s.card), 1, 0);
         // The runtime and the driver number these errors alike.
         return cudaError_t(int(status));
       },
       fine},
      {"a launch with a bad configuration into the captured stream",
       [](Scene& s) {
         return launch(s.captured, {1, 2048}, put_word, s.mark, Word(1));
       },
       "cudaErrorInvalidValue or cudaErrorInvalidConfiguration, the capture goes on or is lost"},
      {"cudaStreamDestroy of another stream",
       [](Scene&) {
         cudaStream_t made = nullptr;
         const cudaError_t status = cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking);
         return status == cudaSuccess ? cudaStreamDestroy(made) : status;
       },
       fine},
      {"cudaGraphInstantiate of another graph",
       [&](Scene& s) {
         cudaGraphExec_t made = nullptr;
         return free_later(s, cudaGraphInstantiate(&made, graph, 0), made,
                           [](cudaGraphExec_t e) { cudaGraphExecDestroy(e); });
       },
       fine},
  });
  Driver::get();
  for (const Call& call : calls) ask_call(scene, call, Caller::same_thread, scene.captured);
  const auto find = [&](const char* name) -> const Call& {
    for (const Call& call : calls)
      if (call.name == name) return call;
    return calls[0];
  };
  const auto with = [](Call call, const char* expectation) {
    call.expectation = expectation;
    return call;
  };
  const char* const by_others = "global: cudaErrorStreamCaptureUnsupported; thread-local and relaxed: cudaSuccess";
  for (const char* const name : {"cudaMalloc", "cudaFree", "cudaStreamQuery of another stream",
                                 "cudaEventQuery of a complete event", "cudaMemcpy from pageable memory"})
    ask_call(scene, with(find(name), by_others), Caller::another_thread, scene.captured);
  ask_call(scene, find("cudaDeviceSynchronize"), Caller::another_thread, scene.captured);
  ask_call(scene, with(find("a kernel launch into another stream"), "cudaSuccess"), Caller::another_thread,
           scene.captured);
  for (const char* const name : {"a kernel launch into the default stream", "cudaMemcpy from pageable memory"})
    ask_call(scene, with(find(name), "cudaErrorStreamCaptureImplicit, and the capture is lost"), Caller::same_thread,
             scene.blocking);
}

}  // namespace tranship::device
