// Measures virtual memory of the card by the driver's calls: granularity, reserving room for all ranks, the time of
// mapping, one memory at two addresses, export and import by a file descriptor in one process, and multicast on a
// single card.
#include "facts/driver.hpp"
#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

void attributes() {
  const Driver& driver = Driver::get();
  const std::pair<CUdevice_attribute, const char*> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, "virtual memory management"},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, "handles as POSIX file descriptors"},
      {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, "fabric handles"},
      {CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, "multicast"},
      {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, "GPUDirect RDMA of mapped memory"},
      {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, "dma-buf"},
      {CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, "native atomics on host memory"},
      {CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, "access to pageable memory"},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, "concurrent managed access"},
      {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, "64-bit stream memory operations"},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, "copy engines"},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, "L2 bytes"},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, "compute preemption"},
  };
  for (const auto& [which, name] : wanted)
    answer(std::string("device attribute: ") + name, std::to_string(driver.attribute(which)));
}

void map_times(const Options& options) {
  const Driver& driver = Driver::get();
  const std::size_t least = Physical::granularity(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  const std::size_t best = Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  answer("granularity of cuMemCreate, minimum", std::to_string(least), "bytes; expected: 2 MiB");
  answer("granularity of cuMemCreate, recommended", std::to_string(best), "bytes; expected: 2 MiB");
  for (const std::size_t stride_gib : {std::size_t(16), std::size_t(128), std::size_t(1024)}) {
    const std::size_t bytes = (stride_gib << 30) * 64;
    CUdeviceptr at = 0;
    const double begin = now_us();
    const CUresult status = driver.cuMemAddressReserve(&at, bytes, 0, 0, 0);
    const double us = now_us() - begin;
    answer("reserve addresses for 64 ranks of " + std::to_string(stride_gib) + " GiB", driver.error(status),
           std::to_string(us) + " us");
    if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemAddressFree(at, bytes));
  }

  const std::size_t chunk = std::max<std::size_t>(best, 2 << 20);
  const int count = options.quick() ? 8 : 64;
  const CUmemAllocationProp properties = Physical::properties(Physical::Sharing::file_descriptor);
  const CUmemAccessDesc access = read_and_write();
  Samples create, map, set_access, set_access_all, unmap_time, release;
  CUdeviceptr at = 0;
  TRANSHIP_DRIVER(cuMemAddressReserve(&at, chunk * std::size_t(count), 0, 0, 0));
  const auto timed = [](Samples& into, const auto& call) {
    const double begin = now_us();
    call();
    into.values.push_back(now_us() - begin);
  };
  for (const bool at_once : {false, true}) {
    std::vector<CUmemGenericAllocationHandle> handles(std::size_t(count), 0);
    for (int i = 0; i < count; ++i) {
      const CUdeviceptr place = at + chunk * std::size_t(i);
      auto& handle = handles[std::size_t(i)];
      timed(create, [&] { TRANSHIP_DRIVER(cuMemCreate(&handle, chunk, &properties, 0)); });
      timed(map, [&] { TRANSHIP_DRIVER(cuMemMap(place, chunk, 0, handle, 0)); });
      if (!at_once) timed(set_access, [&] { TRANSHIP_DRIVER(cuMemSetAccess(place, chunk, &access, 1)); });
    }
    if (at_once)
      timed(set_access_all, [&] { TRANSHIP_DRIVER(cuMemSetAccess(at, chunk * std::size_t(count), &access, 1)); });
    TRANSHIP_CUDA(cudaMemset(reinterpret_cast<void*>(at), 0xa5, chunk * std::size_t(count)));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < count; ++i) {
      timed(unmap_time, [&] { TRANSHIP_DRIVER(cuMemUnmap(at + chunk * std::size_t(i), chunk)); });
      timed(release, [&] { TRANSHIP_DRIVER(cuMemRelease(handles[std::size_t(i)])); });
    }
  }
  TRANSHIP_DRIVER(cuMemAddressFree(at, chunk * std::size_t(count)));
  const std::string of = " of a chunk of " + std::to_string(chunk >> 20) + " MiB";
  figure("cuMemCreate" + of, create, "us");
  figure("cuMemMap" + of, map, "us");
  figure("cuMemSetAccess" + of, set_access, "us");
  figure("cuMemSetAccess of " + std::to_string(count) + " chunks at once", set_access_all, "us");
  figure("cuMemUnmap" + of, unmap_time, "us");
  figure("cuMemRelease" + of, release, "us");
}

