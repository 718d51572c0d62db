// device_mover [--small]: copies, fills and combinations of streams of buffers on a card: bytes against the host, times
// against the card's own copy in the same run, and NDSL's halo regions by one Stream::copy_list.
//
// "queued" times have the work in the stream behind a kernel that spins, and are the card's; "alone" includes the host;
// "host" is the time of the call.
#include <array>
#include <chrono>
#include <cstring>
#include <memory>

#include <tranship/base/error.hpp>
#include <tranship/cuda/cuda_devices.hpp>
#include <tranship/memory/device/devices.hpp>
#include <tranship/memory/device/driver.hpp>
#include <tranship/memory/device/host_device.hpp>
#include <tranship/memory/pool/pool.hpp>

#include "support/card.hpp"

namespace tranship::device {
namespace {

constexpr int rounds = 15;

__global__ void spin(long long ns) {
  unsigned long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now < begin + static_cast<unsigned long long>(ns));
}

/// A stream of buffers, and its times by events of the runtime.
class Bench {
 public:
  Bench() : devices_({.kinds = {CudaDevices{}}}), stream_(devices_.make_stream(Device::cuda(0))) {
    native_ = static_cast<cudaStream_t>(stream_->native_handle());
    TRANSHIP_CUDA(cudaEventCreate(&begin_));
    TRANSHIP_CUDA(cudaEventCreate(&end_));
  }
  Devices& devices() { return devices_; }
  Stream& stream() { return *stream_; }
  void finish() { tranship::finish(stream_->event(), Deadline::after_seconds(60)); }

