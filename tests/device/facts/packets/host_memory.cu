// Measures how the card reaches pinned memory of the host: the latency of a load, the rate of many loads and stores by
// lanes and of copies by the driver, and atomic additions, alone and while the host adds too. Read next:
// port_channels.cu.
#include <atomic>

#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

enum class Chase { relaxed_sys, weak };

/// Each load waits for the one before: a word holds the index of the next word.
template <Chase kind>
__global__ void chase(const Word* words, int loads, Word* out) {
  Word at = 0;
  const Word begin = global_ns();
  for (int i = 0; i < loads; ++i) at = kind == Chase::weak ? load_weak(words + at) : load_relaxed_sys(words + at);
  out[0] = global_ns() - begin;
  out[1] = at;
}

/// Each lane keeps four vectors in flight, and folds what it reads into `fold`.
__global__ void __launch_bounds__(512) read_all(const Vector* from, std::size_t count, Word* fold) {
  constexpr int depth = 4;
  Word folded = 0;
  const std::size_t tile = std::size_t(blockDim.x) * depth;
  for (std::size_t base = blockIdx.x * tile; base < count; base += gridDim.x * tile) {
    Vector held[depth];
#pragma unroll
    for (int u = 0; u < depth; ++u) {
      const std::size_t i = base + std::size_t(u) * blockDim.x + threadIdx.x;
      held[u] = i < count ? from[i] : Vector{0, 0};
    }
#pragma unroll
    for (const Vector& v : held) folded ^= v.x ^ v.y;
  }
  for (int apart = 16; apart > 0; apart /= 2) folded ^= __shfl_xor_sync(~0u, folded, apart);
  if (threadIdx.x % 32 == 0) atomicXor(fold, folded);
}
__global__ void __launch_bounds__(512) write_all(Vector* to, std::size_t count, Word seed) {
  const std::size_t step = std::size_t(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < count; i += step)
    to[i] = {seed + i * 0x9e3779b97f4a7c15ull, seed ^ i};
}

__global__ void add_in_turn(Word* counter, int times, Word* out) {
  Word sum = 0;
  const Word begin = global_ns();
  for (int i = 0; i < times; ++i) sum = atomicAdd_system(counter, 1 + (sum >> 63));
  out[0] = global_ns() - begin;
  out[1] = sum;
}
__global__ void add_and_forget(Word* counter, int times, Word* out) {
  const Word begin = global_ns();
  for (int i = 0; i < times; ++i) add_relaxed_sys(counter, 1);
  fence_sys();
  out[0] = global_ns() - begin;
}
__global__ void add_together(Word* counter, int times) {
  for (int i = 0; i < times; ++i) atomicAdd_system(counter, 1ull);
}
/// The host adds at the same time until it sees `over`.
__global__ void add_against(Word* counter, int times, Word* over) {
  for (int i = 0; i < times; ++i) atomicAdd_system(counter, 1ull);
  fence_sys();
  store_relaxed_sys(over, 1);
}

class HostMemory {
 public:
  explicit HostMemory(const Options& options)
      : quick_(options.quick()),
        bytes_(options.quick() ? std::size_t(1) << 20 : std::size_t(64) << 20),
        pinned_(bytes_ / 8),
        card_(bytes_ / 8),
        out_(4),
        stream_(new_stream()) {
    for (std::size_t i = 0; i < bytes_ / 8; ++i) pinned_[i] = i * 0xd6e8feb86659fd93ull ^ i >> 7;
    card_.fill(0xa5);
  }
  ~HostMemory() { cudaStreamDestroy(stream_); }

  void latencies() {
    const int loads = quick_ ? 50 : 1000;
    PinnedArray<Word> words(std::size_t(1024) * 16);
    // One cycle visits all 1024 lines in a far order, and another the first 8.
    const auto cycle = [&](unsigned lines, unsigned stride) {
      for (unsigned i = 0; i < lines; ++i) words[std::size_t(i) * 16] = Word((i + stride) % lines) * 16;
    };
    cycle(1024, 389);
    latency<Chase::relaxed_sys>("a load by ld.relaxed.sys from pinned memory", words.data(), loads);
    latency<Chase::weak>("a plain load from pinned memory, a line read once", words.data(), loads);
    cycle(8, 3);
    latency<Chase::relaxed_sys>("a load by ld.relaxed.sys from pinned memory, 8 lines in turn", words.data(), loads);
    latency<Chase::weak>("a plain load from pinned memory, 8 lines in turn", words.data(), loads);
  }