// ---- one memory at two addresses ----

enum class Between { nothing, fence, alias, fence_and_alias };

template <Between between>
__device__ void order_aliases() {
  if constexpr (between == Between::fence || between == Between::fence_and_alias) fence_gpu();
  if constexpr (between == Between::alias || between == Between::fence_and_alias) fence_alias();
}

constexpr int alias_words = 1024;

/// Each lane writes its word at one address and reads it at the other, which its L1 may hold.
template <Between between>
__global__ void write_and_read(Word* one, Word* other, int rounds, Word* stale) {
  Word mine = 0;
  for (int round = 1; round <= rounds; ++round) {
    const unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) % alias_words;
    const Word old = load_weak(other + i);
    // The condition never holds; it keeps the load, which the assembler drops when nothing depends on it.
    store_weak(one + i, Word(round) + (old == ~0ull ? 1 : 0));
    order_aliases<between>();
    mine += load_weak(other + i) != Word(round);
  }
  if (mine != 0) atomicAdd(stale, mine);
}

/// Block 0 writes at one address, block 1 reads at the other; the signals are in other memory.
template <Between writer, Between reader>
__global__ void write_and_read_elsewhere(Word* one, Word* other, Word* signals, int rounds, Word* stale) {
  Word mine = 0;
  for (int round = 1; round <= rounds; ++round) {
    const int i = round * 37 % alias_words;
    int looks = 0;
    if (blockIdx.x == 0) {
      while (load_relaxed_gpu(signals) < Word(round) && ++looks < looks_max) {
      }
      store_weak(one + i, Word(round));
      order_aliases<writer>();
      store_relaxed_gpu(signals + 16, Word(round));
    } else {
      const Word old = load_weak(other + i);
      // The condition never holds: it makes the store wait for the load.
      store_relaxed_gpu(signals, Word(round) + (old == ~0ull ? 1 : 0));
      while (load_relaxed_gpu(signals + 16) < Word(round) && ++looks < looks_max) {
      }
      order_aliases<reader>();
      mine += load_weak(other + i) != Word(round);
    }
    if (looks == looks_max) break;
  }
  if (mine != 0) atomicAdd(stale, mine);
}
__global__ void write_all(Word* at, Word value) {
  at[threadIdx.x] = value + threadIdx.x;
}
__global__ void count_others(const Word* at, Word value, Word* stale) {
  if (at[threadIdx.x] != value + threadIdx.x) atomicAdd(stale, 1ull);
}

struct Aliases {
  Word* one;
  Word* other;
  CardArray<Word>& stale;
  int rounds;

