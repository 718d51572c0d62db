// Asks about errors that do not end a context: which call reports what, whether the error stays, and what the last
// error is. Also asks about limits: a kernel of a second, division by zero, and more output of printf than the buffer
// holds.
#include <thread>

#include <sys/mman.h>
#include <sys/syscall.h>

#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

std::string plain_name(cudaError_t status) {
  return cudaGetErrorName(status);
}

/// Reports the status of the call, the last error then, the last error after that, and whether a kernel runs after it.
void wrong_call(const std::string& what, const std::string& expectation, const std::function<cudaError_t()>& call) {
  const Stream stream;
  Word* const mark = Marks::next();
  cudaGetLastError();
  const cudaError_t status = call();
  const cudaError_t peeked = cudaPeekAtLastError(), last = cudaGetLastError(), next = cudaGetLastError();
  const cudaError_t launched = launch(stream, {}, put_word, mark, Word(1));
  const cudaError_t synchronized = cudaStreamSynchronize(stream);
  const bool works = launched == cudaSuccess && synchronized == cudaSuccess && now_in(mark) == 1;
  std::string value = plain_name(status);
  if (last == status && peeked == status && status != cudaSuccess)
    value += "; also the last error";
  else if (status != cudaSuccess || last != cudaSuccess)
    value += "; the last error is " + plain_name(last);
  if (next != cudaSuccess) value += ", and stays so: " + plain_name(next);
  value += works ? "; a kernel runs after it"
                 : "; a kernel after it: " + plain_name(launched) + ", " + plain_name(synchronized);
  told(what, value, expectation);
  cudaGetLastError();
}

void wrong_calls() {
  const Stream stream;
  CardArray<Word> card(512);
  PinnedArray<Word> pinned(512);
  std::vector<Word> pageable(512);
  const cudaStream_t s = stream;
  const auto launched = [&](Grid grid) { return launch(s, grid, put_word, card.data(), Word(1)); };
  const std::string invalid = "cudaErrorInvalidValue", configuration = "cudaErrorInvalidConfiguration";
  wrong_call("a launch of 2048 lanes a block", configuration, [&] { return launched({1, 2048}); });
  wrong_call("a launch of 0 lanes a block", configuration, [&] { return launched({1, 0}); });
  wrong_call("a launch of 0 blocks", configuration, [&] { return launched({0, 32}); });
  wrong_call("a launch with 300 KiB of shared memory", invalid, [&] { return launched({1, 32, 300 << 10}); });
  wrong_call("a launch with 64 KiB of shared memory without cudaFuncSetAttribute", invalid, [&] {
    return launched({1, 32, 64 << 10});
  });
  wrong_call("a cooperative launch of more blocks than the card holds", "cudaErrorCooperativeLaunchTooLarge", [&] {
    Word* at = card.data();
    Word value = 1;
    void* pointers[] = {&at, &value};
    return cudaLaunchCooperativeKernel(symbol(put_word), dim3(1 << 20), dim3(1024), pointers, 0, s);
  });
  wrong_call("cudaMalloc of 2^60 bytes", "cudaErrorMemoryAllocation", [&] {
    void* at = nullptr;
    return cudaMalloc(&at, std::size_t(1) << 60);
  });
  wrong_call("cudaMalloc of 0 bytes", "cudaSuccess, a null pointer", [&] {
    void* at = &card;
    const cudaError_t status = cudaMalloc(&at, 0);
    if (at != nullptr && status == cudaSuccess) {
      cudaFree(at);
      return cudaErrorUnknown;
    }
    return status;
  });
  wrong_call("cudaFree of a null pointer", "cudaSuccess", [&] { return cudaFree(nullptr); });
  wrong_call("cudaFree of a pointer of the host", invalid, [&] { return cudaFree(pageable.data()); });
  wrong_call("cudaFree of pinned memory", invalid, [&] { return cudaFree(pinned.data()); });
  wrong_call("cudaFree of an address inside an allocation", invalid, [&] { return cudaFree(card.data() + 1); });
  wrong_call("cudaFree for the second time", invalid, [&] {
    void* at = nullptr;
    TRANSHIP_CUDA(cudaMalloc(&at, 4096));
    TRANSHIP_CUDA(cudaFree(at));
    return cudaFree(at);
  });
  wrong_call("cudaHostRegister of registered memory", "cudaErrorHostMemoryAlreadyRegistered", [&] {
    TRANSHIP_CUDA(cudaHostRegister(pageable.data(), 4096, cudaHostRegisterDefault));
    const cudaError_t status = cudaHostRegister(pageable.data(), 4096, cudaHostRegisterDefault);
    TRANSHIP_CUDA(cudaHostUnregister(pageable.data()));
    return status;
  });
  wrong_call("cudaHostUnregister of memory that is not registered", "cudaErrorHostMemoryNotRegistered",
             [&] { return cudaHostUnregister(pageable.data()); });
  wrong_call("cudaMemcpy of 0 bytes between null pointers", "cudaSuccess",
             [&] { return cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault); });
  wrong_call("cudaSetDevice of a card that is not there", "cudaErrorInvalidDevice", [] { return cudaSetDevice(99); });
  wrong_call("cudaPointerGetAttributes of pageable memory", "cudaSuccess, of type unregistered", [&] {
    cudaPointerAttributes attributes = {};
    const cudaError_t status = cudaPointerGetAttributes(&attributes, pageable.data());
    return status == cudaSuccess && attributes.type != cudaMemoryTypeUnregistered ? cudaErrorUnknown : status;
  });
  wrong_call("cudaStreamQuery while a kernel holds the stream",
             "cudaErrorNotReady; whether it is the last error is asked", [&] {
               const Stream other;
               const Gate gate(other, 0.02);
               return cudaStreamQuery(other);
             });
  wrong_call("a wrong launch and a right one after it, without a look at the last error",
             "cudaSuccess; the last error is that of the first", [&] {
               launched({1, 2048});
               return launched({1, 32});
             });
  // Each thread has a last error of its own.
  launched({1, 2048});
  cudaError_t of_another = cudaErrorUnknown;
  std::thread([&] { of_another = cudaGetLastError(); }).join();
  told("the last error as another thread sees it", plain_name(of_another), "cudaSuccess, each thread has its own");
  cudaGetLastError();
}

