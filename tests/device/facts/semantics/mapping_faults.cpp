// Asks about memory that is reserved, mapped without access, mapped read-only, or unmapped while a kernel reads it.
// Each function may lose its context.
#include "facts/semantics/cases.hpp"
#include "facts/semantics/mapping.hpp"

namespace tranship::device {
namespace {

std::string plain_name(cudaError_t status) {
  return cudaGetErrorName(status);
}

/// Runs a store and reports the result.
void ask_store(const std::string& name, CUdeviceptr at, const std::string& expectation) {
  const cudaStream_t stream = new_stream();
  const cudaError_t launched = launch(stream, {}, store_at, words_at(at), Word(1));
  const cudaError_t status = cudaStreamSynchronize(stream);
  void* memory = nullptr;
  const cudaError_t allocated = cudaMalloc(&memory, 4096);
  answer(name, plain_name(status),
         "the launch: " + plain_name(launched) + "; cudaMalloc after it: " + plain_name(allocated) +
             "; expected: " + expectation);
}

}  // namespace

void fault_unmapped(const Options&) {
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, chunk_bytes(), 0, 0, 0));
  ask_store("a store to memory that is reserved and not mapped", at, "cudaErrorIllegalAddress");
}

void fault_without_access(const Options&) {
  const Physical physical = created(Physical::Sharing::none);
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, physical.bytes, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemMap(at, physical.bytes, 0, physical.handle, 0));
  ask_store("a store to memory that is mapped without cuMemSetAccess", at, "cudaErrorIllegalAddress");
}

void fault_read_only(const Options&) {
  const Driver& driver = Driver::get();
  const Physical physical = created(Physical::Sharing::none);
  CUdeviceptr at = 0;
  CUmemAccessDesc access = read_and_write();
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, physical.bytes, 0, 0, 0));
  TRANSHIP_DRIVER(cuMemMap(at, physical.bytes, 0, physical.handle, 0));
  TRANSHIP_DRIVER(cuMemSetAccess(at, physical.bytes, &access, 1));
  Word value = 1234567;
  TRANSHIP_CUDA(cudaMemcpy(words_at(at), &value, sizeof value, cudaMemcpyHostToDevice));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  CUresult status = driver.cuMemSetAccess(at, physical.bytes, &access, 1);
  told("cuMemSetAccess from read and write to read only", driver.error(status), "success or CUDA_ERROR_NOT_SUPPORTED");
  if (status != CUDA_SUCCESS) return;
  const cudaStream_t stream = new_stream();
  Word* const seen = Marks::next();
  TRANSHIP_CUDA(launch(stream, {}, load_from, static_cast<const Word*>(words_at(at)), seen));
  const cudaError_t loaded = cudaStreamSynchronize(stream);
  told("a load from read-only memory",
       plain_name(loaded) + (now_in(seen) == value ? ", the right word" : ", a wrong word"),
       "cudaSuccess, the right word");
  // The copy comes first, because it may be refused without loss of the context.
  value = 7654321;
  const cudaError_t copied = cudaMemcpy(words_at(at), &value, sizeof value, cudaMemcpyHostToDevice);
  const cudaError_t end = cudaDeviceSynchronize();
  told("cudaMemcpy to read-only memory", plain_name(copied) + ", then " + plain_name(end),
       "cudaErrorInvalidValue, or an error that ends the context");
  ask_store("a store to read-only memory", at, "cudaErrorIllegalAddress");
}

void fault_unmapped_in_use(const Options&) {
  const Driver& driver = Driver::get();
  const Physical physical = created(Physical::Sharing::none);
  const CUdeviceptr at = mapped(physical);
  CardArray<Word>& sum = *new CardArray<Word>(1);
  Word* const started = Marks::next();
  const cudaStream_t stream = new_stream(), other = new_stream();
  TRANSHIP_CUDA(cudaMemset(words_at(at), 1, physical.bytes));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const double length_us = 300e3;
  TRANSHIP_CUDA(launch(stream, {1, 256}, keep_reading, static_cast<const Word*>(words_at(at)),
                       unsigned(physical.bytes / sizeof(Word)), Word(length_us * 1e3), started, sum.data()));
  if (!comes(started)) return fault("a kernel that reads does not start");
  const double begin = now_us();
  const CUresult status = driver.cuMemUnmap(at, physical.bytes);
  const double us = now_us() - begin;
  const cudaError_t at_return = cudaStreamQuery(stream);
  const cudaError_t end = cudaStreamSynchronize(stream);
  const double end_us = now_us() - begin;
  answer("cuMemUnmap of memory that a kernel reads meanwhile",
         driver.error(status) +
             (at_return == cudaErrorNotReady ? ", returns while it runs"
              : us > length_us / 2           ? ", waits for it"
                                             : ", the kernel is over") +
             "; the kernel ends with " + plain_name(end),
         "returned after " + us_text(us) + ", the kernel ended after " + us_text(end_us) +
             "; expected: returns, and the kernel ends with cudaErrorIllegalAddress");
  Word* const mark = Marks::next();
  const cudaError_t launched = launch(other, {}, put_word, mark, Word(1));
  told("a kernel launch after that", plain_name(launched) + ", " + plain_name(cudaStreamSynchronize(other)),
       "cudaErrorIllegalAddress");
}

void copy_to_unmapped(const Options&) {
  const std::size_t bytes = chunk_bytes();
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, bytes, 0, 0, 0));
  PinnedArray<Word>& pinned = *new PinnedArray<Word>(512);
  const cudaStream_t stream = new_stream();
  const auto asked = [&](const std::string& what, const auto& call) {
    const cudaError_t status = call();
    const cudaError_t end = cudaStreamSynchronize(stream);
    cudaGetLastError();
    const cudaError_t after = cudaStreamSynchronize(stream);
    told(what + " of reserved memory that is not mapped",
         plain_name(status) + ", then " + plain_name(end) + ", and after that " + plain_name(after),
         "cudaErrorInvalidValue, then cudaSuccess");
    return end == cudaSuccess && after == cudaSuccess;
  };
  if (!asked("cudaMemcpyAsync to 4 KiB from pinned memory",
             [&] { return cudaMemcpyAsync(words_at(at), pinned.data(), 4096, cudaMemcpyHostToDevice, stream); }))
    return;
  if (!asked("cudaMemcpyAsync, kind default, to 4 KiB from pinned memory",
             [&] { return cudaMemcpyAsync(words_at(at), pinned.data(), 4096, cudaMemcpyDefault, stream); }))
    return;
  asked("cudaMemsetAsync of 4 KiB", [&] { return cudaMemsetAsync(words_at(at), 1, 4096, stream); });
}

}  // namespace tranship::device
