// Measures the cost of a signal between two blocks for each way to order it, the cost of a fence, and a signal to the
// host and back. Also shows what the weak memory model does to code that leaves a fence out. Two blocks play ping-pong
// over two words in lines of their own; every wait gives up after some two seconds (looks_max).
#include <atomic>

#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

enum class Way {
  tree,
  fences_gpu,
  fences_sys,
  pairs_gpu,
  pairs_sys,
  design_gpu,
  design_sys,
  add_gpu,
  add_sys,
  atomics
};

const char* words_of(Way way) {
  switch (way) {
    case Way::tree:
      return "__threadfence_system and volatile on both sides";
    case Way::fences_gpu:
      return "fence.acq_rel.gpu and relaxed.gpu on both sides";
    case Way::fences_sys:
      return "fence.acq_rel.sys and relaxed.sys on both sides";
    case Way::pairs_gpu:
      return "st.release.gpu, spinning on ld.acquire.gpu";
    case Way::pairs_sys:
      return "st.release.sys, spinning on ld.acquire.sys";
    case Way::design_gpu:
      return "fence.acq_rel.gpu and st.relaxed, spinning on ld.relaxed, one ld.acquire.gpu";
    case Way::design_sys:
      return "fence.acq_rel.sys and st.relaxed, spinning on ld.relaxed, one ld.acquire.sys";
    case Way::add_gpu:
      return "fence.acq_rel.gpu and red.add, spinning on ld.relaxed, one ld.acquire.gpu";
    case Way::add_sys:
      return "red.release.sys.add, spinning on ld.relaxed, one ld.acquire.sys";
    case Way::atomics:
      return "__threadfence_system and atomicAdd_system, spinning on volatile, __threadfence_system";
  }
  return "";
}

/// Raises `at` to `value`, which is one more than it was.
template <Way way>
__device__ void raise(Word* at, Word value) {
  if constexpr (way == Way::tree) {
    __threadfence_system();
    store_volatile(at, value);
  } else if constexpr (way == Way::fences_gpu || way == Way::design_gpu) {
    fence_gpu();
    store_relaxed_gpu(at, value);
  } else if constexpr (way == Way::fences_sys || way == Way::design_sys) {
    fence_sys();
    store_relaxed_sys(at, value);
  } else if constexpr (way == Way::pairs_gpu) {
    store_release_gpu(at, value);
  } else if constexpr (way == Way::pairs_sys) {
    store_release_sys(at, value);
  } else if constexpr (way == Way::add_gpu) {
    fence_gpu();
    add_relaxed_gpu(at, 1);
  } else if constexpr (way == Way::add_sys) {
    add_release_sys(at, 1);
  } else {
    __threadfence_system();
    atomicAdd_system(at, 1ull);
  }
}

template <Way way>
__device__ Word look(const Word* at) {
  if constexpr (way == Way::tree || way == Way::atomics) return load_volatile(at);
  if constexpr (way == Way::pairs_gpu) return load_acquire_gpu(at);
  if constexpr (way == Way::pairs_sys) return load_acquire_sys(at);
  if constexpr (way == Way::fences_gpu || way == Way::design_gpu || way == Way::add_gpu) return load_relaxed_gpu(at);
  return load_relaxed_sys(at);
}

/// Returns false when it has given up.
template <Way way>
__device__ bool await(const Word* at, Word value) {
  for (int looks = 0; look<way>(at) < value; ++looks)
    if (looks == looks_max) return false;
  if constexpr (way == Way::tree || way == Way::atomics) __threadfence_system();
  if constexpr (way == Way::fences_gpu) fence_gpu();
  if constexpr (way == Way::fences_sys) fence_sys();
  if constexpr (way == Way::design_gpu || way == Way::add_gpu) load_acquire_gpu(at);
  if constexpr (way == Way::design_sys || way == Way::add_sys) load_acquire_sys(at);
  return true;
}