  void rates_by_lanes() {
    Word fold = 0;
    for (std::size_t i = 0; i < bytes_ / 8; ++i) fold ^= pinned_[i];
    const int all = multiprocessors();
    for (const int blocks : {1, 8, 32, all * 2}) {
      const std::size_t bytes = blocks == 1 ? bytes_ / 16 : bytes_;
      const std::string by = std::to_string(blocks) + " blocks of 512 lanes, " + bytes_text(bytes);
      const Vector* const from = reinterpret_cast<const Vector*>(pinned_.data());
      rate("loads from pinned memory by " + by, bytes,
           [&] { read_all<<<blocks, 512, 0, stream_>>>(from, bytes / 16, out_.data()); });
      if (bytes == bytes_) {
        out_.fill(0);
        read_all<<<blocks, 512, 0, stream_>>>(from, bytes / 16, out_.data());
        TRANSHIP_CUDA(cudaGetLastError());
        TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
        check("right: loads from pinned memory by " + by, 1, out_.read()[0] != fold);
      }
    }
    PinnedArray<Word> target(bytes_ / 8);
    for (const int blocks : {1, 8, 32, all * 2}) {
      const std::size_t bytes = blocks == 1 ? bytes_ / 16 : bytes_;
      const std::string by = std::to_string(blocks) + " blocks of 512 lanes, " + bytes_text(bytes);
      std::memset(static_cast<void*>(target.data()), 0xa5, bytes);
      rate("stores to pinned memory by " + by, bytes, [&] {
        write_all<<<blocks, 512, 0, stream_>>>(reinterpret_cast<Vector*>(target.data()), bytes / 16, Word(blocks));
      });
      long long wrong = 0;
      for (std::size_t i = 0; i < bytes / 16; ++i)
        wrong += target[2 * i] != Word(blocks) + i * 0x9e3779b97f4a7c15ull || target[2 * i + 1] != (Word(blocks) ^ i);
      check("right: stores to pinned memory by " + by, (long long)(bytes / 16), wrong);
    }
  }

  void rates_by_copies() {
    for (const std::size_t wanted : {std::size_t(64) << 10, std::size_t(1) << 20, std::size_t(64) << 20}) {
      const std::size_t bytes = std::min(wanted, bytes_);
      rate("cudaMemcpyAsync of " + bytes_text(bytes) + " from pinned memory to the card", bytes, [&] {
        TRANSHIP_CUDA(cudaMemcpyAsync(card_.data(), pinned_.data(), bytes, cudaMemcpyHostToDevice, stream_));
      });
      rate("cudaMemcpyAsync of " + bytes_text(bytes) + " from the card to pinned memory", bytes, [&] {
        TRANSHIP_CUDA(cudaMemcpyAsync(pinned_.data(), card_.data(), bytes, cudaMemcpyDeviceToHost, stream_));
      });
    }
  }

  void additions() {
    PinnedArray<Word> words(64);
    const int times = quick_ ? 20 : 500;
    Samples in_turn, forgotten;
    long long wrong = 0;
    for (int sample = -1; sample < samples(); ++sample) {
      words[0] = 0;
      add_in_turn<<<1, 1, 0, stream_>>>(words.data(), times, out_.data());
      add_and_forget<<<1, 1, 0, stream_>>>(words.data() + 16, times, out_.data() + 2);
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
      const std::vector<Word> ns = out_.read();
      wrong += words[0] != Word(times);
      if (sample < 0) continue;
      in_turn.values.push_back(double(ns[0]) / times);
      forgotten.values.push_back(double(ns[2]) / times);
    }
    figure("atomicAdd_system on pinned memory, each waits for the one before", in_turn, "ns");
    figure("red.relaxed.sys.add on pinned memory by one lane, in a row", forgotten, "ns");
    check("atomicAdd_system on pinned memory by one lane adds all", samples() + 1, wrong);
    words[0] = 0;
    const int rounds = quick_ ? 1 : 4;
    add_together<<<8, 256, 0, stream_>>>(words.data(), rounds);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
    check("atomicAdd_system on pinned memory by 2048 lanes adds all", 8 * 256 * rounds,
          std::llabs((long long)words[0] - 8ll * 256 * rounds));
    against_host(words);
  }

 private:
  int samples() const { return quick_ ? 1 : 9; }

  template <Chase kind>
  void latency(const std::string& name, const Word* words, int loads) {
    Samples ns;
    for (int sample = -1; sample < samples(); ++sample) {
      chase<kind><<<1, 1, 0, stream_>>>(words, loads, out_.data());
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
      if (sample >= 0) ns.values.push_back(double(out_.read()[0]) / loads);
    }
    figure(name, ns, "ns");
  }
  template <class Enqueue>
  void rate(const std::string& name, std::size_t bytes, const Enqueue& enqueue) {
    const Samples us = card_us(stream_, samples(), enqueue);
    char text[48];
    std::snprintf(text, sizeof text, "%.2f us", us.median());
    figure(name, us.mapped([&](double t) { return double(bytes) / t * 1e-3; }), "GB/s", text);
  }

  void against_host(PinnedArray<Word>& words) {
    words[0] = 0;
    words[32] = 0;
    const int times = quick_ ? 64 : 200000;
    std::atomic_ref<Word> counter(words[0]), over(words[32]);
    add_against<<<1, 32, 0, stream_>>>(words.data(), times / 32, words.data() + 32);
    TRANSHIP_CUDA(cudaGetLastError());
    Word mine = 0;
    const double limit = now_us() + 1e6;
    while (over.load(std::memory_order_acquire) == 0 && now_us() < limit) {
      counter.fetch_add(1, std::memory_order_relaxed);
      ++mine;
    }
    TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
    const long long wanted = (long long)mine + times / 32 * 32, got = (long long)counter.load();
    answer("additions lost when card and host add to one word of pinned memory", std::to_string(wanted - got),
           std::to_string(times / 32 * 32) + " of the card by atomicAdd_system, " + std::to_string(mine) +
               " of the host; expected: some, where the card has no native atomics with the host");
  }

  bool quick_;
  std::size_t bytes_;
  PinnedArray<Word> pinned_;
  CardArray<Word> card_, out_;
  cudaStream_t stream_;
};

}  // namespace

void host_memory(const Options& options) {
  HostMemory memory(options);
  memory.latencies();
  memory.rates_by_lanes();
  memory.rates_by_copies();
  memory.additions();
}

}  // namespace tranship::device
