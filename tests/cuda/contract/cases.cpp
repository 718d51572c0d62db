#include "cuda/contract/cases.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

#include "cuda/contract/kernels.hpp"

namespace tranship::contract {
namespace {

// What cases own.

struct Stream {
  explicit Stream(Bench& of, unsigned flags = CU_STREAM_NON_BLOCKING) : bench(of) {
    bench.ok(bench.cu.cuStreamCreate(&handle, flags), "cuStreamCreate");
  }
  ~Stream() {
    if (handle) bench.cu.cuStreamDestroy(handle);
  }
  Stream(const Stream&) = delete;
  operator CUstream() const { return handle; }
  void finish() { bench.ok(bench.cu.cuStreamSynchronize(handle), "cuStreamSynchronize"); }
  Bench& bench;
  CUstream handle = nullptr;
};

struct Event {
  explicit Event(Bench& of, unsigned flags = CU_EVENT_DISABLE_TIMING) : bench(of) {
    bench.ok(bench.cu.cuEventCreate(&handle, flags), "cuEventCreate");
  }
  ~Event() {
    if (handle) bench.cu.cuEventDestroy(handle);
  }
  Event(const Event&) = delete;
  operator CUevent() const { return handle; }
  Bench& bench;
  CUevent handle = nullptr;
};

template <class T>
struct OnCard {
  OnCard(Bench& of, std::size_t count_of) : bench(of), count(count_of) {
    bench.ok(bench.cu.cuMemAlloc(&at, count * sizeof(T)), "cuMemAlloc");
  }
  ~OnCard() {
    if (at) bench.cu.cuMemFree(at);
  }
  OnCard(const OnCard&) = delete;
  operator CUdeviceptr() const { return at; }
  T* get() const { return reinterpret_cast<T*>(at); }
  void put(const std::vector<T>& values) {
    bench.ok(bench.cu.cuMemcpy(at, reinterpret_cast<CUdeviceptr>(values.data()), values.size() * sizeof(T)),
             "cuMemcpy to the card");
    bench.ok(bench.cu.cuStreamSynchronize(nullptr), "cuStreamSynchronize of the default stream");
  }
  std::vector<T> values() {
    std::vector<T> out(count);
    bench.ok(bench.cu.cuMemcpy(reinterpret_cast<CUdeviceptr>(out.data()), at, count * sizeof(T)),
             "cuMemcpy from the card");
    return out;
  }
  Bench& bench;
  std::size_t count;
  CUdeviceptr at = 0;
};

template <class T>
struct Pinned {
  Pinned(Bench& of, std::size_t count_of) : bench(of), count(count_of) {
    void* memory = nullptr;
    bench.ok(bench.cu.cuMemHostAlloc(&memory, count * sizeof(T), CU_MEMHOSTALLOC_PORTABLE), "cuMemHostAlloc");
    at = static_cast<T*>(memory);
    if (at) std::memset(memory, 0, count * sizeof(T));
  }
  ~Pinned() {
    if (at) bench.cu.cuMemFreeHost(at);
  }
  Pinned(const Pinned&) = delete;
  T& operator[](std::size_t i) const { return at[i]; }
  operator CUdeviceptr() const { return reinterpret_cast<CUdeviceptr>(at); }
  Bench& bench;
  std::size_t count;
  T* at = nullptr;
};

CUdeviceptr address(const void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

/// Waits until the host sees it; false after some seconds.
template <class F>
bool comes(F is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

/// A kernel that holds a stream until it is released.
struct Held {
  explicit Held(Bench& of, CUstream stream) : bench(of), words(of, 2) {
    bench.ok(bench.launch("hold", 1, 32, HoldArgs{&words[0], &words[1]}, stream), "launch of a kernel that waits");
  }
  ~Held() { release(); }
  bool runs() const { return __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) == 1; }
  void wait_until_it_runs() {
    bench.expect(comes([&] { return runs(); }), "the kernel that waits runs");
  }
  void release() { __atomic_store_n(&words[0], Word(1), __ATOMIC_RELEASE); }
  Bench& bench;
  Pinned<Word> words;
};

std::vector<unsigned> counting(std::size_t count, unsigned from = 0) {
  std::vector<unsigned> out(count);
  for (std::size_t i = 0; i < count; ++i) out[i] = from + unsigned(i);
  return out;
}

// Memory.

void allocations(Bench& b) {
  CUdeviceptr one = 0, two = 0;
  b.ok(b.cu.cuMemAlloc(&one, 1), "cuMemAlloc of 1 byte");
  b.ok(b.cu.cuMemAlloc(&two, 4097), "cuMemAlloc of 4097 bytes");
  b.expect(one % 256 == 0 && two % 256 == 0, "allocations are aligned to 256 bytes");
  CUdeviceptr none = 0;
  b.expect(b.cu.cuMemAlloc(&none, std::size_t(1) << 60), CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc of 2^60 bytes");
  b.expect(b.cu.cuMemAlloc(&none, 0), CUDA_ERROR_INVALID_VALUE, "cuMemAlloc of 0 bytes");
  b.ok(b.cu.cuMemFree(0), "cuMemFree of null");
  b.expect(b.cu.cuMemFree(two + 256), CUDA_ERROR_INVALID_VALUE, "cuMemFree inside an allocation");
  int host = 0;
  b.expect(b.cu.cuMemFree(address(&host)), CUDA_ERROR_INVALID_VALUE, "cuMemFree of memory of the host");
  b.ok(b.cu.cuMemFree(two), "cuMemFree");
  b.expect(b.cu.cuMemFree(two), CUDA_ERROR_INVALID_VALUE, "cuMemFree for the second time");
  b.ok(b.cu.cuMemFree(one), "cuMemFree");
  std::size_t free = 0, total = 0;
  b.ok(b.cu.cuMemGetInfo(&free, &total), "cuMemGetInfo");
  b.expect(free <= total && total > 0, "cuMemGetInfo gives sizes");
}

void pinned_memory(Bench& b) {
  std::vector<unsigned char> pageable(1 << 16);
  void* const memory = pageable.data();
  b.ok(b.cu.cuMemHostRegister(memory, pageable.size(), CU_MEMHOSTREGISTER_PORTABLE), "cuMemHostRegister");
  b.expect(b.cu.cuMemHostRegister(memory, pageable.size(), CU_MEMHOSTREGISTER_PORTABLE),
           CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "cuMemHostRegister for the second time");
  b.ok(b.cu.cuMemHostUnregister(memory), "cuMemHostUnregister");
  b.expect(b.cu.cuMemHostUnregister(memory), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED,
           "cuMemHostUnregister for the second time");
  b.expect(b.cu.cuMemFreeHost(memory), CUDA_ERROR_INVALID_VALUE, "cuMemFreeHost of pageable memory");
}

void pointers(Bench& b) {
  OnCard<unsigned> card(b, 100);
  Pinned<unsigned> pinned(b, 100);
  int host = 0;
  const auto of = [&](CUdeviceptr at) {
    unsigned type = 0, is_managed = 0;
    CUdeviceptr device = 0;
    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
                                   CU_POINTER_ATTRIBUTE_IS_MANAGED};
    void* out[] = {&type, &device, &is_managed};
    b.ok(b.cu.cuPointerGetAttributes(3, which, out, at), "cuPointerGetAttributes");
    return std::pair(type, device);
  };
  b.expect(of(card.at + 4) == std::pair(unsigned(CU_MEMORYTYPE_DEVICE), card.at + 4),
           "attributes of memory of the card");
  b.expect(of(address(&pinned[1])) == std::pair(unsigned(CU_MEMORYTYPE_HOST), address(&pinned[1])),
           "attributes of pinned memory");
  b.expect(of(address(&host)) == std::pair(0u, CUdeviceptr(0)), "attributes of pageable memory");
  CUdeviceptr first = 0;
  std::size_t bytes = 0;
  b.ok(b.cu.cuMemGetAddressRange(&first, &bytes, card.at + 8), "cuMemGetAddressRange");
  b.expect(first == card.at && bytes == 400, "cuMemGetAddressRange gives the allocation");
}

void pools(Bench& b) {
  CUmemPoolProps properties = {};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = b.device;
  CUmemoryPool pool = nullptr;
  b.ok(b.cu.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
  Stream stream(b), other(b);
  CUdeviceptr one = 0, two = 0;
  b.ok(b.cu.cuMemAllocFromPoolAsync(&one, 1 << 20, pool, stream), "cuMemAllocFromPoolAsync");
  b.ok(b.cu.cuMemsetD32Async(one, 5, 100, stream), "memset of memory of a pool");
  {
    Held held(b, stream);
    b.ok(b.cu.cuMemFreeAsync(one, stream), "cuMemFreeAsync");
    b.ok(b.cu.cuMemAllocFromPoolAsync(&two, 1 << 20, pool, other), "cuMemAllocFromPoolAsync while a free is pending");
    b.expect(two != one, "memory whose free is pending is not given to another stream");
    b.ok(b.cu.cuMemsetD32Async(two, 6, 100, other), "memset");
    other.finish();
    held.release();
  }
  b.ok(b.cu.cuMemFreeAsync(two, other), "cuMemFreeAsync");
  CUdeviceptr none = 0;
  b.expect(b.cu.cuMemAllocFromPoolAsync(&none, std::size_t(1) << 50, pool, stream), CUDA_ERROR_OUT_OF_MEMORY,
           "2^50 bytes from a pool");
  stream.finish();
  other.finish();
  b.ok(b.cu.cuMemPoolTrimTo(pool, 0), "cuMemPoolTrimTo");
  b.ok(b.cu.cuMemPoolDestroy(pool), "cuMemPoolDestroy");
}

void frees_wait(Bench& b) {
  CUdeviceptr memory = 0;
  b.ok(b.cu.cuMemAlloc(&memory, 1 << 16), "cuMemAlloc");
  Stream stream(b);
  Held held(b, stream);
  held.wait_until_it_runs();
  std::atomic<bool> is_released = false, was_released = false;
  std::thread thread([&] {
    b.cu.cuCtxSetCurrent(b.context);
    b.cu.cuMemFree(memory);
    was_released = is_released.load();
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  is_released = true;
  held.release();
  thread.join();
  b.expect(was_released, "cuMemFree waits for kernels that run");
}

// Copies.

void pinned_copies(Bench& b) {
  constexpr std::size_t count = 3000;
  OnCard<unsigned> card(b, count);
  Pinned<unsigned> from(b, count), to(b, count);
  Stream stream(b);
  Held held(b, stream);
  for (std::size_t i = 0; i < count; ++i) from[i] = 1;
  b.ok(b.cu.cuMemcpyAsync(card, from, count * 4, stream), "cuMemcpyAsync from pinned memory");
  b.ok(b.cu.cuMemcpyAsync(to, card, count * 4, stream), "cuMemcpyAsync to pinned memory");
  for (std::size_t i = 0; i < count; ++i) from[i] = unsigned(i);
  b.expect(to[count - 1] == 0, "a copy to pinned memory does not come before the stream comes to it");
  held.release();
  stream.finish();
  bool is_right = true;
  for (std::size_t i = 0; i < count; ++i) is_right &= to[i] == i;
  b.expect(is_right, "a copy from pinned memory takes the bytes of the time when the stream comes to it");
}

void pageable_copies(Bench& b) {
  for (const std::size_t count : {std::size_t(2), std::size_t(5000), std::size_t(1) << 20}) {
    OnCard<unsigned> card(b, count);
    Stream stream(b);
    std::vector<unsigned> from = counting(count), to(count);
    b.ok(b.cu.cuMemcpyAsync(card, address(from.data()), count * 4, stream), "cuMemcpyAsync from pageable memory");
    from.assign(count, 0);
    b.ok(b.cu.cuMemcpyAsync(address(to.data()), card, count * 4, stream), "cuMemcpyAsync to pageable memory");
    b.expect(to == counting(count),
             "a copy from pageable memory takes the bytes of the call, and one to it has all at its return");
    std::vector<unsigned> third(count);
    b.ok(b.cu.cuMemcpyAsync(address(third.data()), address(to.data()), count * 4, stream),
         "cuMemcpyAsync within the host");
    b.expect(third == to, "a copy within the host is made at its return");
  }
}

void copies_on_the_card(Bench& b) {
  constexpr std::size_t count = 100000;
  OnCard<unsigned> one(b, count), two(b, count);
  one.put(counting(count));
  Stream stream(b);
  b.ok(b.cu.cuMemcpyAsync(two.at + 4, one, 4 * (count - 1), stream), "cuMemcpyAsync on the card");
  b.ok(b.cu.cuMemcpyAsync(two, one.at + 4 * (count - 1), 4, stream), "cuMemcpyAsync of a word");
  stream.finish();
  std::vector<unsigned> wanted = counting(count, unsigned(-1));
  wanted[0] = count - 1;
  b.expect(two.values() == wanted, "copies on the card");
}

void refused_copies(Bench& b) {
  OnCard<unsigned> card(b, 1024);
  std::vector<unsigned char> host(4096 + (64 << 20));
  Stream stream(b);
  const CUdeviceptr pageable = address(host.data());
  b.expect(b.cu.cuMemcpyAsync(card, pageable, host.size(), stream), CUDA_ERROR_INVALID_VALUE,
           "a copy past the end of an allocation");
  b.expect(b.cu.cuMemcpyAsync(0, pageable, 8, stream), CUDA_ERROR_INVALID_VALUE, "a copy to null");
  b.ok(b.cu.cuMemcpyAsync(0, 0, 0, stream), "a copy of 0 bytes between nulls");
  b.expect(b.cu.cuMemsetD32Async(card.at + 2, 1, 1, stream), CUDA_ERROR_INVALID_VALUE,
           "a memset of words off their alignment");
  stream.finish();
}

void memsets(Bench& b) {
  OnCard<unsigned char> card(b, 1000);
  Stream stream(b);
  b.ok(b.cu.cuMemsetD8Async(card, 0x11, 1000, stream), "cuMemsetD8Async");
  b.ok(b.cu.cuMemsetD16Async(card.at + 2, 0x2345, 100, stream), "cuMemsetD16Async");
  b.ok(b.cu.cuMemsetD32Async(card.at + 400, 0x6789abcd, 100, stream), "cuMemsetD32Async");
  stream.finish();
  std::vector<unsigned char> wanted(1000, 0x11);
  for (int i = 0; i < 100; ++i) {
    const unsigned short half = 0x2345;
    const unsigned word = 0x6789abcd;
    std::memcpy(&wanted[std::size_t(2 + 2 * i)], &half, 2);
    std::memcpy(&wanted[std::size_t(400 + 4 * i)], &word, 4);
  }
  b.expect(card.values() == wanted, "memsets of 1, 2 and 4 bytes");
}

void strided_copies(Bench& b) {
  constexpr std::size_t bytes = 64 * 40 * 10;
  OnCard<unsigned char> from(b, bytes), to(b, bytes);
  std::vector<unsigned char> source(bytes), wanted(bytes, 0);
  for (std::size_t i = 0; i < bytes; ++i) source[i] = static_cast<unsigned char>(i * 7 + i / 251);
  from.put(source);
  to.put(wanted);
  Stream stream(b);
  CUDA_MEMCPY3D box = {};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = from, box.dstDevice = to;
  box.srcXInBytes = 3, box.srcY = 2, box.srcZ = 1, box.srcPitch = 64, box.srcHeight = 40;
  box.dstXInBytes = 5, box.dstY = 1, box.dstZ = 0, box.dstPitch = 50, box.dstHeight = 30;
  box.WidthInBytes = 13, box.Height = 17, box.Depth = 5;
  b.ok(b.cu.cuMemcpy3DAsync(&box, stream), "cuMemcpy3DAsync");
  for (std::size_t z = 0; z < 5; ++z)
    for (std::size_t y = 0; y < 17; ++y)
      for (std::size_t x = 0; x < 13; ++x)
        wanted[(z * 30 + y + 1) * 50 + x + 5] = source[((z + 1) * 40 + y + 2) * 64 + x + 3];
  CUDA_MEMCPY2D rows = {};
  rows.srcMemoryType = rows.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  rows.srcDevice = from, rows.dstDevice = to.at + 15000;
  rows.srcPitch = 64, rows.dstPitch = 32, rows.WidthInBytes = 20, rows.Height = 60;
  b.ok(b.cu.cuMemcpy2DAsync(&rows, stream), "cuMemcpy2DAsync");
  for (std::size_t y = 0; y < 60; ++y)
    for (std::size_t x = 0; x < 20; ++x) wanted[15000 + y * 32 + x] = source[y * 64 + x];
  stream.finish();
  b.expect(to.values() == wanted, "strided copies move the bytes of their boxes alone");
}

// Streams and events.

void stream_order(Bench& b) {
  constexpr int count = 5000;
  OnCard<unsigned> card(b, count);
  Stream stream(b);
  b.ok(b.cu.cuMemsetD32Async(card, 1, count, stream), "memset");
  for (int i = 0; i < 10; ++i) b.ok(b.launch("add", 3, 64, AddArgs{card.get(), count, 2}, stream), "launch");
  Pinned<unsigned> to(b, count);
  b.ok(b.cu.cuMemcpyAsync(to, card, count * 4, stream), "copy");
  b.ok(b.cu.cuMemsetD32Async(card, 0, count, stream), "memset");
  stream.finish();
  bool is_right = true;
  for (std::size_t i = 0; i < count; ++i) is_right &= to[i] == 21;
  b.expect(is_right, "work of a stream is done in its order");
  b.ok(b.cu.cuStreamQuery(stream), "cuStreamQuery when all is over");
}

void events(Bench& b) {
  Stream stream(b), other(b), third(b);
  Event event(b), unrecorded(b);
  b.ok(b.cu.cuEventQuery(unrecorded), "cuEventQuery of an event never recorded");
  b.ok(b.cu.cuStreamWaitEvent(third, unrecorded, 0), "a wait for an event never recorded");
  third.finish();
  Pinned<unsigned> word(b, 1), copied(b, 1);
  Held held(b, stream);
  held.wait_until_it_runs();
  word[0] = 1;
  b.ok(b.cu.cuEventRecord(event, stream), "cuEventRecord");
  b.expect(b.cu.cuEventQuery(event), CUDA_ERROR_NOT_READY, "cuEventQuery of a pending event");
  b.expect(b.cu.cuStreamQuery(stream), CUDA_ERROR_NOT_READY, "cuStreamQuery of a held stream");
  b.ok(b.cu.cuStreamWaitEvent(other, event, 0), "cuStreamWaitEvent");
  OnCard<unsigned> card(b, 1);
  b.ok(b.cu.cuMemcpyAsync(card, word, 4, other), "copy behind a wait");
  b.ok(b.cu.cuMemcpyAsync(copied, card, 4, other), "copy behind a wait");
  // A wait keeps the record that was last at the call.
  b.ok(b.cu.cuEventRecord(event, third), "cuEventRecord in an idle stream");
  third.finish();
  b.ok(b.cu.cuEventQuery(event), "cuEventQuery of an event that was recorded again in an idle stream");
  b.expect(copied[0] == 0, "a wait holds after its event was recorded again");
  word[0] = 2;
  // What is pending when its event or stream is destroyed is done.
  b.ok(b.cu.cuEventDestroy(event.handle), "cuEventDestroy of a pending event");
  event.handle = nullptr;
  b.ok(b.cu.cuStreamDestroy(other.handle), "cuStreamDestroy with pending work");
  other.handle = nullptr;
  held.release();
  b.expect(comes([&] { return __atomic_load_n(&copied[0], __ATOMIC_ACQUIRE) == 2; }),
           "work behind a destroyed event in a destroyed stream is done");
  b.ok(b.cu.cuCtxSynchronize(), "cuCtxSynchronize");
}

void wrong_handles(Bench& b) {
  Stream stream(b);
  b.expect(b.cu.cuEventRecord(nullptr, stream), CUDA_ERROR_INVALID_HANDLE, "cuEventRecord of null");
  b.expect(b.cu.cuStreamWaitEvent(stream, nullptr, 0), CUDA_ERROR_INVALID_HANDLE, "cuStreamWaitEvent of null");
  b.expect(b.cu.cuEventDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE, "cuEventDestroy of null");
  b.expect(b.cu.cuStreamDestroy(nullptr), CUDA_ERROR_INVALID_HANDLE, "cuStreamDestroy of the default stream");
  Event a(b, 0), c(b, 0);
  float milliseconds = 0;
  b.expect(b.cu.cuEventElapsedTime(&milliseconds, a, c), CUDA_ERROR_INVALID_HANDLE,
           "cuEventElapsedTime of events never recorded");
}

void default_stream(Bench& b) {
  Stream blocking(b, CU_STREAM_DEFAULT), free(b);
  Pinned<unsigned> words(b, 3);
  OnCard<unsigned> card(b, 1);
  Held held(b, blocking);
  held.wait_until_it_runs();
  words[0] = 1;
  b.ok(b.cu.cuMemcpyAsync(card, words, 4, nullptr), "copy in the default stream");
  b.ok(b.cu.cuMemcpyAsync(address(&words[1]), card, 4, nullptr), "copy in the default stream");
  words[0] = 7;
  OnCard<unsigned> beside(b, 1);
  b.ok(b.cu.cuMemsetD32Async(beside, 9, 1, free), "memset in a stream that does not block");
  b.ok(b.cu.cuMemcpyAsync(address(&words[2]), beside, 4, free), "copy in a stream that does not block");
  free.finish();
  b.expect(words[2] == 9, "a stream that does not block does not wait for the default stream");
  b.expect(words[1] == 0, "the default stream waits for blocking streams");
  held.release();
  b.ok(b.cu.cuStreamSynchronize(nullptr), "cuStreamSynchronize of the default stream");
  // A card has been seen to read so few bytes before their turn.
  b.expect(words[1] == 7 || words[1] == 1, "the default stream goes on when they do");
}

void host_functions(Bench& b) {
  struct Seen {
    Bench* bench;
    CUevent complete;
    CUstream other;
    Word* word;
    Word before = 0;
    CUresult query = CUDA_SUCCESS, stream_query = CUDA_SUCCESS, allocation = CUDA_SUCCESS;
  };
  Stream stream(b), other(b);
  Event complete(b);
  Pinned<Word> words(b, 1);
  OnCard<Word> card(b, 1);
  Seen seen{&b, complete, other, &words[0]};
  b.ok(b.cu.cuMemsetD32Async(card, 3, 2, stream), "memset");
  b.ok(b.cu.cuMemcpyAsync(words, card, 8, stream), "copy");
  b.ok(b.cu.cuLaunchHostFunc(
           stream,
           [](void* argument) {
             auto& s = *static_cast<Seen*>(argument);
             s.before = *s.word;
             *s.word = 42;
             s.query = s.bench->cu.cuEventQuery(s.complete);
             s.stream_query = s.bench->cu.cuStreamQuery(s.other);
             CUdeviceptr memory = 0;
             s.allocation = s.bench->cu.cuMemAlloc(&memory, 16);
           },
           &seen),
       "cuLaunchHostFunc");
  b.ok(b.cu.cuMemcpyAsync(card, words, 8, stream), "copy");
  stream.finish();
  b.expect(seen.before == ((Word(3) << 32) | 3), "a host function sees what was done before it");
  b.expect(card.values()[0] == 42, "what follows a host function sees what it wrote");
  b.expect(seen.query, CUDA_SUCCESS, "cuEventQuery of a complete event in a host function");
  b.expect(seen.stream_query, CUDA_SUCCESS, "cuStreamQuery of an idle stream in a host function");
  b.expect(seen.allocation, CUDA_ERROR_NOT_PERMITTED, "cuMemAlloc in a host function");
}

void words_of_streams(Bench& b) {
  Stream stream(b), other(b);
  Pinned<Word> words(b, 2);
  OnCard<Word> card(b, 1);
  b.ok(b.cu.cuMemsetD32Async(card, 0, 2, stream), "memset");
  stream.finish();
  b.ok(b.cu.cuStreamWaitValue64(stream, card, 5, CU_STREAM_WAIT_VALUE_GEQ), "cuStreamWaitValue64");
  b.ok(b.cu.cuStreamWriteValue64(stream, words, 1, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue64 to the host");
  b.expect(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 0, "a stream waits for a word");
  b.ok(b.cu.cuStreamWriteValue64(other, card, 6, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue64 to the card");
  b.expect(comes([&] { return __atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 1; }),
           "the stream goes on when the word is written");
  stream.finish();
}

// Kernels.

void launches(Bench& b) {
  OnCard<unsigned> card(b, 1000);
  card.put(std::vector<unsigned>(1000, 1));
  Stream stream(b);
  const AddArgs args{card.get(), 1000, 1};
  b.expect(b.launch("add", 1, 2048, args, stream), CUDA_ERROR_INVALID_VALUE, "a launch of 2048 lanes a block");
  b.expect(b.launch("add", 1, 0, args, stream), CUDA_ERROR_INVALID_VALUE, "a launch of 0 lanes");
  b.expect(b.launch("add", 0, 32, args, stream), CUDA_ERROR_INVALID_VALUE, "a launch of 0 blocks");
  b.expect(b.launch("add", 1, 32, args, stream, 300 << 10), CUDA_ERROR_INVALID_VALUE,
           "a launch with 300 KiB of shared memory");
  for (const int lanes : {1, 31, 33, 256, 1000, 1024})
    for (const int blocks : {1, 3, 70}) b.ok(b.launch("add", blocks, lanes, args, stream), "launch");
  stream.finish();
  b.expect(card.values() == std::vector<unsigned>(1000, 19), "grids of all shapes run once");
  AddArgs changed = args;
  Held held(b, stream);
  void* parameters[] = {&changed};
  b.ok(b.cu.cuLaunchKernel(b.kernel("add"), 1, 1, 1, 32, 1, 1, 0, stream, parameters, nullptr), "launch");
  changed.value = 100;
  held.release();
  stream.finish();
  b.expect(card.values()[0] == 20, "a kernel's arguments are those of the call");
  CUkernel none = nullptr;
  b.expect(b.cu.cuLibraryGetKernel(&none, b.library, "contract_of_no_kernel"), CUDA_ERROR_NOT_FOUND,
           "cuLibraryGetKernel of an unknown name");
}

void shared_memory(Bench& b) {
  constexpr int count = 10000;
  OnCard<unsigned> card(b, count), result(b, 1);
  card.put(counting(count));
  result.put({0});
  Stream stream(b);
  b.ok(b.launch("sum", 7, 256, SumArgs{card.get(), count, result.get()}, stream), "launch");
  stream.finish();
  b.expect(result.values()[0] == unsigned(count) * (count - 1) / 2, "a sum by shared memory");
  b.ok(b.launch("reverse", 10, 1000, ReverseArgs{card.get()}, stream, 4000), "launch with shared memory of its size");
  stream.finish();
  std::vector<unsigned> wanted(count);
  for (int i = 0; i < count; ++i) wanted[std::size_t(i)] = unsigned(i / 1000 * 1000 + 999 - i % 1000);
  b.expect(card.values() == wanted, "words reversed by shared memory of a launch's size");
}

void warps(Bench& b) {
  for (const int lanes : {32, 64, 100, 256}) {
    OnCard<unsigned> words(b, std::size_t(lanes)), ballots(b, 8);
    std::vector<unsigned> values = counting(std::size_t(lanes));
    for (unsigned& value : values) value = value * 2654435761u >> 7;
    words.put(values);
    Stream stream(b);
    b.ok(b.launch("warp", 1, lanes, WarpArgs{words.get(), ballots.get()}, stream), "launch");
    stream.finish();
    const std::vector<unsigned> got = words.values(), odd = ballots.values();
    bool is_right = true;
    for (int i = 0; i < lanes; ++i) {
      const int first = i / 32 * 32, in_warp = std::min(32, lanes - first);
      is_right &= got[std::size_t(i)] == values[std::size_t(first + (i - first + 1) % in_warp)];
      is_right &= (odd[std::size_t(i / 32)] >> (i % 32) & 1) == values[std::size_t(i)] % 2;
    }
    b.expect(is_right, "shuffles and ballots of " + std::to_string(lanes) + " lanes");
  }
}

void occupancy(Bench& b) {
  int blocks = 0, multiprocessors = 0;
  b.ok(b.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, b.kernel("meet"), 256, 0),
       "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  b.ok(b.cu.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, b.device),
       "cuDeviceGetAttribute");
  b.expect(blocks >= 1, "a block fits");
  OnCard<unsigned> arrived(b, 1);
  arrived.put({0});
  Stream stream(b);
  const auto cooperative = [&](unsigned grid) {
    MeetArgs args{arrived.get(), grid};
    void* parameters[] = {&args};
    CUlaunchAttribute attribute = {};
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
    CUlaunchConfig config = {};
    config.gridDimX = grid, config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 256, config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    config.attrs = &attribute, config.numAttrs = 1;
    return b.cu.cuLaunchKernelEx(&config, b.kernel("meet"), parameters, nullptr);
  };
  const unsigned most = unsigned(blocks * multiprocessors);
  b.expect(cooperative(most + 1), CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,
           "a cooperative launch of one block more than fit");
  b.ok(cooperative(most), "a cooperative launch of as many blocks as fit");
  stream.finish();
  b.expect(arrived.values()[0] == most, "its blocks meet");
}

void kernels_meet(Bench& b) {
  constexpr unsigned count = 8;
  OnCard<unsigned> arrived(b, 1), after(b, 1);
  arrived.put({0});
  after.put({0});
  std::vector<std::unique_ptr<Stream>> streams;
  for (unsigned i = 0; i < count; ++i) {
    streams.push_back(std::make_unique<Stream>(b));
    b.ok(b.launch("meet", 1, 32, MeetArgs{arrived.get(), count}, *streams.back()),
         "launch of a kernel that waits for others");
    b.ok(b.launch("add", 1, 32, AddArgs{after.get(), 0, 1}, *streams.back()), "launch of a kernel behind it");
  }
  for (const auto& stream : streams) stream->finish();
  b.expect(arrived.values()[0] == count, "8 kernels on 8 streams that wait for each other meet");
}

/// How many queues the driver has for the streams of a process.
int hardware_queues() {
  const char* const text = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
  const int asked = text ? std::atoi(text) : 8;
  return asked < 1 ? 8 : std::min(asked, 32);
}

void kernels_on_many_streams(Bench& b) {
  int blocks = 0, multiprocessors = 0;
  b.ok(b.cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, b.kernel("meet"), 32, 0),
       "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  b.ok(b.cu.cuDeviceGetAttribute(&multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, b.device),
       "cuDeviceGetAttribute");
  const auto count = unsigned(std::min(128, blocks * multiprocessors));
  OnCard<unsigned> arrived(b, 1);
  arrived.put({0});
  std::vector<std::unique_ptr<Stream>> streams;
  for (unsigned i = 0; i < count; ++i) {
    streams.push_back(std::make_unique<Stream>(b));
    b.ok(b.launch("meet", 1, 32, MeetArgs{arrived.get(), count}, *streams.back()),
         "launch of a kernel that waits for others");
  }
  for (const auto& stream : streams) stream->finish();
  b.expect(arrived.values()[0] == count,
           "kernels on more streams than there are queues meet where nothing stands behind them");
}

void full_queues(Bench& b) {
  const auto queues = std::size_t(hardware_queues()), count = queues + 1;
  Pinned<Word> words(b, 1 + count);
  OnCard<unsigned> behind(b, 1);
  behind.put({0});
  std::vector<std::unique_ptr<Stream>> streams;
  for (std::size_t i = 0; i < count; ++i) {
    streams.push_back(std::make_unique<Stream>(b));
    b.ok(b.launch("hold", 1, 32, HoldArgs{&words[0], &words[1 + i]}, *streams.back()), "launch of a kernel that waits");
    b.ok(b.launch("add", 1, 32, AddArgs{behind.get(), 1, 0}, *streams.back()), "launch of a kernel behind it");
  }
  const auto running = [&] {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += __atomic_load_n(&words[1 + i], __ATOMIC_ACQUIRE) == 1;
    return sum;
  };
  b.expect(comes([&] { return running() >= queues; }), "a kernel of each queue runs");
  for (int i = 0; i < 5000; ++i) std::this_thread::yield();
  b.expect(running() == queues, "work that stands behind a kernel that waits holds up a stream that shares its queue");
  __atomic_store_n(&words[0], Word(1), __ATOMIC_RELEASE);
  for (const auto& stream : streams) stream->finish();
  b.expect(running() == count, "that stream goes on afterwards");
}

/// A kernel of a library of its own, which no launch has loaded.
struct FreshKernel {
  explicit FreshKernel(Bench& of) : bench(of) {
    bench.ok(bench.cu.cuLibraryLoadData(&library, bench.code, nullptr, nullptr, 0, nullptr, nullptr, 0),
             "cuLibraryLoadData");
    bench.ok(bench.cu.cuLibraryGetKernel(&kernel, library, "contract_add"), "cuLibraryGetKernel");
  }
  ~FreshKernel() { bench.cu.cuLibraryUnload(library); }
  FreshKernel(const FreshKernel&) = delete;
  void launch(unsigned* word, CUstream stream) const {
    AddArgs args{word, 1, 1};
    void* parameters[] = {&args};
    bench.ok(bench.cu.cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 32, 1, 1, 0, stream, parameters,
                                     nullptr),
             "cuLaunchKernel");
  }
  Bench& bench;
  CUlibrary library = nullptr;
  CUkernel kernel = nullptr;
};

void loading(Bench& b) {
  Pinned<unsigned> words(b, 3);
  Stream stream(b), other(b), third(b);
  FreshKernel loaded(b), unloaded(b);
  CUfunction function = nullptr;
  b.ok(b.cu.cuKernelGetFunction(&function, loaded.kernel), "cuKernelGetFunction");
  b.ok(b.cu.cuFuncLoad(function), "cuFuncLoad");
  const char* const mode = std::getenv("CUDA_MODULE_LOADING");
  const bool is_lazy = !mode || std::strcmp(mode, "EAGER") != 0;
  Held held(b, stream);
  held.wait_until_it_runs();
  // A driver may wait within the call.
  std::thread launch([&] {
    b.cu.cuCtxSetCurrent(b.context);
    unloaded.launch(&words[0], other);
  });
  loaded.launch(&words[1], third);
  third.finish();
  b.expect(words[1] == 1, "a kernel that cuFuncLoad has loaded does not wait for kernels that run");
  for (int i = 0; i < 5000; ++i) std::this_thread::yield();
  if (is_lazy)
    b.expect(__atomic_load_n(&words[0], __ATOMIC_ACQUIRE) == 0,
             "the first launch of a kernel that is not loaded waits for kernels that run");
  held.release();
  launch.join();
  other.finish();
  b.expect(words[0] == 1, "it runs afterwards");
  stream.finish();
  Held again(b, stream);
  again.wait_until_it_runs();
  unloaded.launch(&words[0], other);
  other.finish();
  b.expect(words[0] == 2, "the second launch of a kernel does not wait for kernels that run");
}

void copies_beside_kernels(Bench& b) {
  Stream stream(b), other(b);
  Pinned<unsigned> from(b, 1000), to(b, 1000);
  OnCard<unsigned> card(b, 1000);
  Held held(b, stream);
  held.wait_until_it_runs();
  from[999] = 5;
  b.ok(b.cu.cuMemcpyAsync(card, from, 4000, other), "copy beside a kernel");
  b.ok(b.launch("add", 1, 32, AddArgs{card.get(), 1000, 1}, other), "launch beside a kernel");
  b.ok(b.cu.cuMemcpyAsync(to, card, 4000, other), "copy beside a kernel");
  other.finish();
  b.expect(to[999] == 6, "copies and kernels of other streams are done beside a kernel that waits");
  held.release();
  stream.finish();
}

// Graphs.

void graphs(Bench& b) {
  Stream stream(b), fork(b);
  Event forked(b), joined(b);
  Pinned<unsigned> from(b, 100), to(b, 100);
  OnCard<unsigned> card(b, 100);
  b.ok(b.cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  b.ok(b.cu.cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
  b.expect(status == CU_STREAM_CAPTURE_STATUS_ACTIVE, "the stream is captured");
  b.ok(b.cu.cuMemcpyAsync(card, from, 400, stream), "captured copy");
  b.ok(b.cu.cuEventRecord(forked, stream), "captured record");
  b.ok(b.cu.cuStreamWaitEvent(fork, forked, 0), "captured wait");
  b.ok(b.launch("add", 1, 32, AddArgs{card.get(), 50, 1}, stream), "captured launch");
  b.ok(b.launch("add", 1, 32, AddArgs{card.get() + 50, 50, 2}, fork), "captured launch in a fork");
  b.ok(b.cu.cuEventRecord(joined, fork), "captured record");
  b.ok(b.cu.cuStreamWaitEvent(stream, joined, 0), "captured wait");
  b.ok(b.cu.cuMemcpyAsync(to, card, 400, stream), "captured copy");
  CUgraph graph = nullptr;
  b.ok(b.cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  std::size_t nodes = 0;
  b.ok(b.cu.cuGraphGetNodes(graph, nullptr, &nodes), "cuGraphGetNodes");
  b.expect(nodes == 4, "two copies and two launches are four nodes");
  CUgraphExec exec = nullptr;
  b.ok(b.cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  b.ok(b.cu.cuGraphDestroy(graph), "cuGraphDestroy");
  stream.finish();
  b.expect(to[0] == 0 && to[99] == 0, "captured work does not run before its graph is launched");
  for (unsigned round = 1; round < 4; ++round) {
    for (std::size_t i = 0; i < 100; ++i) from[i] = round * 10;
    b.ok(b.cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
    stream.finish();
    b.expect(to[0] == round * 10 + 1 && to[99] == round * 10 + 2,
             "each launch of a graph does its work with the bytes of the launch");
  }
  b.ok(b.cu.cuGraphExecDestroy(exec), "cuGraphExecDestroy");
}

void broken_captures(Bench& b) {
  Stream stream(b), other(b);
  Event event(b);
  CUgraph graph = nullptr;
  b.expect(b.cu.cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE,
           "cuStreamEndCapture of a stream that is not captured");
  const auto broken_by = [&](const char* what, CUresult wanted, const std::function<CUresult()>& call,
                             CUresult end = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED) {
    b.ok(b.cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
    b.expect(call(), wanted, std::string("during a capture: ") + what);
    b.expect(b.cu.cuStreamEndCapture(stream, &graph), end, std::string("the end of a capture after ") + what);
    if (end == CUDA_SUCCESS) b.ok(b.cu.cuGraphDestroy(graph), "cuGraphDestroy");
  };
  CUdeviceptr memory = 0;
  broken_by("cuMemAlloc", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return b.cu.cuMemAlloc(&memory, 16); });
  broken_by("cuStreamQuery of the stream", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
            [&] { return b.cu.cuStreamQuery(stream); });
  broken_by("cuEventQuery", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return b.cu.cuEventQuery(event); });
  broken_by("cuCtxSynchronize", CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, [&] { return b.cu.cuCtxSynchronize(); });
  broken_by("a wrong launch", CUDA_ERROR_INVALID_VALUE, [&] { return b.launch("add", 0, 32, AddArgs{}, stream); });
  broken_by(
      "a wait for an event never recorded", CUDA_SUCCESS, [&] { return b.cu.cuStreamWaitEvent(stream, event, 0); },
      CUDA_SUCCESS);
  b.ok(b.cu.cuEventRecord(event, other), "cuEventRecord");
  other.finish();
  broken_by("a wait for an event that was recorded outside", CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
            [&] { return b.cu.cuStreamWaitEvent(stream, event, 0); });
  broken_by(
      "cuStreamBeginCapture again", CUDA_ERROR_ILLEGAL_STATE,
      [&] { return b.cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL); }, CUDA_SUCCESS);
  OnCard<unsigned> card(b, 4);
  broken_by(
      "a fork that is not joined", CUDA_SUCCESS,
      [&] {
        b.cu.cuMemsetD32Async(card, 0, 4, stream);
        b.cu.cuEventRecord(event, stream);
        b.cu.cuStreamWaitEvent(other, event, 0);
        return b.cu.cuMemsetD32Async(card, 1, 4, other);
      },
      CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
}

/// Calls that no other thread's capture, and no own one, is ended by, in each mode of the capture and of the thread.
void captures_beside(Bench& b) {
  Stream stream(b), other(b);
  Event event(b);
  b.ok(b.cu.cuEventRecord(event, other), "cuEventRecord");
  other.finish();
  const auto global = CU_STREAM_CAPTURE_MODE_GLOBAL, local = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
             relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
  const std::map<CUstreamCaptureMode, std::string> names = {
      {global, "global"}, {local, "thread-local"}, {relaxed, "relaxed"}};
  for (const auto of_capture : {global, local, relaxed})
    for (const auto of_thread : {global, local, relaxed})
      for (const bool is_own : {true, false}) {
        const bool ends =
            of_thread != relaxed && (is_own ? of_capture != relaxed : of_capture == global && of_thread == global);
        const std::string what = "a query " + std::string(is_own ? "by the thread" : "beside the thread") +
                                 " of a capture, " + names.at(of_capture) + ", in the mode " + names.at(of_thread);
        b.ok(b.cu.cuStreamBeginCapture(stream, of_capture), "cuStreamBeginCapture");
        CUresult queried = CUDA_ERROR_UNKNOWN;
        CUstreamCaptureMode before = of_thread, after = global;
        const auto query = [&] {
          b.cu.cuCtxSetCurrent(b.context);
          b.cu.cuThreadExchangeStreamCaptureMode(&before);
          queried = b.cu.cuEventQuery(event);
          after = before;
          b.cu.cuThreadExchangeStreamCaptureMode(&after);
        };
        if (is_own)
          query();
        else
          std::thread(query).join();
        b.expect(before == global && after == of_thread, "cuThreadExchangeStreamCaptureMode returns the mode before");
        b.expect(queried, ends ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS, what);
        CUgraph graph = nullptr;
        b.expect(b.cu.cuStreamEndCapture(stream, &graph), ends ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS,
                 "the end of a capture after " + what);
        if (graph) b.ok(b.cu.cuGraphDestroy(graph), "cuGraphDestroy");
      }
}

/// An object that a graph keeps, and what its destructor has met.
struct Kept {
  explicit Kept(const cuda::software::AllCalls& of) : cu(of) {}
  static void CUDA_CB destroy(void* self) {
    auto& kept = *static_cast<Kept*>(self);
    CUstream none = nullptr;
    kept.created = kept.cu.cuStreamCreate(&none, CU_STREAM_NON_BLOCKING);
    kept.is_destroyed.store(true);
  }
  const cuda::software::AllCalls& cu;
  CUresult created = CUDA_SUCCESS;
  std::atomic<bool> is_destroyed = false;
};

void objects_of_graphs(Bench& b) {
  Stream stream(b);
  Pinned<Word> words(b, 2);
  Kept kept(b.cu);
  CUuserObject object = nullptr;
  b.expect(b.cu.cuUserObjectCreate(&object, &kept, &Kept::destroy, 1, 0), CUDA_ERROR_INVALID_VALUE,
           "cuUserObjectCreate without its only flag");
  b.ok(b.cu.cuUserObjectCreate(&object, &kept, &Kept::destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
       "cuUserObjectCreate");
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CUgraph captured = nullptr;
  const auto look = [&] {
    b.ok(b.cu.cuStreamGetCaptureInfo(stream, &status, nullptr, &captured, nullptr, nullptr, nullptr),
         "cuStreamGetCaptureInfo");
  };
  look();
  b.expect(status == CU_STREAM_CAPTURE_STATUS_NONE, "a stream is not captured");
  b.ok(b.cu.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), "cuStreamBeginCapture");
  look();
  b.expect(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && captured, "a captured stream names its graph");
  b.ok(b.cu.cuGraphRetainUserObject(captured, object, 1, CU_GRAPH_USER_OBJECT_MOVE),
       "cuGraphRetainUserObject during a capture");
  b.ok(b.launch("hold", 1, 32, HoldArgs{&words[0], &words[1]}, stream), "a captured launch");
  CUgraph graph = nullptr;
  b.ok(b.cu.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  b.expect(graph == captured, "the graph of the capture is the one that it was said to be");
  CUgraphExec exec = nullptr;
  b.ok(b.cu.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiateWithFlags");
  b.ok(b.cu.cuGraphDestroy(graph), "cuGraphDestroy");
  b.ok(b.cu.cuGraphLaunch(exec, stream), "cuGraphLaunch");
  b.expect(comes([&] { return __atomic_load_n(&words[1], __ATOMIC_ACQUIRE) == 1; }), "the kernel of the graph runs");
  b.ok(b.cu.cuGraphExecDestroy(exec), "cuGraphExecDestroy of a graph that runs");
  b.expect(!kept.is_destroyed.load(), "what a graph keeps stays while a launch of it runs");
  __atomic_store_n(&words[0], Word(1), __ATOMIC_RELEASE);
  stream.finish();
  b.expect(comes([&] { return kept.is_destroyed.load(); }), "what a graph keeps is destroyed after its last launch");
  b.expect(kept.created != CUDA_SUCCESS, "the destructor of what a graph keeps must not call the driver");
}

// Virtual memory.

void mapping(Bench& b) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = b.device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  std::size_t piece = 0;
  b.ok(b.cu.cuMemGetAllocationGranularity(&piece, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
       "cuMemGetAllocationGranularity");
  CUdeviceptr base = 0;
  b.ok(b.cu.cuMemAddressReserve(&base, std::size_t(1) << 40, 0, 0, 0), "cuMemAddressReserve of 1 TiB");
  CUmemGenericAllocationHandle one = 0, two = 0, none = 0;
  b.expect(b.cu.cuMemCreate(&none, piece + 4096, &properties, 0), CUDA_ERROR_INVALID_VALUE,
           "cuMemCreate of no multiple of the granularity");
  b.ok(b.cu.cuMemCreate(&one, piece, &properties, 0), "cuMemCreate");
  b.ok(b.cu.cuMemCreate(&two, piece, &properties, 0), "cuMemCreate");
  b.ok(b.cu.cuMemMap(base, piece, 0, one, 0), "cuMemMap");
  b.ok(b.cu.cuMemMap(base + piece, piece, 0, two, 0), "cuMemMap beside it");
  b.expect(b.cu.cuMemMap(base, piece, 0, two, 0), CUDA_ERROR_INVALID_VALUE, "cuMemMap where memory is mapped");
  std::vector<unsigned> host = counting(piece / 2);  // of words: both pieces
  Stream stream(b);
  b.expect(b.cu.cuMemcpyAsync(base, address(host.data()), 8, stream), CUDA_ERROR_INVALID_VALUE,
           "a copy to memory without access");
  CUmemAccessDesc access = {};
  access.location = properties.location;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  b.expect(b.cu.cuMemSetAccess(base, 3 * piece, &access, 1), CUDA_ERROR_INVALID_VALUE,
           "cuMemSetAccess beyond what is mapped");
  b.ok(b.cu.cuMemSetAccess(base, 2 * piece, &access, 1), "cuMemSetAccess over two mappings");
  b.ok(b.cu.cuMemcpyAsync(base, address(host.data()), 2 * piece, stream), "a copy over two mappings");
  auto* const words = reinterpret_cast<unsigned*>(base);
  b.ok(b.launch("add", 4, 256, AddArgs{words, int(piece / 2), 1}, stream), "a kernel over two mappings");
  stream.finish();
  int descriptor = -1;
  b.ok(b.cu.cuMemExportToShareableHandle(&descriptor, one, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
       "cuMemExportToShareableHandle");
  CUmemGenericAllocationHandle imported = 0;
  b.ok(b.cu.cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(std::intptr_t(descriptor)),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
       "cuMemImportFromShareableHandle");
  close(descriptor);
  b.ok(b.cu.cuMemMap(base + 8 * piece, piece, 0, imported, 0), "cuMemMap of imported memory");
  b.ok(b.cu.cuMemSetAccess(base + 8 * piece, piece, &access, 1), "cuMemSetAccess");
  b.ok(b.cu.cuMemRelease(one), "cuMemRelease of mapped memory");
  b.expect(b.cu.cuMemRelease(one), CUDA_ERROR_INVALID_VALUE, "cuMemRelease for the second time");
  std::vector<unsigned> got(piece / 2);
  b.ok(b.cu.cuMemcpyAsync(address(got.data()), base, 2 * piece, stream), "a copy from two mappings");
  for (unsigned& word : host) ++word;
  b.expect(got == host, "mapped memory holds what was written");
  b.ok(b.cu.cuMemcpyAsync(address(got.data()), base + 8 * piece, piece, stream), "a copy from imported memory");
  b.expect(got == host, "imported memory is the exported one");
  b.expect(b.cu.cuMemUnmap(base, piece / 2), CUDA_ERROR_INVALID_VALUE, "cuMemUnmap of half a mapping");
  b.ok(b.cu.cuMemUnmap(base, 2 * piece), "cuMemUnmap of two mappings");
  b.expect(b.cu.cuMemAddressFree(base, std::size_t(1) << 40), CUDA_ERROR_INVALID_VALUE,
           "cuMemAddressFree while memory is mapped");
  b.ok(b.cu.cuMemUnmap(base + 8 * piece, piece), "cuMemUnmap");
  b.ok(b.cu.cuMemRelease(two), "cuMemRelease");
  b.ok(b.cu.cuMemRelease(imported), "cuMemRelease");
  b.ok(b.cu.cuMemAddressFree(base, std::size_t(1) << 40), "cuMemAddressFree");
}

// Several cards.

void peers(Bench& b) {
  CUdevice other = 0;
  b.ok(b.cu.cuDeviceGet(&other, 1), "cuDeviceGet");
  int can_access = 0;
  b.ok(b.cu.cuDeviceCanAccessPeer(&can_access, b.device, other), "cuDeviceCanAccessPeer");
  CUcontext context = nullptr;
  b.ok(b.cu.cuDevicePrimaryCtxRetain(&context, other), "cuDevicePrimaryCtxRetain");
  b.ok(b.cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
  CUdeviceptr there = 0;
  b.ok(b.cu.cuMemAlloc(&there, 4000), "cuMemAlloc");
  b.ok(b.cu.cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
  // Copies of the driver need no access.
  OnCard<unsigned> here(b, 1000);
  here.put(counting(1000));
  Stream stream(b);
  b.ok(b.cu.cuMemcpyAsync(there, here, 4000, stream), "a copy from card to card");
  b.ok(b.cu.cuMemsetD32Async(here, 0, 1000, stream), "memset");
  b.ok(b.cu.cuMemcpyAsync(here, there, 4000, stream), "a copy from card to card");
  stream.finish();
  b.expect(here.values() == counting(1000), "copies between cards");
  b.expect(b.cu.cuCtxDisablePeerAccess(context), CUDA_ERROR_PEER_ACCESS_NOT_ENABLED,
           "cuCtxDisablePeerAccess of access that was not enabled");
  const CUresult enabled = b.cu.cuCtxEnablePeerAccess(context, 0);
  b.expect(enabled, can_access ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, "cuCtxEnablePeerAccess");
  if (enabled == CUDA_SUCCESS) {
    b.expect(b.cu.cuCtxEnablePeerAccess(context, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED,
             "cuCtxEnablePeerAccess for the second time");
    b.ok(b.launch("add", 2, 64, AddArgs{reinterpret_cast<unsigned*>(there), 1000, 3}, stream),
         "a kernel on the memory of another card");
    b.ok(b.cu.cuMemcpyAsync(here, there, 4000, stream), "a copy from card to card");
    stream.finish();
    b.expect(here.values() == counting(1000, 3), "with access, kernels use the memory of another card");
    b.ok(b.cu.cuCtxDisablePeerAccess(context), "cuCtxDisablePeerAccess");
  }
  b.ok(b.cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
  b.ok(b.cu.cuMemFree(there), "cuMemFree");
  b.ok(b.cu.cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
}

/// A pool of another card, with access for the card of the bench, and memory of it.
struct PoolOfPeer {
  PoolOfPeer(Bench& of, CUdevice device, std::size_t bytes) : bench(of) {
    CUmemPoolProps properties = {};
    properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = device;
    bench.ok(bench.cu.cuMemPoolCreate(&pool, &properties), "cuMemPoolCreate");
    bench.ok(bench.cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
    bench.ok(bench.cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    bench.ok(bench.cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    bench.ok(bench.cu.cuMemAllocFromPoolAsync(&at, bytes, pool, stream), "cuMemAllocFromPoolAsync");
    bench.ok(bench.cu.cuStreamSynchronize(stream), "cuStreamSynchronize");
    bench.ok(bench.cu.cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
  }
  ~PoolOfPeer() {
    bench.cu.cuCtxPushCurrent(context);
    bench.cu.cuMemFreeAsync(at, stream);
    bench.cu.cuStreamSynchronize(stream);
    bench.cu.cuStreamDestroy(stream);
    bench.cu.cuMemPoolDestroy(pool);
    bench.cu.cuCtxPopCurrent(nullptr);
  }
  PoolOfPeer(const PoolOfPeer&) = delete;
  CUresult set_access(CUdevice device, CUmemAccess_flags flags) const {
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = flags;
    return bench.cu.cuMemPoolSetAccess(pool, &access, 1);
  }
  Bench& bench;
  CUmemoryPool pool = nullptr;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr at = 0;
};

void pools_of_peers(Bench& b) {
  CUdevice other = 0;
  b.ok(b.cu.cuDeviceGet(&other, 1), "cuDeviceGet");
  int can_access = 0;
  b.ok(b.cu.cuDeviceCanAccessPeer(&can_access, b.device, other), "cuDeviceCanAccessPeer");
  PoolOfPeer pool(b, other, 4000);
  b.expect(pool.set_access(other, CU_MEM_ACCESS_FLAGS_PROT_NONE), CUDA_ERROR_INVALID_DEVICE,
           "the card of a pool without access to it");
  const CUresult is_set = pool.set_access(b.device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  b.expect(is_set, can_access ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE, "cuMemPoolSetAccess of a pool with memory");
  if (is_set != CUDA_SUCCESS) return;
  Stream stream(b);
  OnCard<unsigned> here(b, 1000);
  b.ok(b.cu.cuMemsetD32Async(pool.at, 5, 1000, stream), "memset of memory of another card");
  b.ok(b.launch("add", 2, 64, AddArgs{reinterpret_cast<unsigned*>(pool.at), 1000, 3}, stream),
       "a kernel on memory of a pool of another card");
  b.ok(b.cu.cuMemcpyAsync(here, pool.at, 4000, stream), "a copy from card to card");
  stream.finish();
  b.expect(here.values() == std::vector<unsigned>(1000, 8), "with access, kernels use a pool of another card");
}

// What breaks a context.

void lost(Bench& b, CUresult error, const std::function<CUresult(CUstream)>& launch) {
  Pinned<Word> pinned(b, 1);
  pinned[0] = 11;
  Stream stream(b), other(b);
  Event event(b);
  static std::atomic<bool> is_called;
  is_called = false;
  b.ok(launch(stream), "a launch that fails");
  b.cu.cuLaunchHostFunc(
      stream, [](void*) { is_called = true; }, nullptr);
  b.expect(b.cu.cuStreamSynchronize(stream), error, "cuStreamSynchronize after it");
  b.expect(!is_called, "a host function behind a kernel that fails is not called");
  b.expect(b.cu.cuStreamSynchronize(other), error, "cuStreamSynchronize of another stream");
  b.expect(b.cu.cuStreamQuery(other), error, "cuStreamQuery of another stream");
  b.expect(b.cu.cuEventQuery(event), error, "cuEventQuery");
  CUdeviceptr memory = 0;
  b.expect(b.cu.cuMemAlloc(&memory, 16), error, "cuMemAlloc");
  void* host = nullptr;
  b.expect(b.cu.cuMemHostAlloc(&host, 16, 0), error, "cuMemHostAlloc");
  b.expect(b.launch("add", 1, 32, AddArgs{}, other), error, "a launch into another stream");
  b.expect(pinned[0] == 11, "pinned memory can be read");
  unsigned type = 0;
  CUpointer_attribute which = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* out = &type;
  b.expect(b.cu.cuPointerGetAttributes(1, &which, &out, pinned), CUDA_SUCCESS, "cuPointerGetAttributes");
  const char* name = nullptr;
  b.expect(b.cu.cuGetErrorName(error, &name) == CUDA_SUCCESS && name, "the error has a name");
}

void illegal_address(Bench& b) {
  OnCard<unsigned> card(b, 16);
  lost(b, CUDA_ERROR_ILLEGAL_ADDRESS, [&](CUstream stream) {
    return b.launch("poke", 1, 32, PokeArgs{reinterpret_cast<unsigned char*>(card.at + (std::size_t(1) << 46)), 4},
                    stream);
  });
}
void misaligned_address(Bench& b) {
  OnCard<unsigned> card(b, 16);
  lost(b, CUDA_ERROR_MISALIGNED_ADDRESS, [&](CUstream stream) {
    return b.launch("poke", 1, 32, PokeArgs{reinterpret_cast<unsigned char*>(card.at + 4), 8}, stream);
  });
}
void trapped(Bench& b) {
  // A trap is an illegal instruction to some drivers.
  lost(b, CUDA_ERROR_LAUNCH_FAILED, [&](CUstream stream) { return b.launch("trap", 1, 32, NoArgs{}, stream); });
}
void pageable_of_the_host(Bench& b) {
  // By its own mapping, so that no driver happens to know the page.
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  lost(b, CUDA_ERROR_ILLEGAL_ADDRESS, [&](CUstream stream) {
    return b.launch("poke", 1, 32, PokeArgs{static_cast<unsigned char*>(page), 4}, stream);
  });
  munmap(page, 4096);
}

void no_access_to_peers(Bench& b) {
  CUdevice other = 0;
  b.ok(b.cu.cuDeviceGet(&other, 1), "cuDeviceGet");
  PoolOfPeer pool(b, other, 4000);
  pool.set_access(b.device, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  CUdeviceptr there = 0;
  b.ok(b.cu.cuCtxPushCurrent(pool.context), "cuCtxPushCurrent");
  b.ok(b.cu.cuMemAlloc(&there, 4000), "cuMemAlloc");
  b.ok(b.cu.cuCtxPopCurrent(nullptr), "cuCtxPopCurrent");
  lost(b, CUDA_ERROR_ILLEGAL_ADDRESS, [&](CUstream stream) {
    return b.launch("poke", 1, 32, PokeArgs{reinterpret_cast<unsigned char*>(there), 4}, stream);
  });
  b.cu.cuCtxPushCurrent(pool.context);
  b.cu.cuMemFree(there);
  b.cu.cuCtxPopCurrent(nullptr);
}
void no_access_to_pools_of_peers(Bench& b) {
  CUdevice other = 0;
  b.ok(b.cu.cuDeviceGet(&other, 1), "cuDeviceGet");
  PoolOfPeer pool(b, other, 4000);
  const CUresult enabled = b.cu.cuCtxEnablePeerAccess(pool.context, 0);
  lost(b, CUDA_ERROR_ILLEGAL_ADDRESS, [&](CUstream stream) {
    return b.launch("poke", 1, 32, PokeArgs{reinterpret_cast<unsigned char*>(pool.at), 4}, stream);
  });
  if (enabled == CUDA_SUCCESS) b.cu.cuCtxDisablePeerAccess(pool.context);
}

constexpr Case cases[] = {
    {"allocations", allocations},
    {"pinned memory", pinned_memory},
    {"what an address is", pointers},
    {"pools", pools},
    {"a free waits for kernels", frees_wait},
    {"copies from and to pinned memory", pinned_copies},
    {"copies from and to pageable memory", pageable_copies},
    {"copies on the card", copies_on_the_card},
    {"copies that are refused", refused_copies},
    {"memsets", memsets},
    {"strided copies", strided_copies},
    {"order of a stream", stream_order},
    {"events", events},
    {"wrong handles", wrong_handles},
    {"the default stream", default_stream},
    {"host functions", host_functions},
    {"words that streams write and wait for", words_of_streams},
    {"launches", launches},
    {"shared memory", shared_memory},
    {"warps", warps},
    {"occupancy and cooperative launches", occupancy},
    {"kernels that wait for each other", kernels_meet},
    {"kernels on many streams", kernels_on_many_streams},
    {"queues that are full", full_queues},
    {"the loading of kernels", loading},
    {"copies beside kernels", copies_beside_kernels},
    {"graphs", graphs},
    {"captures that are broken", broken_captures},
    {"calls beside captures", captures_beside},
    {"objects that graphs keep", objects_of_graphs},
    {"virtual memory", mapping},
    {"several cards", peers, false, 2},
    {"pools of several cards", pools_of_peers, false, 2},
    {"an illegal address", illegal_address, true},
    {"a misaligned address", misaligned_address, true},
    {"a trap", trapped, true},
    {"memory of the host that the card cannot reach", pageable_of_the_host, true},
    {"memory of another card without access", no_access_to_peers, true, 2},
    {"a pool of another card without access", no_access_to_pools_of_peers, true, 2},
};

}  // namespace

Bench::Bench(const cuda::software::AllCalls& calls, const void* code_of) : cu(calls), code(code_of) {
  ok(cu.cuDeviceGet(&device, 0), "cuDeviceGet");
  ok(cu.cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  ok(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  ok(cu.cuLibraryLoadData(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0), "cuLibraryLoadData");
#define TRANSHIP_LOAD(name, Args, shared) kernel(#name);
  TRANSHIP_CONTRACT_KERNELS(TRANSHIP_LOAD)
#undef TRANSHIP_LOAD
}

Bench::~Bench() {
  cu.cuLibraryUnload(library);
  cu.cuDevicePrimaryCtxRelease(device);
}

CUfunction Bench::kernel(const std::string& name) {
  CUfunction& function = kernels_[name];
  if (function) return function;
  CUkernel found = nullptr;
  ok(cu.cuLibraryGetKernel(&found, library, ("contract_" + name).c_str()), "cuLibraryGetKernel");
  ok(cu.cuKernelGetFunction(&function, found), "cuKernelGetFunction");
  ok(cu.cuFuncLoad(function), "cuFuncLoad");
  return function;
}

std::string Bench::name_of(CUresult result) const {
  const char* name = nullptr;
  cu.cuGetErrorName(result, &name);
  return name ? name : "error " + std::to_string(int(result));
}
void Bench::expect(bool is_so, const std::string& what) {
  ++checks;
  if (!is_so) wrong.push_back(what + ": no");
}
void Bench::expect(CUresult is, CUresult wanted, const std::string& what) {
  ++checks;
  if (is != wanted) wrong.push_back(what + ": " + name_of(is) + ", not " + name_of(wanted));
}

std::span<const Case> all_cases() {
  return cases;
}

}  // namespace tranship::contract