  void clear() const {
    TRANSHIP_CUDA(cudaMemset(one, 0, alias_words * sizeof(Word)));
    stale.fill(0);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  void report(const std::string& name, long long cases, const std::string& expectation) const {
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    answer("stale words, one memory at two addresses: " + name, std::to_string(stale.read()[0]),
           "of " + std::to_string(cases) + "; expected: " + expectation);
  }
  template <Between between>
  void in_one_lane(const std::string& name, const std::string& expectation) const {
    clear();
    write_and_read<between><<<alias_words / 32, 32>>>(one, other, rounds, stale.data());
    report("written and read by one lane, " + name, (long long)rounds * alias_words, expectation);
  }
  template <Between writer, Between reader>
  void between_blocks(const std::string& name, const std::string& expectation) const {
    CardArray<Word> signals(32);
    signals.fill(0);
    clear();
    write_and_read_elsewhere<writer, reader><<<2, 1>>>(one, other, signals.data(), rounds * 4, stale.data());
    report("written by one block, read by another, " + name, (long long)rounds * 4, expectation);
  }
};

void aliases(const Options& options) {
  Physical physical;
  physical.bytes = std::max<std::size_t>(Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), 2 << 20);
  const CUmemAllocationProp properties = Physical::properties(Physical::Sharing::none);
  TRANSHIP_DRIVER(cuMemCreate(&physical.handle, physical.bytes, &properties, 0));
  const CUdeviceptr one = mapped(physical), other = mapped(physical);
  CardArray<Word> stale(1);
  const Aliases pair{reinterpret_cast<Word*>(one), reinterpret_cast<Word*>(other), stale, options.quick() ? 50 : 2000};
  pair.in_one_lane<Between::nothing>("no fence", "some or all, the L1 knows the other address as another line");
  pair.in_one_lane<Between::fence>("fence.acq_rel.gpu", "none on this card, though the model asks for the alias fence");
  pair.in_one_lane<Between::alias>("fence.proxy.alias", "none");
  pair.in_one_lane<Between::fence_and_alias>("fence.acq_rel.gpu and fence.proxy.alias", "none");
  pair.between_blocks<Between::nothing, Between::nothing>("no fence", "nearly all, the reader's L1");
  pair.between_blocks<Between::fence, Between::fence>("fence.acq_rel.gpu on both sides", "none or few");
  pair.between_blocks<Between::alias, Between::alias>("fence.proxy.alias on both sides", "unknown");
  pair.between_blocks<Between::fence_and_alias, Between::fence_and_alias>("both fences on both sides", "none");
  pair.clear();
  const int launches = options.quick() ? 20 : 500;
  for (int i = 1; i <= launches; ++i) {
    write_all<<<1, alias_words>>>(pair.one, Word(i) * 7919);
    count_others<<<1, alias_words>>>(pair.other, Word(i) * 7919, stale.data());
  }
  pair.report("written by one launch, read by the next", (long long)launches * alias_words, "none");
  unmap(one, physical);
  unmap(other, physical);
  TRANSHIP_DRIVER(cuMemRelease(physical.handle));
}

void export_and_import() {
  const Driver& driver = Driver::get();
  Physical physical;
  physical.bytes = std::max<std::size_t>(Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), 2 << 20);
  const CUmemAllocationProp properties = Physical::properties(Physical::Sharing::file_descriptor);
  CUresult status = driver.cuMemCreate(&physical.handle, physical.bytes, &properties, 0);
  if (status != CUDA_SUCCESS) return answer("memory exported by a file descriptor", "no", driver.error(status));
  int descriptor = -1;
  status =
      driver.cuMemExportToShareableHandle(&descriptor, physical.handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  answer("memory exported by a file descriptor", status == CUDA_SUCCESS ? "yes" : "no", driver.error(status));
  if (status != CUDA_SUCCESS) return;
  Physical imported = physical;
  status = driver.cuMemImportFromShareableHandle(&imported.handle, reinterpret_cast<void*>(std::intptr_t(descriptor)),
                                                 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  close(descriptor);
  answer("memory imported by a file descriptor in the same process", status == CUDA_SUCCESS ? "yes" : "no",
         driver.error(status) + "; expected: yes");
  if (status != CUDA_SUCCESS) return;
  const CUdeviceptr one = mapped(physical), other = mapped(imported);
  CardArray<Word> stale(1);
  stale.fill(0);
  write_all<<<1, 1024>>>(reinterpret_cast<Word*>(one), 20261126);
  count_others<<<1, 1024>>>(reinterpret_cast<const Word*>(other), 20261126, stale.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  check("the imported memory is the exported one", 1024, (long long)stale.read()[0]);
  unmap(one, physical);
  unmap(other, imported);
  TRANSHIP_DRIVER(cuMemRelease(imported.handle));
  TRANSHIP_DRIVER(cuMemRelease(physical.handle));
}

// ---- multicast ----

__global__ void store_to_all(unsigned* at, unsigned value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("multimem.st.relaxed.sys.global.u32 [%0], %1;" ::"l"(at + threadIdx.x), "r"(value + threadIdx.x)
               : "memory");
#endif
}
__global__ void add_over_all(const unsigned* at, unsigned* sums) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.u32 %0, [%1];"
               : "=r"(sums[threadIdx.x])
               : "l"(at + threadIdx.x)
               : "memory");
#endif
}