/// These may end the context or the process.
void wrong_memory() {
  const Stream stream;
  CardArray<Word> card(512);
  std::vector<Word> pageable(512);
  const cudaStream_t s = stream;
  const std::string invalid = "cudaErrorInvalidValue";
  wrong_call("cudaMemcpy past the end of an allocation of 4 KiB, by 1 MiB", "cudaErrorInvalidValue, or it copies", [&] {
    std::vector<Word> much((1 << 20) / 8);
    return cudaMemcpy(much.data(), card.data(), 1 << 20, cudaMemcpyDeviceToHost);
  });
  wrong_call("cudaMemcpy to an address that is no memory of the card, kind host to device", invalid, [&] {
    return cudaMemcpy(reinterpret_cast<void*>(std::uintptr_t(0x123456789000)), pageable.data(), 4096,
                      cudaMemcpyHostToDevice);
  });
  wrong_call("cudaMemcpy with kind device to device from pageable memory", invalid,
             [&] { return cudaMemcpy(card.data(), pageable.data(), 4096, cudaMemcpyDeviceToDevice); });
  wrong_call("cudaMemcpy with kind host to device from the card to the card", "cudaErrorInvalidValue, or it copies",
             [&] { return cudaMemcpy(card.data() + 256, card.data(), 2048, cudaMemcpyHostToDevice); });
  wrong_call("cudaMemcpy of 8 bytes to a null pointer", invalid,
             [&] { return cudaMemcpy(nullptr, card.data(), 8, cudaMemcpyDefault); });
  wrong_call("cudaEventDestroy of a null event", "cudaErrorInvalidResourceHandle",
             [] { return cudaEventDestroy(nullptr); });
  wrong_call("cudaStreamDestroy of the default stream", "cudaErrorInvalidResourceHandle",
             [] { return cudaStreamDestroy(nullptr); });
  wrong_call("cudaEventRecord of a null event", "cudaErrorInvalidResourceHandle",
             [&] { return cudaEventRecord(nullptr, s); });
  wrong_call("cudaStreamWaitEvent of a null event", "cudaErrorInvalidResourceHandle",
             [&] { return cudaStreamWaitEvent(s, nullptr, 0); });
  wrong_call("cudaLaunchKernel of a null function", "cudaErrorInvalidDeviceFunction or cudaErrorInvalidValue", [&] {
    void* nothing[] = {nullptr};
    return cudaLaunchKernel(static_cast<const void*>(nullptr), dim3(1), dim3(1), nothing, 0, s);
  });
  wrong_call("cudaFreeHost of pageable memory", invalid, [&] { return cudaFreeHost(pageable.data()); });
  wrong_call("cudaMemcpy with kind host to host between pieces of the card", "cudaErrorInvalidValue, or it copies",
             [&] { return cudaMemcpy(card.data() + 256, card.data(), 2048, cudaMemcpyHostToHost); });
}

