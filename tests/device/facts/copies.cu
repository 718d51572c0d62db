// Measures how fast the card copies memory, and what that takes: bytes in flight, width of elements, bulk copies,
// transposes, short rows, one block alone. All rates are compared with the card's own copy in the same run. Regions
// rotate through more memory than the L2 holds unless the name says otherwise. Each kernel's result is checked.
#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

constexpr int threads = 256;

__global__ void fill_random(Word* to, std::size_t words, Word seed) {
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < words;
       i += std::size_t(gridDim.x) * blockDim.x)
    to[i] = scrambled(seed + i);
}

/// Describes a copy of rows of `row_bytes` bytes, with a pitch on each side. For a transpose, `width` is that of the
/// elements.
struct Shape {
  std::size_t source_pitch, target_pitch;
  unsigned row_bytes, rows;
};

__global__ void count_wrong_rows(const unsigned char* source, const unsigned char* target, Shape shape, Word* wrong) {
  const Word total = Word(shape.row_bytes) * shape.rows;
  Word mine = 0;
  for (Word i = blockIdx.x * Word(blockDim.x) + threadIdx.x; i < total; i += Word(gridDim.x) * blockDim.x) {
    const Word row = i / shape.row_bytes, column = i % shape.row_bytes;
    mine += source[row * shape.source_pitch + column] != target[row * shape.target_pitch + column];
  }
  if (mine != 0) atomicAdd(wrong, mine);
}
/// Counts wrong words after a copy of long runs of whole words.
__global__ void count_wrong_words(const Word* source, const Word* target, std::size_t words, Word* wrong) {
  Word mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < words;
       i += std::size_t(gridDim.x) * blockDim.x)
    mine += source[i] != target[i];
  if (mine != 0) atomicAdd(wrong, mine);
}

// ---- kernels ----

enum class Hint { none, streaming };

template <Hint hint>
__device__ uint4 load_hinted(const uint4* from) {
  if constexpr (hint == Hint::none) return *from;
  uint4 v;
  // The load is not .nc: the assembler knows that stores do not touch such loads, and lets only two be in flight.
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from)
               : "memory");
  return v;
}
template <Hint hint, class V>
__device__ V load_hinted(const V* from) {
  return *from;
}
template <Hint hint, class V>
__device__ void store_hinted(V* to, V value) {
  if constexpr (hint == Hint::none)
    *to = value;
  else
    __stcs(to, value);
}

/// Each block takes tiles of blockDim x depth elements in turn; a lane has `depth` loads in flight.
template <class V, int depth, Hint hint = Hint::none>
__global__ void copy(const V* source, V* target, std::size_t count) {
  const std::size_t tile = std::size_t(blockDim.x) * depth;
  for (std::size_t base = blockIdx.x * tile; base < count; base += gridDim.x * tile) {
    V held[depth];
#pragma unroll
    for (int u = 0; u < depth; ++u) {
      const std::size_t i = base + std::size_t(u) * blockDim.x + threadIdx.x;
      if (i < count) held[u] = load_hinted<hint>(source + i);
    }
#pragma unroll
    for (int u = 0; u < depth; ++u) {
      const std::size_t i = base + std::size_t(u) * blockDim.x + threadIdx.x;
      if (i < count) store_hinted<hint>(target + i, held[u]);
    }
  }
}

/// Copies rows of `row_vectors` vectors; both pitches count vectors.
template <class V>
__global__ void copy_rows(const unsigned char* source, unsigned char* target, Shape shape) {
  constexpr unsigned depth = 4;
  const unsigned row_vectors = shape.row_bytes / unsigned(sizeof(V));
  const unsigned total = row_vectors * shape.rows, tile = blockDim.x * depth;
  for (Word base = blockIdx.x * Word(tile); base < total; base += Word(gridDim.x) * tile) {
    V held[depth];
    unsigned char* to[depth];
#pragma unroll
    for (unsigned u = 0; u < depth; ++u) {
      const unsigned i = unsigned(base) + u * blockDim.x + threadIdx.x;
      if (i < total) {
        const unsigned row = i / row_vectors, column = i - row * row_vectors;
        held[u] = *reinterpret_cast<const V*>(source + row * shape.source_pitch + column * sizeof(V));
        to[u] = target + row * shape.target_pitch + column * sizeof(V);
      }
    }
#pragma unroll
    for (unsigned u = 0; u < depth; ++u)
      if (unsigned(base) + u * blockDim.x + threadIdx.x < total) *reinterpret_cast<V*>(to[u]) = held[u];
  }
}