constexpr int data_threads = 256;  // 16 bytes each: 4 KiB

struct Game {
  Word words[2][16];  ///< a line each
  uint4 data[2][data_threads];
  Word elapsed_ns;
  Word stale;
  Word gave_up;
  unsigned multiprocessors[2];
};

__device__ uint4 payload(int round, int player) {
  const Word bits = scrambled(Word(round) << 32 | Word(player) << 16 | threadIdx.x);
  return {unsigned(bits), unsigned(bits >> 32), unsigned(round), threadIdx.x};
}
__device__ bool same(const uint4& a, const uint4& b) {
  return ((a.x ^ b.x) | (a.y ^ b.y) | (a.z ^ b.z) | (a.w ^ b.w)) == 0;
}

/// Block 0 plays with block `partner`; the other blocks only fill the places between.
template <Way way, bool with_data>
__global__ void ping_pong(Game* game, int partner, int warm_rounds, int rounds) {
  const int me = blockIdx.x == 0 ? 0 : 1;
  if (me == 1 && int(blockIdx.x) != partner) return;
  __shared__ bool going_on;
  Word begin = 0;
  unsigned stale = 0;
  Word* const mine = game->words[me];
  Word* const theirs = game->words[1 - me];
  for (int round = 1; round <= warm_rounds + rounds; ++round) {
    for (int half = 0; half < 2; ++half) {
      if (half == me) {
        if constexpr (with_data) game->data[1 - me][threadIdx.x] = payload(round, me);
        __syncthreads();
        if (threadIdx.x == 0) raise<way>(theirs, Word(round));
      } else {
        if (threadIdx.x == 0) going_on = await<way>(mine, Word(round));
        __syncthreads();
        if (!going_on) {
          if (threadIdx.x == 0) atomicAdd(&game->gave_up, 1ull);
          return;
        }
        if constexpr (with_data) {
          const uint4 seen = game->data[me][threadIdx.x];
          if (!same(seen, payload(round, 1 - me))) ++stale;
        }
      }
    }
    if (round == warm_rounds) begin = global_ns();
  }
  if (stale != 0) atomicAdd(&game->stale, Word(stale));
  if (threadIdx.x != 0) return;
  game->multiprocessors[me] = multiprocessor();
  if (me == 0) game->elapsed_ns = global_ns() - begin;
}

struct Played {
  double hop_ns = 0;
  Word stale = 0;
  bool gave_up = false;
  unsigned multiprocessors[2] = {};
};

template <Way way, bool with_data>
Played play(CardArray<Game>& games, int partner, int rounds) {
  games.fill(0);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  ping_pong<way, with_data>
      <<<partner + 1, with_data ? data_threads : 1>>>(games.data(), partner, rounds / 10 + 1, rounds);
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Game game = games.read()[0];
  return {double(game.elapsed_ns) / (2.0 * rounds),
          game.stale,
          game.gave_up != 0,
          {game.multiprocessors[0], game.multiprocessors[1]}};
}

template <Way way, bool with_data>
void hops(CardArray<Game>& games, const Options& options) {
  const std::string name =
      std::string("hop of a signal ") + (with_data ? "after 4 KiB of data" : "alone") + ": " + words_of(way);
  const int rounds = options.quick() ? 50 : 1000;
  Samples samples;
  Word stale = 0;
  Played played;
  for (int round = -1; round < (options.quick() ? 1 : 9); ++round) {
    played = play<way, with_data>(games, 1, rounds);
    if (played.gave_up) return fault(name + ": the signal did not come within two seconds");
    if (round >= 0) samples.values.push_back(played.hop_ns);
    stale += played.stale;
  }
  figure(name, samples, "ns",
         "multiprocessors " + std::to_string(played.multiprocessors[0]) + " and " +
             std::to_string(played.multiprocessors[1]));
  if (with_data)
    check("no stale data behind the signal: " + std::string(words_of(way)),
          (long long)(samples.values.size() + 1) * rounds * 2 * data_threads, (long long)stale);
}