void multicast() {
  const Driver& driver = Driver::get();
  if (driver.cuMulticastCreate == nullptr || driver.cuMulticastAddDevice == nullptr ||
      driver.cuMulticastBindMem == nullptr || driver.cuMulticastGetGranularity == nullptr)
    return answer("multicast on a single card", "no", "not in the driver");
  CUmulticastObjectProp properties = {};
  properties.numDevices = 1;
  properties.size = 2 << 20;
  properties.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t granularity = 0;
  CUresult status = driver.cuMulticastGetGranularity(&granularity, &properties, CU_MULTICAST_GRANULARITY_RECOMMENDED);
  answer("granularity of multicast, recommended", std::to_string(granularity), driver.error(status));
  if (status == CUDA_SUCCESS) properties.size = granularity;
  Physical object;
  object.bytes = properties.size;
  status = driver.cuMulticastCreate(&object.handle, &properties);
  answer("cuMulticastCreate for one device", driver.error(status), "expected: refused or without use for one device");
  if (status != CUDA_SUCCESS) {
    properties.numDevices = 2;
    status = driver.cuMulticastCreate(&object.handle, &properties);
    answer("cuMulticastCreate for two devices", driver.error(status));
    if (status == CUDA_SUCCESS) TRANSHIP_DRIVER(cuMemRelease(object.handle));
    return;
  }
  status = driver.cuMulticastAddDevice(object.handle, 0);
  answer("cuMulticastAddDevice", driver.error(status));
  if (status != CUDA_SUCCESS) return;
  Physical physical;
  physical.bytes = properties.size;
  const CUmemAllocationProp wanted = Physical::properties(Physical::Sharing::file_descriptor);
  TRANSHIP_DRIVER(cuMemCreate(&physical.handle, physical.bytes, &wanted, 0));
  status = driver.cuMulticastBindMem(object.handle, 0, physical.handle, 0, physical.bytes, 0);
  answer("cuMulticastBindMem", driver.error(status), "needs a healthy fabric manager where there is an NVSwitch");
  if (status != CUDA_SUCCESS) return;
  const CUdeviceptr plain = mapped(physical), all = mapped(object);
  if (!is_hopper_or_later()) return;
  CardArray<unsigned> sums(256);
  TRANSHIP_CUDA(cudaMemset(reinterpret_cast<void*>(plain), 0xa5, 4096));
  sums.fill(0xa5);
  store_to_all<<<1, 256>>>(reinterpret_cast<unsigned*>(all), 1000);
  add_over_all<<<1, 256>>>(reinterpret_cast<const unsigned*>(all), sums.data());
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  std::vector<unsigned> stored(256);
  TRANSHIP_CUDA(cudaMemcpy(stored.data(), reinterpret_cast<const void*>(plain), 1024, cudaMemcpyDeviceToHost));
  const std::vector<unsigned> summed = sums.read();
  long long wrong = 0;
  for (unsigned i = 0; i < 256; ++i) wrong += (stored[i] != 1000 + i) + (summed[i] != 1000 + i);
  check("multimem store and load-reduce on a single card", 512, wrong);
}

void run(const Options& options) {
  attributes();
  map_times(options);
  aliases(options);
  export_and_import();
  multicast();
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