/// Stores target[c][r] = source[r][c] with 32 x 8 lanes; both dimensions are multiples of 32.
template <class V>
__global__ void transpose(const V* source, V* target, unsigned rows, unsigned columns) {
  __shared__ V tile[32][33];
  const unsigned column = blockIdx.x * 32, row = blockIdx.y * 32;
#pragma unroll
  for (unsigned k = 0; k < 32; k += 8)
    tile[threadIdx.y + k][threadIdx.x] = source[std::size_t(row + threadIdx.y + k) * columns + column + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (unsigned k = 0; k < 32; k += 8)
    target[std::size_t(column + threadIdx.y + k) * rows + row + threadIdx.x] = tile[threadIdx.x][threadIdx.y + k];
}
template <class V>
__global__ void count_wrong_transposed(const V* source, const V* target, unsigned rows, unsigned columns, Word* wrong) {
  const std::size_t total = std::size_t(rows) * columns;
  Word mine = 0;
  for (std::size_t i = blockIdx.x * std::size_t(blockDim.x) + threadIdx.x; i < total;
       i += std::size_t(gridDim.x) * blockDim.x) {
    const unsigned* const a = reinterpret_cast<const unsigned*>(source + i);
    const unsigned* const b = reinterpret_cast<const unsigned*>(target + i % columns * rows + i / columns);
    for (unsigned part = 0; part < sizeof(V) / 4; ++part) mine += a[part] != b[part];
  }
  if (mine != 0) atomicAdd(wrong, mine);
}

struct Bulk {
  Shape shape;
  unsigned chunk_bytes;  ///< divides the rows
  unsigned stages;
};
[[maybe_unused]] constexpr unsigned stages_max = 8;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
__device__ bool arrived(unsigned barrier, unsigned parity) {
  unsigned done;
  asm volatile("{\n .reg .pred p;\n mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p;\n}"
               : "=r"(done)
               : "r"(barrier), "r"(parity)
               : "memory");
  return done != 0;
}
#endif

/// Copies rows by bulk copies through shared memory, with one lane a block. `stages` chunks rotate, of which all but
/// one are on their way in. A wait that takes about a second gives up and is counted.
__global__ void copy_bulk(const unsigned char* source, unsigned char* target, Bulk bulk, Word* gave_up) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  extern __shared__ __align__(128) unsigned char room[];
  __shared__ __align__(8) Word barriers[stages_max];
  if (threadIdx.x != 0) return;
  const unsigned room_at = unsigned(__cvta_generic_to_shared(room));
  const unsigned barriers_at = unsigned(__cvta_generic_to_shared(barriers));
  for (unsigned stage = 0; stage < bulk.stages; ++stage)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barriers_at + stage * 8) : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;\n fence.proxy.async.shared::cta;" ::: "memory");
  const unsigned chunks_a_row = bulk.shape.row_bytes / bulk.chunk_bytes;
  const unsigned pieces = chunks_a_row * bulk.shape.rows;
  const unsigned mine = blockIdx.x < pieces ? (pieces - 1 - blockIdx.x) / gridDim.x + 1 : 0;
  const auto place = [&](unsigned n, std::size_t pitch) {
    const unsigned piece = blockIdx.x + n * gridDim.x, row = piece / chunks_a_row;
    return row * pitch + std::size_t(piece - row * chunks_a_row) * bulk.chunk_bytes;
  };
  const auto load = [&](unsigned n) {
    const unsigned stage = n % bulk.stages, barrier = barriers_at + stage * 8;
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bulk.chunk_bytes)
                 : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     room_at + stage * bulk.chunk_bytes),
                 "l"(source + place(n, bulk.shape.source_pitch)), "r"(bulk.chunk_bytes), "r"(barrier)
                 : "memory");
  };
  for (unsigned n = 0; n + 1 < bulk.stages && n < mine; ++n) load(n);
  for (unsigned n = 0; n < mine; ++n) {
    const unsigned stage = n % bulk.stages;
    const long long begin = clock64();
    while (!arrived(barriers_at + stage * 8, n / bulk.stages & 1u))
      if (clock64() - begin > 2'000'000'000) {
        atomicAdd(gave_up, 1ull);
        return;
      }
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(target + place(n, bulk.shape.target_pitch)),
        "r"(room_at + stage * bulk.chunk_bytes), "r"(bulk.chunk_bytes)
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    // The next load goes to the stage of the previous store, which must have been read.
    asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    if (n + bulk.stages - 1 < mine) load(n + bulk.stages - 1);
  }
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
}