template <bool with_data>
void all_hops(CardArray<Game>& games, const Options& options) {
  hops<Way::tree, with_data>(games, options);
  hops<Way::fences_gpu, with_data>(games, options);
  hops<Way::fences_sys, with_data>(games, options);
  hops<Way::pairs_gpu, with_data>(games, options);
  hops<Way::pairs_sys, with_data>(games, options);
  hops<Way::design_gpu, with_data>(games, options);
  hops<Way::design_sys, with_data>(games, options);
  hops<Way::add_gpu, with_data>(games, options);
  hops<Way::add_sys, with_data>(games, options);
  hops<Way::atomics, with_data>(games, options);
}

void partners(CardArray<Game>& games, const Options& options) {
  Samples samples;
  for (int partner = 1; partner < multiprocessors(); partner += options.quick() ? 50 : 1) {
    const Played played = play<Way::design_gpu, false>(games, partner, options.quick() ? 20 : 300);
    if (played.gave_up) return fault("hop to block " + std::to_string(partner) + ": no signal within two seconds");
    samples.values.push_back(played.hop_ns);
  }
  figure("hop of a signal alone from block 0 to each block of a full wave", samples, "ns",
         "low and high are the nearest and the farthest multiprocessor");
}

// ---- fences ----

enum class Fence { sc_sys, acq_rel_sys, sc_gpu, acq_rel_gpu };
enum class Before { nothing, one_store, block_of_stores, host_store };

template <Fence fence>
__device__ void run_fence() {
  if constexpr (fence == Fence::sc_sys) __threadfence_system();
  if constexpr (fence == Fence::acq_rel_sys) fence_sys();
  if constexpr (fence == Fence::sc_gpu) __threadfence();
  if constexpr (fence == Fence::acq_rel_gpu) fence_gpu();
}

struct FenceTimes {
  long long fence_cycles;
  long long cycles;
  Word ns;
};

/// The stores go to lines that change from time to time, so that each store is on its way when the fence comes.
template <Fence fence, Before before>
__global__ void fences(uint4* sink, Word* host_sink, int times, FenceTimes* out) {
  long long fence_cycles = 0;
  const Word begin_ns = global_ns();
  const long long begin = clock64();
  for (int i = 0; i < times; ++i) {
    const unsigned line = unsigned(i) % 64;
    if constexpr (before == Before::one_store) store_weak(reinterpret_cast<Word*>(sink + line * 256), Word(i));
    if constexpr (before == Before::block_of_stores) {
      sink[line * 256 + threadIdx.x] = payload(i, 0);
      __syncthreads();
    }
    if constexpr (before == Before::host_store) store_weak(host_sink + line * 16, Word(i));
    if (threadIdx.x == 0) {
      const long long from = clock64();
      run_fence<fence>();
      fence_cycles += clock64() - from;
    }
    if constexpr (before == Before::block_of_stores) __syncthreads();
  }
  if (threadIdx.x == 0) *out = {fence_cycles, clock64() - begin, global_ns() - begin_ns};
}

template <Fence fence, Before before>
void fence_cost(const char* name, const char* after, CardArray<uint4>& sink, PinnedArray<Word>& host_sink,
                const Options& options) {
  CardArray<FenceTimes> out(1);
  const int times = options.quick() ? 64 : 1024;
  Samples samples;
  for (int round = -1; round < (options.quick() ? 1 : 9); ++round) {
    fences<fence, before>
        <<<1, before == Before::block_of_stores ? 256 : 1>>>(sink.data(), host_sink.data(), times, out.data());
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const FenceTimes read = out.read()[0];
    if (round >= 0) samples.values.push_back(double(read.fence_cycles) / times * double(read.ns) / double(read.cycles));
  }
  figure(std::string(name) + " by one lane " + after, samples, "ns");
}