  template <class F>
  Samples queued_us(const F& enqueue) {
    return sampled([&] { spin<<<1, 1, 0, native_>>>(300'000); }, enqueue);
  }
  template <class F>
  Samples alone_us(const F& enqueue) {
    return sampled([] {}, enqueue);
  }
  template <class F>
  Samples host_us(const F& enqueue) {
    Samples out;
    for (int round = -3; round < rounds; ++round) {
      const auto begin = std::chrono::steady_clock::now();
      enqueue();
      const double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
      finish();
      if (round >= 0) out.values.push_back(us);
    }
    return out;
  }

 private:
  template <class Before, class F>
  Samples sampled(const Before& before, const F& enqueue) {
    Samples out;
    for (int round = -3; round < rounds; ++round) {
      before();
      TRANSHIP_CUDA(cudaEventRecord(begin_, native_));
      enqueue();
      TRANSHIP_CUDA(cudaEventRecord(end_, native_));
      finish();
      float ms = 0;
      TRANSHIP_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      if (round >= 0) out.values.push_back(ms * 1e3);
    }
    return out;
  }

  Devices devices_;
  std::unique_ptr<Stream> stream_;
  cudaStream_t native_;
  cudaEvent_t begin_, end_;
};

/// Memory of a pool of the devices.
class Room {
 public:
  Room(Pool& pool, long long bytes) : pool_(pool), block_(pool.allocate(static_cast<std::size_t>(bytes))) {}
  ~Room() { pool_.free(block_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(block_.memory); }

 private:
  Pool& pool_;
  PoolBlock block_;
};

class Mover {
 public:
  explicit Mover(bool is_small)
      : bytes_(is_small ? 8ll << 20 : 512ll << 20),
        source_(card_pool(), bytes_),
        target_(card_pool(), bytes_),
        pinned_(bench_.devices().pinned_pool(memory()), bytes_) {
    for (long long i = 0; i < bytes_; i += 8) {
      const unsigned long long value = static_cast<unsigned long long>(i) * 0x9e3779b97f4a7c15u >> 7;
      std::memcpy(pinned_.data() + i, &value, 8);
    }
    bench_.stream().copy(row_of(bytes_, 1), 1, pinned_.data(), source_.data());
    bench_.finish();
  }

  void run() {
    reference();
    for (const auto& [row, pitch] :
         {std::pair{24ll, 96ll}, {24ll, 256ll}, {64ll, 128ll}, {256ll, 512ll}, {4096ll, 8192ll}, {65536ll, 131072ll}})
      rows(row, pitch);
    for (const int width : {1, 2, 4, 8, 16}) transpose(width);
    lists();
    combinations();
    fills();
    to_host();
    for (const bool k_is_fastest : {true, false})
      for (const int quantities : {1, 7, 28}) ndsl(quantities, k_is_fastest);
  }

 private:
  MemoryId memory() { return bench_.devices().memory_of(Device::cuda(0)); }
  Pool& card_pool() { return bench_.devices().pool(memory()); }

  /// Compares what a copy writes with what the host writes.
  void look(const std::string& name, const std::vector<StreamCopy>& copies, long long reach_bytes) {
    if (reach_bytes > 64ll << 20) reach_bytes = 64ll << 20;
    bench_.stream().fill(row_of(bytes_, 1), 1, nullptr, target_.data());
    bench_.stream().copy_list(copies);
    std::vector<std::byte> got(static_cast<std::size_t>(reach_bytes)), wanted(static_cast<std::size_t>(bytes_));
    bench_.stream().copy(row_of(reach_bytes, 1), 1, target_.data(), got.data());
    bench_.finish();
    for (const StreamCopy& one : copies)
      copy_on_host(one.block, one.width, pinned_.data() + (static_cast<const std::byte*>(one.source) - source_.data()),
                   wanted.data() + (static_cast<std::byte*>(one.target) - target_.data()));
    check(name, 1, std::memcmp(got.data(), wanted.data(), got.size()) != 0);
  }
  void measure(const std::string& name, const std::vector<StreamCopy>& copies, long long payload,
               long long reach_bytes) {
    look(name, copies, reach_bytes);
    const Samples us = bench_.queued_us([&] { bench_.stream().copy_list(copies); });
    figure(name, us.mapped([&](double t) { return 2e-3 * double(payload) / t; }), "GB/s", "read and written");
    figure(name + ", of the device copy", us.mapped([&](double t) { return 2e-3 * double(payload) / t / reference_; }),
           "");
  }

  void reference() {
    const Samples us =
        bench_.queued_us([&] { bench_.stream().copy(row_of(bytes_, 1), 1, source_.data(), target_.data()); });
    const Samples rate = us.mapped([&](double t) { return 2e-3 * double(bytes_) / t; });
    reference_ = rate.median();
    figure("mover: device copy", rate, "GB/s", "read and written");
  }
  void rows(long long row, long long pitch) {
    const long long count = bytes_ / pitch, width = row % 16 == 0 ? 16 : 8;
    CopyBlock pack{
        .dims = 2, .extents = {count, row / width}, .source_strides = {pitch, width}, .target_strides = {row, width}};
    const std::string name = "rows of " + std::to_string(row) + " bytes at pitch " + std::to_string(pitch);
    measure("mover: pack " + name, {{pack, int(width), source_.data(), target_.data()}}, count * row, count * row);
    CopyBlock unpack = pack;
    std::swap(unpack.source_strides, unpack.target_strides);
    measure("mover: unpack " + name, {{unpack, int(width), source_.data(), target_.data()}}, count * row, bytes_);
  }
  void transpose(int width) {
    long long side = 64;
    while (4 * side * side * width <= bytes_ && side < 8192) side *= 2;
    const CopyBlock block{.dims = 2,
                          .extents = {side, side},
                          .source_strides = {side * width, width},
                          .target_strides = {width, side * width}};
    measure("mover: transpose of " + std::to_string(side) + " x " + std::to_string(side) + " elements of " +
                std::to_string(width) + " bytes",
            {{block, width, source_.data(), target_.data()}}, side * side * width, side * side * width);
  }
  void lists() {
    for (const int count : {20, 64, 1000}) {
      const long long each = std::min(bytes_ / count / 512, 4096ll) * 256, rows = each / 256;
      std::vector<StreamCopy> copies;
      for (int i = 0; i < count; ++i)
        copies.push_back(
            {CopyBlock{.dims = 2, .extents = {rows, 32}, .source_strides = {512, 8}, .target_strides = {256, 8}}, 8,
             source_.data() + 2 * each * i, target_.data() + each * i});
      const std::string name = "mover: list of " + std::to_string(count) + " copies of " + std::to_string(each >> 10) +
                               " KiB in rows of 256 bytes";
      measure(name, copies, each * count, each * count);
      figure(name + ", host", bench_.host_us([&] { bench_.stream().copy_list(copies); }), "us");
    }
  }
  void combinations() {
    for (const auto& [type, name] : {std::pair{ElementType::f64, "f64"},
                                     {ElementType::f32, "f32"},
                                     {ElementType::bf16, "bf16"},
                                     {ElementType::i8, "i8"}}) {
      const long long size = size_bytes(type), count = bytes_ / size;
      const Samples us = bench_.queued_us(
          [&] { bench_.stream().combine(row_of(count, size), Combine::sum, type, source_.data(), target_.data()); });
      figure(std::string("mover: sum of ") + name, us.mapped([&](double t) { return 3e-3 * double(bytes_) / t; }),
             "GB/s", "two reads and a write");
      figure(std::string("mover: sum of ") + name + ", of the device copy",
             us.mapped([&](double t) { return 3e-3 * double(bytes_) / t / reference_; }), "");
    }
  }
  void fills() {
    const double value = 1.5;
    const Samples whole =
        bench_.queued_us([&] { bench_.stream().fill(row_of(bytes_ / 8, 8), 8, &value, target_.data()); });
    figure("mover: fill of f64", whole.mapped([&](double t) { return 1e-3 * double(bytes_) / t; }), "GB/s");
    const Samples zeros =
        bench_.queued_us([&] { bench_.stream().fill(row_of(bytes_, 1), 1, nullptr, target_.data()); });
    figure("mover: fill with zeros", zeros.mapped([&](double t) { return 1e-3 * double(bytes_) / t; }), "GB/s");
  }
  void to_host() {
    const long long bytes = std::min(bytes_, 128ll << 20);
    std::vector<std::byte> pageable(static_cast<std::size_t>(bytes));
    const CopyBlock whole = row_of(bytes, 1);
    const CopyBlock strided{
        .dims = 2, .extents = {bytes / 512, 16}, .source_strides = {512, 16}, .target_strides = {256, 16}};
    const auto rate = [&](const std::string& name, long long moved, const auto& enqueue) {
      figure("mover: " + name, bench_.alone_us(enqueue).mapped([&](double t) { return 1e-3 * double(moved) / t; }),
             "GB/s");
    };
    rate("card to pinned memory", bytes, [&] { bench_.stream().copy(whole, 1, source_.data(), pinned_.data()); });
    rate("pinned memory to card", bytes, [&] { bench_.stream().copy(whole, 1, pinned_.data(), source_.data()); });
    rate("card to pinned memory, rows of 256 bytes", bytes / 2,
         [&] { bench_.stream().copy(strided, 16, source_.data(), pinned_.data()); });
    bench_.stream().copy(whole, 1, source_.data(), pinned_.data());  // what later checks compare with
    bench_.finish();
    rate("card to pageable memory", bytes, [&] { bench_.stream().copy(whole, 1, source_.data(), pageable.data()); });
    rate("pageable memory to card", bytes, [&] { bench_.stream().copy(whole, 1, pageable.data(), target_.data()); });
    bench_.finish();
    check("mover: through pageable memory", 1, std::memcmp(pageable.data(), pinned_.data(), pageable.size()) != 0);
    const auto registration = bench_.devices().driver(memory()).register_foreign(pageable.data(), pageable.size());
    rate("card to registered memory", bytes, [&] { bench_.stream().copy(whole, 1, source_.data(), pageable.data()); });
  }

  /// The regions that NDSL sends: quantities of 192 x 192 x 79 doubles with a halo of 3.
  void ndsl(int quantities, bool k_is_fastest) {
    constexpr long long halo = 3, along = 192, levels = 79, extent = along + 2 * halo, width = 8;
    const long long of_one = extent * extent * levels * width;
    if (of_one * quantities > bytes_ || of_one * quantities > 800ll << 20) return;
    struct Part {
      long long i, j, i_count, j_count;
    };
    const std::array<Part, 8> parts = {{{halo, along, along, halo},
                                        {halo, halo, along, halo},
                                        {halo, halo, halo, along},
                                        {along, halo, halo, along},
                                        {halo, along, halo, halo},
                                        {along, along, halo, halo},
                                        {halo, halo, halo, halo},
                                        {along, halo, halo, halo}}};
    const std::array<long long, 3> strides =
        k_is_fastest ? std::array<long long, 3>{extent * levels * width, levels * width, width}
                     : std::array<long long, 3>{width, extent * width, extent * extent * width};
    std::vector<StreamCopy> copies;
    long long at = 0;
    for (const Part& part : parts)
      for (int q = 0; q < quantities; ++q) {
        const CopyBlock block{.dims = 3,
                              .extents = {part.i_count, part.j_count, levels},
                              .source_strides = {strides[0], strides[1], strides[2]},
                              .target_strides = {part.j_count * levels * width, levels * width, width}};
        copies.push_back({block, int(width), source_.data() + of_one * q + part.i * strides[0] + part.j * strides[1],
                          target_.data() + at});
        at += element_count(block) * width;
      }
    const std::string name = std::string("mover: NDSL, ") + (k_is_fastest ? "k" : "i") + " fastest, " +
                             std::to_string(quantities) + (quantities == 1 ? " quantity" : " quantities");
    look(name, copies, at);
    const auto enqueue = [&] { bench_.stream().copy_list(copies); };
    figure(name + ", queued", bench_.queued_us(enqueue), "us");
    figure(name + ", alone", bench_.alone_us(enqueue), "us");
    figure(name + ", host", bench_.host_us(enqueue), "us", "the call");
  }

  long long bytes_;
  Bench bench_;
  Room source_, target_, pinned_;
  double reference_ = 1;
};

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  const bool is_small = argc > 1 && std::string(argv[1]) == "--small";
  try {
    tranship::device::Mover(is_small).run();
  } catch (const std::exception& error) {
    tranship::device::fault(std::string("mover: ") + error.what());
    return 3;
  }
  return 0;
}