// ---- the bench ----

class Bench {
 public:
  explicit Bench(const Options& options) : rounds_(options.quick() ? 2 : 9), wrong_(1) {
    bytes_ = options.quick() ? std::size_t(64) << 20 : std::size_t(4) << 30;
    while (cudaMalloc(&source_, bytes_) != cudaSuccess || cudaMalloc(&target_, bytes_) != cudaSuccess) {
      cudaGetLastError();
      cudaFree(source_);
      source_ = nullptr;
      bytes_ /= 2;
      if (bytes_ < (std::size_t(32) << 20)) {
        fault("no memory for the copies");
        std::_Exit(3);
      }
    }
    fill_random<<<multiprocessors() * 8, threads>>>(reinterpret_cast<Word*>(source_), bytes_ / 8, now_seed);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaMemset(target_, 0xa5, bytes_));
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    stream_ = new_stream();
  }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  ~Bench() {
    cudaStreamDestroy(stream_);
    cudaFree(source_);
    cudaFree(target_);
  }

  std::size_t bytes() const { return bytes_; }
  cudaStream_t stream() const { return stream_; }

  /// Returns GB/s, where one call of `enqueue(source, target)` reads or writes `moved` bytes. Regions of `span` bytes
  /// rotate; with `repeats` > 1 a sample has several calls.
  template <class Enqueue>
  Samples rate(std::size_t span, double moved, const Enqueue& enqueue, int repeats = 1) {
    return card_us(stream_, rounds_,
                   [&] {
                     for (int i = 0; i < repeats; ++i) {
                       if (at_ + span > bytes_) at_ = 0;
                       enqueue(source_ + at_, target_ + at_);
                       at_ += (span + 255) / 256 * 256;
                     }
                   })
        .mapped([&](double us) { return moved * repeats / us * 1e-3; });
  }
  /// Returns GB/s where every call uses one region, which stays in the L2.
  template <class Enqueue>
  Samples resident_rate(double moved, const Enqueue& enqueue, int repeats) {
    return card_us(stream_, rounds_,
                   [&] {
                     for (int i = 0; i < repeats; ++i) enqueue(source_, target_);
                   })
        .mapped([&](double us) { return moved * repeats / us * 1e-3; });
  }

  /// Poisons a target, copies once, and counts what `count(source, target, wrong)` finds wrong.
  template <class Enqueue, class Count>
  void verify(const std::string& name, long long cases, std::size_t target_bytes, const Enqueue& enqueue,
              const Count& count) {
    TRANSHIP_CUDA(cudaMemsetAsync(wrong_.data(), 0, sizeof(Word), stream_));
    TRANSHIP_CUDA(cudaMemsetAsync(target_, 0xa5, target_bytes, stream_));
    enqueue(source_, target_);
    count(source_, target_, wrong_.data());
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaStreamSynchronize(stream_));
    check(name, cases, (long long)wrong_.read()[0]);
  }
  template <class Enqueue>
  void verify_words(const std::string& name, std::size_t span, const Enqueue& enqueue) {
    verify(name, (long long)(span / 8), span, enqueue,
           [&](const unsigned char* source, const unsigned char* target, Word* wrong) {
             count_wrong_words<<<multiprocessors() * 8, threads, 0, stream_>>>(
                 reinterpret_cast<const Word*>(source), reinterpret_cast<const Word*>(target), span / 8, wrong);
           });
  }
  template <class Enqueue>
  void verify_rows(const std::string& name, const Shape& shape, const Enqueue& enqueue) {
    verify(name, (long long)shape.row_bytes * shape.rows, shape.target_pitch * shape.rows, enqueue,
           [&](const unsigned char* source, const unsigned char* target, Word* wrong) {
             count_wrong_rows<<<multiprocessors() * 8, threads, 0, stream_>>>(source, target, shape, wrong);
           });
  }

 private:
  static constexpr Word now_seed = 20261126;
  int rounds_;
  std::size_t bytes_ = 0, at_ = 0;
  unsigned char* source_ = nullptr;
  unsigned char* target_ = nullptr;
  cudaStream_t stream_ = nullptr;
  CardArray<Word> wrong_;
};