template <Fence fence>
void fence_costs(const char* name, CardArray<uint4>& sink, PinnedArray<Word>& host_sink, const Options& options) {
  fence_cost<fence, Before::nothing>(name, "with nothing outstanding", sink, host_sink, options);
  fence_cost<fence, Before::one_store>(name, "after one store", sink, host_sink, options);
  fence_cost<fence, Before::block_of_stores>(name, "after 4 KiB of stores by its block", sink, host_sink, options);
  fence_cost<fence, Before::host_store>(name, "after one store to pinned host memory", sink, host_sink, options);
}

// ---- the weak memory model ----

enum class Order { none, gpu, sys, tree };
enum class Reading { weak, strong };

template <Order order>
__device__ void order_now() {
  if constexpr (order == Order::gpu) fence_gpu();
  if constexpr (order == Order::sys) fence_sys();
  if constexpr (order == Order::tree) __threadfence_system();
}

constexpr int litmus_looks_max = looks_max / 4;  // the noise makes a look cost more
constexpr int litmus_lines = 256;                // lines of payload, for each pair of blocks
constexpr int litmus_noise = 1 << 16;            // words for each block, which its other warps write meanwhile

struct LitmusPair {
  Word flag[16];
  Word turn[16];
  Word payload[litmus_lines][16];
  Word stale;
  Word gave_up;
};

/// Blocks 2p and 2p + 1 are the writer and the reader of pair p. In each round the reader first reads the payload,
/// which leaves it in its L1, and lets the writer go on without a fence, which would empty the L1.
template <Order writer_order, Order reader_order, Reading reading>
__global__ void message_passing(LitmusPair* pairs, Word* noise, int rounds) {
  LitmusPair& pair = pairs[blockIdx.x / 2];
  const bool writes = blockIdx.x % 2 == 0;
  __shared__ volatile int over;
  if (threadIdx.x == 0) over = 0;
  __syncthreads();
  if (threadIdx.x >= 32) {
    Word* const mine = noise + size_t(blockIdx.x) * litmus_noise;
    for (unsigned i = threadIdx.x; !over; i += blockDim.x) store_weak(mine + (i * 17u) % litmus_noise, i);
    return;
  }
  if (threadIdx.x != 0) return;
  Word stale = 0;
  bool gave_up = false;
  for (int round = 1; round <= rounds && !gave_up; ++round) {
    Word* const payload = pair.payload[unsigned(round) * 37u % litmus_lines];
    int looks = 0;
    if (writes) {
      while (load_relaxed_gpu(pair.turn) < Word(round) && ++looks < litmus_looks_max) {
      }
      store_weak(payload, Word(round));
      order_now<writer_order>();
      store_relaxed_gpu(pair.flag, Word(round));
    } else {
      const Word old = load_weak(payload);
      // The condition never holds: it makes the store wait for the load.
      store_relaxed_gpu(pair.turn, Word(round) + (old == ~0ull ? 1 : 0));
      while (load_relaxed_gpu(pair.flag) < Word(round) && ++looks < litmus_looks_max) {
      }
      order_now<reader_order>();
      const Word seen = reading == Reading::weak ? load_weak(payload) : load_relaxed_gpu(payload);
      if (seen != Word(round)) ++stale;
    }
    gave_up = looks == litmus_looks_max;
  }
  over = 1;
  if (!writes) pair.stale = stale;
  if (gave_up) atomicAdd(&pair.gave_up, 1ull);
}

