// Measures what it costs a block to go through a list of steps of 64 bytes: it reads a step, branches on its kind, does
// next to nothing, and goes on. The list lies in shared memory, in global memory, in constant memory or among the
// kernel's arguments. The lanes' results are compared with those of the CPU.
#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

struct alignas(64) Step {
  unsigned kind, count;
  unsigned a, b;
  Word source, target;
  Word offset, bytes;
  Word wanted, spare;
};
static_assert(sizeof(Step) == 64);

constexpr unsigned kinds = 10, steps = 48;

struct List {
  Step step[steps];
};

/// The ten kinds share nothing, so that the compiler branches and does not select.
__host__ __device__ inline unsigned done(const Step& step, unsigned lane, unsigned x) {
  switch (step.kind) {
    case 0:
      x += step.a ^ lane;
      break;
    case 1:
      x ^= step.b + lane;
      break;
    case 2:
      x = x * step.a + step.b;
      break;
    case 3:
      x += unsigned(step.source >> 7) - unsigned(step.target);
      break;
    case 4:
      x = (x << 5 | x >> 27) + unsigned(step.source);
      break;
    case 5:
      x ^= unsigned(step.offset + step.bytes * lane);
      break;
    case 6:
      x = x > step.a ? x - step.a : x + step.b;
      break;
    case 7:
      x = (x ^ x >> 11) * unsigned(step.wanted | 1);
      break;
    case 8:
      x -= unsigned(step.spare >> (lane & 31));
      break;
    default:
      x = ~x + unsigned(step.bytes >> 32);
  }
  return x;
}

enum class Place { shared, global_level1, global_level2, global_level2_ahead, constant, arguments };
enum class Between { nothing, barrier };

const char* words_of(Place place) {
  switch (place) {
    case Place::shared:
      return "shared memory";
    case Place::global_level1:
      return "global memory, by plain loads (L1)";
    case Place::global_level2:
      return "global memory, by ld.cg (L2)";
    case Place::global_level2_ahead:
      return "global memory, by ld.cg (L2), the next step loaded ahead";
    case Place::constant:
      return "constant memory";
    case Place::arguments:
      return "the kernel's arguments";
  }
  return "";
}

__constant__ List constant_list;