std::string size_text(std::size_t bytes) {
  if (bytes >= std::size_t(1) << 30) return std::to_string(bytes >> 30) + " GiB";
  if (bytes >= std::size_t(1) << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= std::size_t(1) << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

std::string share(const Samples& samples, double of_rate) {
  char text[96];
  std::snprintf(text, sizeof text, "%.3f of the card's own copy; ", samples.median() / of_rate);
  return text;
}

/// Returns the rate that all others are compared with.
double own_copy(Bench& bench) {
  double best = 0;
  for (std::size_t span = std::size_t(1) << 20; span <= bench.bytes(); span *= 4) {
    const int repeats = int(std::max<std::size_t>(1, (std::size_t(64) << 20) / span));
    const Samples samples = bench.rate(
        span, 2.0 * double(span),
        [&](const unsigned char* source, unsigned char* target) {
          TRANSHIP_CUDA(cudaMemcpyAsync(target, source, span, cudaMemcpyDeviceToDevice, bench.stream()));
        },
        repeats);
    figure("cudaMemcpyAsync on the card, " + size_text(span) + " (read + written)", samples, "GB/s",
           repeats > 1 ? std::to_string(repeats) + " copies in a row, addresses rotate" : "");
    if (span >= std::size_t(64) << 20) best = std::max(best, samples.median());
  }
  if (best == 0) best = 1;
  for (const std::size_t span : {std::size_t(1) << 20, std::size_t(4) << 20, std::size_t(16) << 20})
    figure("cudaMemcpyAsync on the card, " + size_text(span) + " resident in the L2 (read + written)",
           bench.resident_rate(
               2.0 * double(span),
               [&](const unsigned char* source, unsigned char* target) {
                 TRANSHIP_CUDA(cudaMemcpyAsync(target, source, span, cudaMemcpyDeviceToDevice, bench.stream()));
               },
               20),
           "GB/s");
  return best;
}

/// `blocks` of 0 means a block for each tile.
template <class V, int depth, Hint hint = Hint::none>
void own_kernel(Bench& bench, std::size_t span, int blocks_a_multiprocessor, double best) {
  const std::size_t count = span / sizeof(V), tile = std::size_t(threads) * depth;
  const unsigned blocks = blocks_a_multiprocessor == 0 ? unsigned((count + tile - 1) / tile)
                                                       : unsigned(blocks_a_multiprocessor * multiprocessors());
  const auto enqueue = [&](const unsigned char* source, unsigned char* target) {
    copy<V, depth, hint><<<blocks, threads, 0, bench.stream()>>>(reinterpret_cast<const V*>(source),
                                                                 reinterpret_cast<V*>(target), count);
  };
  const std::string name =
      "copy kernel, " + size_text(span) + ", " + std::to_string(sizeof(V)) + "-byte elements, " +
      std::to_string(depth) + " in flight a lane, " +
      (blocks_a_multiprocessor == 0 ? std::string("a block a tile")
                                    : std::to_string(blocks_a_multiprocessor) + " blocks of 256 a multiprocessor") +
      (hint == Hint::streaming ? ", no_allocate loads and streaming stores" : "");
  int resident = 0;
  TRANSHIP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, copy<V, depth, hint>, threads, 0));
  if (blocks_a_multiprocessor != 0) resident = std::min(resident, blocks_a_multiprocessor);
  const Samples samples = bench.rate(span, 2.0 * double(span), enqueue);
  figure(name, samples, "GB/s",
         share(samples, best) + std::to_string(resident * threads * depth * int(sizeof(V)) / 1024) +
             " KiB in flight a multiprocessor");
  bench.verify_words("right: " + name, span, enqueue);
}