template <Order writer_order, Order reader_order, Reading reading>
void litmus(const std::string& name, const std::string& expectation, const Options& options) {
  const int pairs = std::min(multiprocessors() / 2, options.quick() ? 4 : 60), rounds = options.quick() ? 300 : 4000;
  CardArray<LitmusPair> state{std::size_t(pairs)};
  CardArray<Word> noise(std::size_t(pairs) * 2 * litmus_noise);
  state.fill(0);
  noise.fill(0xa5);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  message_passing<writer_order, reader_order, reading><<<pairs * 2, 128>>>(state.data(), noise.data(), rounds);
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  long long stale = 0, gave_up = 0;
  for (const LitmusPair& pair : state.read()) {
    stale += (long long)pair.stale;
    gave_up += (long long)pair.gave_up;
  }
  if (gave_up != 0) return fault(name + ": the flag did not come within two seconds");
  answer("stale payloads seen, " + name, std::to_string(stale),
         "of " + std::to_string((long long)pairs * rounds) + " messages; expected: " + expectation);
}

void weak_memory(const Options& options) {
  litmus<Order::none, Order::none, Reading::weak>("no fence, plain load of a payload read before",
                                                  "nearly all, from the reader's L1", options);
  litmus<Order::gpu, Order::none, Reading::weak>("only the writer has fence.acq_rel.gpu, plain load",
                                                 "nearly all, from the reader's L1", options);
  litmus<Order::none, Order::gpu, Reading::weak>("only the reader has fence.acq_rel.gpu, plain load",
                                                 "some, the writer's stores change places", options);
  litmus<Order::none, Order::none, Reading::strong>("no fence, ld.relaxed.gpu of the payload",
                                                    "some, stores or loads change places", options);
  litmus<Order::gpu, Order::none, Reading::strong>(
      "only the writer has fence.acq_rel.gpu, ld.relaxed.gpu of the payload",
      "none or few: loads of one lane change places", options);
  litmus<Order::gpu, Order::gpu, Reading::weak>("fence.acq_rel.gpu on both sides", "none", options);
  litmus<Order::sys, Order::sys, Reading::weak>("fence.acq_rel.sys on both sides", "none", options);
  litmus<Order::tree, Order::tree, Reading::weak>("__threadfence_system on both sides", "none", options);
}

// ---- staleness of the L1 ----

enum class Kind { plain, weak, level1, weak_and_fence, level2, volatile_load, relaxed_gpu, relaxed_sys };

struct Staleness {
  Word word[16];
  Word reader_is_there[16];
  Word written_ns;
  Word seen_ns;
  Word looks;
};

template <Kind kind>
__device__ Word look_by(const Word* at) {
  if constexpr (kind == Kind::plain) return *at;
  if constexpr (kind == Kind::weak) return load_weak(at);
  if constexpr (kind == Kind::level1) return load_level1(at);
  if constexpr (kind == Kind::weak_and_fence) {
    fence_gpu();
    return load_weak(at);
  }
  if constexpr (kind == Kind::level2) return load_level2(at);
  if constexpr (kind == Kind::volatile_load) return load_volatile(at);
  if constexpr (kind == Kind::relaxed_gpu) return load_relaxed_gpu(at);
  return load_relaxed_sys(at);
}

/// The C++ compiler may take a plain load out of the loop, because it need not order this clock with memory.
__device__ Word unordered_ns() {
  Word ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
  return ns;
}

template <Kind kind>
__global__ void watch(Staleness* state, Word limit_ns) {
  const Word begin = unordered_ns();
  if (blockIdx.x == 1) {
    while (load_relaxed_gpu(state->reader_is_there) == 0 && unordered_ns() - begin < limit_ns) {
    }
    const Word met = unordered_ns();
    while (unordered_ns() - met < 2'000'000) {
    }
    store_relaxed_gpu(state->word, 1);
    fence_gpu();
    state->written_ns = unordered_ns();
    return;
  }
  Word looks = 0, seen_ns = 0;
  look_by<kind>(state->word);
  store_relaxed_gpu(state->reader_is_there, 1);
  while (unordered_ns() - begin < limit_ns) {
    ++looks;
    if (look_by<kind>(state->word) != 0) {
      seen_ns = unordered_ns();
      break;
    }
  }
  state->seen_ns = seen_ns;
  state->looks = looks;
}