__device__ inline Vector load_level2_vector(const void* from) {
  Vector v;
  asm volatile("ld.global.cg.v2.u64 {%0, %1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(from) : "memory");
  return v;
}
/// Loads all 64 bytes into registers.
__device__ inline Step load_step_level2(const Step* from) {
  const char* const at = reinterpret_cast<const char*>(from);
  const Vector a = load_level2_vector(at), b = load_level2_vector(at + 16), c = load_level2_vector(at + 32),
               d = load_level2_vector(at + 48);
  return {unsigned(a.x), unsigned(a.x >> 32), unsigned(a.y), unsigned(a.y >> 32), b.x, b.y, c.x, c.y, d.x, d.y};
}

/// A lap goes through the list once. The compiler may not keep across laps what it has read.
template <Place place, Between between>
__global__ void __launch_bounds__(1024)
    go_through(const List* list, const __grid_constant__ List arguments, int laps, unsigned* out, Word* ns) {
  __shared__ List shared_list;
  if constexpr (place == Place::shared) {
    const uint4* const from = reinterpret_cast<const uint4*>(list);
    for (unsigned i = threadIdx.x; i < sizeof(List) / 16; i += blockDim.x)
      reinterpret_cast<uint4*>(&shared_list)[i] = from[i];
  }
  __syncthreads();
  unsigned x = threadIdx.x;
  const Word begin = global_ns();
  for (int lap = 0; lap < laps; ++lap) {
    Step next;
    if constexpr (place == Place::global_level2_ahead) next = load_step_level2(&list->step[0]);
#pragma unroll 1
    for (unsigned i = 0; i < steps; ++i) {
      if constexpr (place == Place::shared) x = done(shared_list.step[i], threadIdx.x, x);
      if constexpr (place == Place::global_level1) x = done(list->step[i], threadIdx.x, x);
      if constexpr (place == Place::global_level2) x = done(load_step_level2(&list->step[i]), threadIdx.x, x);
      if constexpr (place == Place::global_level2_ahead) {
        const Step step = next;
        next = load_step_level2(&list->step[i + 1 < steps ? i + 1 : 0]);
        x = done(step, threadIdx.x, x);
      }
      if constexpr (place == Place::constant) x = done(constant_list.step[i], threadIdx.x, x);
      if constexpr (place == Place::arguments) x = done(arguments.step[i], threadIdx.x, x);
      if constexpr (between == Between::barrier) __syncthreads();
    }
    asm volatile("" ::: "memory");
  }
  __syncthreads();
  if (threadIdx.x == 0) *ns = global_ns() - begin;
  out[threadIdx.x] = x;
}

__global__ void __launch_bounds__(256) copy_list(const uint4* list, unsigned vectors, uint4* out, Word* ns) {
  extern __shared__ uint4 room[];
  const Word begin = global_ns();
  for (unsigned i = threadIdx.x; i < vectors; i += blockDim.x) room[i] = list[i];
  __syncthreads();
  if (threadIdx.x == 0) *ns = global_ns() - begin;
  out[threadIdx.x] = room[(threadIdx.x * 7u) % vectors];
}

class Lists {
 public:
  explicit Lists(const Options& options) : samples_(options.quick() ? 1 : 9), laps_(options.quick() ? 2 : 50) {
    for (unsigned i = 0; i < steps; ++i) {
      const auto some = [&](unsigned k) { return scrambled(31337 + i * 16 + k); };
      list_.step[i] = {unsigned(some(0) % kinds),
                       1,
                       unsigned(some(1)),
                       unsigned(some(2)),
                       some(3),
                       some(4),
                       some(5),
                       some(6),
                       some(7),
                       some(8)};
    }
    card_list_.write({list_});
    TRANSHIP_CUDA(cudaMemcpyToSymbol(constant_list, &list_, sizeof list_));
    expected_.resize(1024);
    for (unsigned lane = 0; lane < 1024; ++lane) {
      unsigned x = lane;
      for (int lap = 0; lap < laps_; ++lap)
        for (const Step& step : list_.step) x = done(step, lane, x);
      expected_[lane] = x;
    }
  }

  template <Place place>
  void costs() {
    for (const unsigned lanes : {32u, 256u, 1024u}) cost<place, Between::barrier>(lanes);
    cost<place, Between::nothing>(256);
    check(std::string("steps are done as on the CPU, from ") + words_of(place), cases_, wrong_);
    cases_ = wrong_ = 0;
  }
  void copies() {
    for (const unsigned bytes : {3072u, 12288u, 32768u}) {
      CardArray<uint4> list(bytes / 16), out(256);
      Samples ns;
      for (int sample = -1; sample < samples_; ++sample) {
        list.fill(0x5a);
        copy_list<<<1, 256, bytes>>>(list.data(), bytes / 16, out.data(), ns_.data());
        TRANSHIP_CUDA(cudaGetLastError());
        TRANSHIP_CUDA(cudaDeviceSynchronize());
        if (sample >= 0) ns.values.push_back(double(ns_.read()[0]));
      }
      figure("a list of " + bytes_text(bytes) + " is copied to shared memory by 256 lanes", ns, "ns",
             "the clock has steps of 32 ns");
    }
  }

 private:
  template <Place place, Between between>
  void cost(unsigned lanes) {
    Samples ns;
    for (int sample = -1; sample < samples_; ++sample) {
      out_.fill(0xa5);
      go_through<place, between><<<1, lanes>>>(card_list_.data(), list_, laps_, out_.data(), ns_.data());
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      if (sample >= 0) ns.values.push_back(double(ns_.read()[0]) / (double(steps) * laps_));
    }
    const std::vector<unsigned> out = out_.read();
    for (unsigned lane = 0; lane < lanes; ++lane) wrong_ += out[lane] != expected_[lane];
    cases_ += lanes;
    figure(std::string("a step in ") + words_of(place) + ", block of " + std::to_string(lanes) + " lanes" +
               (between == Between::barrier ? ", __syncthreads after each" : ""),
           ns, "ns");
  }

  int samples_, laps_;
  List list_;
  std::vector<unsigned> expected_;
  CardArray<List> card_list_{1};
  CardArray<unsigned> out_{1024};
  CardArray<Word> ns_{1};
  long long cases_ = 0, wrong_ = 0;
};

}  // namespace

void step_lists(const Options& options) {
  Lists lists(options);
  lists.costs<Place::shared>();
  lists.costs<Place::global_level1>();
  lists.costs<Place::global_level2>();
  lists.costs<Place::global_level2_ahead>();
  lists.costs<Place::constant>();
  lists.costs<Place::arguments>();
  lists.copies();
}

}  // namespace tranship::device