template <int depth>
void in_flight(Bench& bench, std::size_t span, double best) {
  for (const int blocks : {1, 2, 4, 8}) own_kernel<uint4, depth>(bench, span, blocks, best);
}

void kernels(Bench& bench, double best) {
  const std::size_t span = std::min(std::size_t(256) << 20, bench.bytes() / 4);
  in_flight<1>(bench, span, best);
  in_flight<2>(bench, span, best);
  in_flight<4>(bench, span, best);
  in_flight<8>(bench, span, best);
  own_kernel<uint4, 4, Hint::streaming>(bench, span, 4, best);
  own_kernel<uint4, 4, Hint::streaming>(bench, span, 8, best);
  own_kernel<uint4, 1>(bench, span, 0, best);
  own_kernel<uint4, 4>(bench, span, 0, best);
  for (std::size_t other = std::size_t(1) << 20; other <= bench.bytes(); other *= 4)
    if (other != span) own_kernel<uint4, 4>(bench, other, 8, best);
  own_kernel<unsigned char, 4>(bench, span, 8, best);
  own_kernel<unsigned char, 8>(bench, span, 8, best);
  own_kernel<unsigned short, 4>(bench, span, 8, best);
  own_kernel<unsigned, 4>(bench, span, 8, best);
  own_kernel<uint2, 4>(bench, span, 8, best);
}

template <int depth>
void alone(Bench& bench, std::size_t bytes, int repeats) {
  for (const int lanes : {128, 256, 512, 1024}) {
    const auto enqueue = [&](const unsigned char* source, unsigned char* target) {
      copy<uint4, depth><<<1, lanes, 0, bench.stream()>>>(reinterpret_cast<const uint4*>(source),
                                                          reinterpret_cast<uint4*>(target), bytes / 16);
    };
    const std::string name = "1 MiB put by one block of " + std::to_string(lanes) + ", " + std::to_string(depth) +
                             " vectors in flight a lane";
    figure(name, bench.rate(bytes, double(bytes), enqueue, repeats), "GB/s", "payload, launch included");
    figure(name + ", in the L2", bench.resident_rate(double(bytes), enqueue, repeats), "GB/s",
           "payload, launch included");
  }
}

/// Returns GB/s of bytes read plus bytes written.
Samples bulk_rate(Bench& bench, const Bulk& bulk, unsigned blocks, CardArray<Word>& gave_up, const std::string& name,
                  int repeats = 1) {
  const Shape& shape = bulk.shape;
  const auto enqueue = [&](const unsigned char* source, unsigned char* target) {
    copy_bulk<<<blocks, 32, bulk.stages * bulk.chunk_bytes, bench.stream()>>>(source, target, bulk, gave_up.data());
    TRANSHIP_CUDA(cudaGetLastError());
  };
  const std::size_t span = shape.source_pitch * shape.rows;
  const Samples samples = bench.rate(span, 2.0 * shape.row_bytes * double(shape.rows), enqueue, repeats);
  bench.verify_rows("right: " + name, shape, enqueue);
  return samples;
}