template <Kind kind>
void staleness(const std::string& name, const std::string& expectation) {
  CardArray<Staleness> state(1);
  state.fill(0);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  watch<kind><<<2, 1>>>(state.data(), 1'000'000'000);
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Staleness read = state.read()[0];
  const std::string value =
      read.seen_ns == 0 ? "never within 1 s"
                        : std::to_string((long long)(read.seen_ns - read.written_ns)) + " ns after the writer's fence";
  answer("a loop of " + name + " sees what another multiprocessor wrote", value,
         std::to_string(read.looks) + " looks; expected: " + expectation);
}

// ---- to the host and back ----

__global__ void to_host(Word* ping, Word* pong, int rounds, Word* answered) {
  int round = 1;
  for (; round <= rounds; ++round) {
    fence_sys();
    store_relaxed_sys(ping, Word(round));
    int looks = 0;
    while (load_relaxed_sys(pong) < Word(round) && ++looks < host_looks_max) {
    }
    if (looks == host_looks_max) break;
    fence_sys();
  }
  *answered = Word(round - 1);
}

void host_round_trip(const Options& options) {
  PinnedArray<Word> words(64);
  const int rounds = options.quick() ? 50 : 500;
  CardArray<Word> answered(1);
  Samples samples;
  for (int sample = -1; sample < (options.quick() ? 1 : 9); ++sample) {
    std::atomic_ref<Word> ping(words[0]), pong(words[32]);
    ping = 0;
    pong = 0;
    to_host<<<1, 1>>>(words.data(), words.data() + 32, rounds, answered.data());
    TRANSHIP_CUDA(cudaGetLastError());
    double begin = 0;
    const double limit = now_us() + 2e6;
    for (int round = 1; round <= rounds; ++round) {
      while (ping.load(std::memory_order_acquire) < Word(round) && now_us() < limit) {
      }
      if (round == 1) begin = now_us();
      pong.store(Word(round), std::memory_order_release);
    }
    const double elapsed = now_us() - begin;
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    if (answered.read()[0] != Word(rounds)) return fault("a signal to the host and back: gave up after two seconds");
    if (sample >= 0) samples.values.push_back(elapsed / (rounds - 1) * 1e3);
  }
  figure("round trip of a signal from the card to the host and back", samples, "ns",
         "both words in pinned host memory");
}

void run(const Options& options) {
  CardArray<Game> games(1);
  all_hops<false>(games, options);
  all_hops<true>(games, options);
  partners(games, options);
  {
    CardArray<uint4> sink(64 * 256);
    sink.fill(0xa5);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    PinnedArray<Word> host_sink(64 * 16);
    fence_costs<Fence::sc_sys>("__threadfence_system (MEMBAR.SC.SYS)", sink, host_sink, options);
    fence_costs<Fence::acq_rel_sys>("fence.acq_rel.sys", sink, host_sink, options);
    fence_costs<Fence::sc_gpu>("__threadfence (MEMBAR.SC.GPU)", sink, host_sink, options);
    fence_costs<Fence::acq_rel_gpu>("fence.acq_rel.gpu", sink, host_sink, options);
  }
  host_round_trip(options);
  weak_memory(options);
  staleness<Kind::plain>("plain C++ loads", "never, the compiler loads once");
  staleness<Kind::weak>("ld.weak", "never or late, it hits in the L1");
  staleness<Kind::level1>("ld.ca", "never or late, it hits in the L1");
  staleness<Kind::weak_and_fence>("fence.acq_rel.gpu and ld.weak", "at once");
  staleness<Kind::level2>("ld.global.cg", "at once");
  staleness<Kind::volatile_load>("volatile loads", "at once");
  staleness<Kind::relaxed_gpu>("ld.relaxed.gpu", "at once");
  staleness<Kind::relaxed_sys>("ld.relaxed.sys", "at once");
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