void kernel_of_a_second() {
  const Stream stream;
  told("the card ends kernels that run for long", attribute(cudaDevAttrKernelExecTimeout) != 0 ? "yes" : "no", "no");
  const double begin = now_us();
  const Gate gate(stream, 1);
  const cudaError_t status = cudaStreamSynchronize(stream);
  told("a kernel that runs for a second",
       name_of(status) + " after " + std::to_string(int((now_us() - begin) / 1e3)) + " ms", "cudaSuccess");
}

void division() {
  CardArray<int> out(2);
  out.fill(0xa5);
  const Stream stream;
  const cudaError_t launched = launch(stream, {}, divide, 7, 0, out.data());
  const cudaError_t status = cudaStreamSynchronize(stream);
  if (launched != cudaSuccess || status != cudaSuccess)
    return told("an integer divided by zero in a kernel", name_of(launched) + ", " + name_of(status), "no error");
  const std::vector<int> seen = out.read();
  told("an integer divided by zero in a kernel",
       "no error; 7 / 0 is " + std::to_string(seen[0]) + ", 7 % 0 is " + std::to_string(seen[1]), "no error");
}

/// Kernels print to standard output, which is a file in memory meanwhile.
void printing() {
  std::size_t bytes = 0;
  TRANSHIP_CUDA(cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
  const unsigned lines = 200000;
  const int file = int(syscall(SYS_memfd_create, "printed", 0u));
  std::fflush(stdout);
  const int kept = dup(1);
  if (file < 0 || kept < 0) return fault("no file in memory for what kernels print");
  dup2(file, 1);
  // The kernel is loaded first, so that only the launch counts.
  cudaError_t launched = launch(nullptr, {}, print_lines, 0u);
  cudaError_t status = cudaDeviceSynchronize();
  std::string early;
  if (launched == cudaSuccess && status == cudaSuccess) {
    launched = launch(nullptr, {1, 32}, print_lines, 1u);
    usleep(5000);
    std::fflush(stdout);
    early = lseek(file, 0, SEEK_END) > 0 ? "before a synchronization" : "at a synchronization";
    status = cudaDeviceSynchronize();
    launched = launch(nullptr, {64, 256}, print_lines, lines);
    status = cudaDeviceSynchronize();
  }
  std::fflush(stdout);
  dup2(kept, 1);
  close(kept);
  unsigned seen = 0;
  char buffer[65536];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got = read(file, buffer, sizeof buffer); got > 0; got = read(file, buffer, sizeof buffer))
    for (ssize_t i = 0; i < got; ++i) seen += buffer[i] == '\n';
  close(file);
  told("a kernel that prints " + std::to_string(lines) + " lines into a buffer of " + std::to_string(bytes) + " bytes",
       name_of(launched) + ", " + name_of(status) + ", " + std::to_string(seen == 0 ? 0 : seen - 1) + " lines come",
       "no error, some thousand lines come");
  told("what a kernel prints comes", early, "at a synchronization");
}

}  // namespace

void ask_errors(const Options&) {
  wrong_calls();
}

void ask_wrong_memory(const Options&) {
  wrong_memory();
}

void ask_limits(const Options& options) {
  division();
  printing();
  if (!options.quick()) kernel_of_a_second();
}

}  // namespace tranship::device