void bulk_copies(Bench& bench, double best) {
  if (!is_hopper_or_later()) return answer("bulk copies", "no", "needs compute capability 9.0");
  const int room_bytes = std::min(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin), 128 << 10);
  TRANSHIP_CUDA(cudaFuncSetAttribute(copy_bulk, cudaFuncAttributeMaxDynamicSharedMemorySize, room_bytes));
  CardArray<Word> gave_up(1);
  gave_up.fill(0);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  struct Setting {
    unsigned chunk_bytes, stages, blocks;
  };
  const Setting settings[] = {{2048, 4, 8}, {2048, 8, 8},  {4096, 4, 8},  {8192, 2, 8},
                              {8192, 4, 6}, {16384, 2, 6}, {16384, 4, 3}, {32768, 3, 2}};
  const std::size_t span = std::min(std::size_t(256) << 20, bench.bytes() / 4);
  for (const unsigned row_bytes : {2048u, 8192u, 65536u}) {
    const Shape shape{row_bytes + 256, row_bytes, row_bytes, unsigned(span / (row_bytes + 256))};
    const std::string rows = "rows of " + size_text(row_bytes) + " at a pitch of 256 B more";
    const auto ordinary = [&](const unsigned char* source, unsigned char* target) {
      copy_rows<uint4><<<multiprocessors() * 8, threads, 0, bench.stream()>>>(source, target, shape);
    };
    const Samples plain = bench.rate(span, 2.0 * row_bytes * double(shape.rows), ordinary);
    figure("ordinary loads, " + rows, plain, "GB/s", share(plain, best) + "4 vectors in flight, 8 blocks of 256");
    bench.verify_rows("right: ordinary loads, " + rows, shape, ordinary);
    for (const Setting& setting : settings) {
      if (setting.chunk_bytes > row_bytes || int(setting.stages * setting.chunk_bytes) > room_bytes) continue;
      const Bulk bulk{shape, setting.chunk_bytes, setting.stages};
      const std::string name = "bulk copies, " + rows + ", " + std::to_string(setting.stages) + " stages of " +
                               size_text(setting.chunk_bytes) + ", " + std::to_string(setting.blocks) +
                               " blocks a multiprocessor";
      const Samples samples = bulk_rate(bench, bulk, setting.blocks * unsigned(multiprocessors()), gave_up, name);
      figure(name, samples, "GB/s", share(samples, best));
    }
  }
  for (const auto& [chunk_bytes, stages] : {std::pair{4096u, 4u}, {16384u, 4u}, {16384u, 8u}}) {
    if (int(stages * chunk_bytes) > room_bytes) continue;
    const Bulk bulk{{1u << 20, 1u << 20, 1u << 20, 1}, chunk_bytes, stages};
    const std::string name =
        "1 MiB put by bulk copies of one lane, " + std::to_string(stages) + " stages of " + size_text(chunk_bytes);
    figure(name, bulk_rate(bench, bulk, 1, gave_up, name, 8).mapped([](double rate) { return rate / 2; }), "GB/s",
           "payload, launch included");
  }
  const Word given_up = gave_up.read()[0];
  if (given_up != 0) fault("bulk copies: " + std::to_string(given_up) + " blocks waited a second in vain");
}

template <class V>
void transposes(Bench& bench, double best) {
  const std::size_t span = std::min(std::size_t(1) << 30, bench.bytes() / 2);
  unsigned rows = 32, columns = 32;
  while (std::size_t(rows) * columns * sizeof(V) < span) (rows < columns ? rows : columns) *= 2;
  if (std::size_t(rows) * columns * sizeof(V) > span) (rows > columns ? rows : columns) /= 2;
  const std::size_t used = std::size_t(rows) * columns * sizeof(V);
  const dim3 grid(columns / 32, rows / 32);
  const auto enqueue = [&](const unsigned char* source, unsigned char* target) {
    transpose<V><<<grid, dim3(32, 8), 0, bench.stream()>>>(reinterpret_cast<const V*>(source),
                                                           reinterpret_cast<V*>(target), rows, columns);
  };
  const Samples samples = bench.rate(used, 2.0 * double(used), enqueue);
  const std::string name = "transpose of " + std::to_string(rows) + " x " + std::to_string(columns) + " elements of " +
                           std::to_string(sizeof(V)) + " bytes through 32x33 tiles";
  figure(name, samples, "GB/s", share(samples, best));
  bench.verify("right: " + name, (long long)(used / 4), used, enqueue,
               [&](const unsigned char* source, const unsigned char* target, Word* wrong) {
                 count_wrong_transposed<V><<<multiprocessors() * 8, threads, 0, bench.stream()>>>(
                     reinterpret_cast<const V*>(source), reinterpret_cast<const V*>(target), rows, columns, wrong);
               });
}

/// Counts the 32-byte sectors that rows touch at a pitch.
Word sectors(const Shape& shape, std::size_t pitch) {
  Word count = 0, next_free = 0;
  for (Word row = 0; row < shape.rows; ++row) {
    const Word first = std::max<Word>(row * pitch / 32, next_free), last = (row * pitch + shape.row_bytes - 1) / 32;
    if (last + 1 > first) count += last + 1 - first;
    next_free = std::max(next_free, last + 1);
  }
  return count;
}

template <class V>
void short_rows(Bench& bench, double best, unsigned row_bytes, unsigned source_pitch, unsigned target_pitch) {
  const std::size_t span = std::min(std::size_t(512) << 20, bench.bytes() / 2);
  const Shape shape{source_pitch, target_pitch, row_bytes, unsigned(span / std::max(source_pitch, target_pitch))};
  const auto enqueue = [&](const unsigned char* source, unsigned char* target) {
    copy_rows<V><<<multiprocessors() * 8, threads, 0, bench.stream()>>>(source, target, shape);
  };
  const double sector_bytes = 32.0 * double(sectors(shape, source_pitch) + sectors(shape, target_pitch));
  const Samples samples = bench.rate(span, sector_bytes, enqueue);
  const std::string name = "rows of " + std::to_string(row_bytes) + " bytes, pitch " + std::to_string(source_pitch) +
                           " to " + std::to_string(target_pitch) + ", by " + std::to_string(sizeof(V)) +
                           "-byte vectors (sectors read + written)";
  char payload[96];
  std::snprintf(payload, sizeof payload, "payload read + written is %.3f of the sectors",
                2.0 * row_bytes * double(shape.rows) / sector_bytes);
  figure(name, samples, "GB/s", share(samples, best) + payload);
  bench.verify_rows("right: " + name, shape, enqueue);
}

void run(const Options& options) {
  multiprocessors();  // reports it when there is no card
  Bench bench(options);
  const double best = own_copy(bench);
  kernels(bench, best);
  const int repeats = options.quick() ? 1 : 8;
  alone<1>(bench, 1 << 20, repeats);
  alone<4>(bench, 1 << 20, repeats);
  alone<8>(bench, 1 << 20, repeats);
  transposes<unsigned>(bench, best);
  transposes<uint2>(bench, best);
  transposes<uint4>(bench, best);
  short_rows<uint2>(bench, best, 24, 80, 24);
  short_rows<uint2>(bench, best, 24, 24, 80);
  short_rows<uint2>(bench, best, 8, 64, 8);
  short_rows<uint2>(bench, best, 8, 640, 8);
  short_rows<uint4>(bench, best, 32, 128, 32);
  short_rows<uint4>(bench, best, 64, 256, 64);
  short_rows<uint4>(bench, best, 256, 512, 256);
  short_rows<uint4>(bench, best, 256, 256, 1536);
  short_rows<uint4>(bench, best, 1024, 1280, 1024);
  bulk_copies(bench, best);
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
