// Measures waits that give up. Every 64 looks they read the card's clock and an abort word and sleep for a moment. The
// first lane whose time is over claims a record of 64 bytes in pinned host memory, fills it in, and sets the abort
// word, upon which all blocks leave. The program measures what that costs beside a bare spin, whether exactly one
// record comes, and what is left of the process after a kernel that traps instead.
#include "facts/options.hpp"
#include "facts/words.hpp"

namespace tranship::device {
namespace {

/// Describes a wait that has given up, as the host reads it.
struct alignas(64) Record {
  Word state;  ///< 0 free, 1 claimed, 2 complete
  int rank, block, step, kind;
  Word offset, wanted, seen, waited_ns;
};
static_assert(sizeof(Record) == 64);

struct Guard {
  Record* record;
  Word* claim;  ///< the record's own state, or a word on the card
  Word* abort;
  Word limit_ns;
};

__device__ void report(const Guard& guard, int step, const Word* at, const Word* base, Word wanted, Word seen,
                       Word waited_ns) {
  if (atomicCAS_system(guard.claim, 0ull, 1ull) == 0) {
    volatile Record& record = *guard.record;
    record.rank = 0;
    record.block = int(blockIdx.x);
    record.step = step;
    record.kind = 17;
    record.offset = Word(at - base) * sizeof(Word);
    record.wanted = wanted;
    record.seen = seen;
    record.waited_ns = waited_ns;
    fence_sys();
    store_relaxed_sys(&guard.record->state, 2);
    // A lane that sees the abort word may end the kernel, so the record comes first.
    fence_sys();
    store_relaxed_gpu(guard.abort, 1);
  }
}

enum class Spin { bare, bounded, bounded_and_sleeping };

/// Returns false when this wait, or another before it, has given up.
template <Spin spin>
__device__ bool await(const Word* at, const Word* base, Word wanted, int step, const Guard& guard) {
  Word begin = 0;
  for (unsigned looks = 1;; ++looks) {
    const Word seen = load_relaxed_gpu(at);
    if (seen >= wanted) {
      load_acquire_gpu(at);
      return true;
    }
    if constexpr (spin == Spin::bare) {
      if (looks == unsigned(looks_max)) return false;
    } else if (looks % 64 == 0) {
      const Word now = global_ns();
      if (begin == 0) begin = now;
      if (load_relaxed_gpu(guard.abort) != 0) return false;
      if (now - begin > guard.limit_ns) {
        report(guard, step, at, base, wanted, seen, now - begin);
        return false;
      }
      if constexpr (spin == Spin::bounded_and_sleeping) __nanosleep(100);
    }
  }
}

// ---- the cost ----

template <Spin spin>
__global__ void ping_pong(Word* words, int rounds, Guard guard, Word* elapsed_ns) {
  const int me = int(blockIdx.x);
  Word begin = 0;
  for (int round = 1; round <= rounds; ++round) {
    if (round == 2) begin = global_ns();
    for (int half = 0; half < 2; ++half) {
      if (half == me) {
        fence_gpu();
        store_relaxed_gpu(words + 16 * (1 - me), Word(round));
      } else if (!await<spin>(words + 16 * me, words, Word(round), round, guard)) {
        return;
      }
    }
  }
  if (me == 0) *elapsed_ns = global_ns() - begin;
}

/// Counts the looks at a word that is raised after a while.
template <Spin spin>
__global__ void looks_in_vain(const Word* word, int looks, Guard guard, Word* ns) {
  const Word begin = global_ns();
  for (int look = 1; look <= looks; ++look) {
    if (load_relaxed_gpu(word) != 0) break;
    if constexpr (spin != Spin::bare)
      if (look % 64 == 0) {
        if (load_relaxed_gpu(guard.abort) != 0 || global_ns() - begin > guard.limit_ns) break;
        if constexpr (spin == Spin::bounded_and_sleeping) __nanosleep(100);
      }
  }
  *ns = global_ns() - begin;
}

struct Bench {
  CardArray<Word> words{1024}, out{16}, claim{16}, abort{16};
  PinnedArray<Record> record{1};
  bool quick;

  explicit Bench(bool is_quick) : quick(is_quick) {}

  enum class Claim { on_the_card, in_host_memory };
  Guard guard(Claim where, Word limit_ns) {
    words.fill(0);
    out.fill(0);
    claim.fill(0);
    abort.fill(0);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    record[0] = {};
    return {record.data(), where == Claim::on_the_card ? claim.data() : &record.data()->state, abort.data(), limit_ns};
  }
  int samples() const { return quick ? 1 : 9; }
};

template <Spin spin>
void cost(Bench& bench, const std::string& name) {
  const int rounds = bench.quick ? 20 : 1001, looks = bench.quick ? 640 : 64000;
  Samples hops, per_look;
  for (int sample = -1; sample < bench.samples(); ++sample) {
    const Guard guard = bench.guard(Bench::Claim::on_the_card, 1'000'000'000);
    ping_pong<spin><<<2, 1>>>(bench.words.data(), rounds, guard, bench.out.data());
    TRANSHIP_CUDA(cudaGetLastError());
    looks_in_vain<spin><<<1, 1>>>(bench.words.data() + 512, looks, guard, bench.out.data() + 1);
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const std::vector<Word> ns = bench.out.read();
    if (ns[0] == 0) return fault(name + ": gave up");
    if (sample < 0) continue;
    hops.values.push_back(double(ns[0]) / (2.0 * (rounds - 1)));
    per_look.values.push_back(double(ns[1]) / looks);
  }
  figure("hop of a signal, " + name, hops, "ns");
  figure("one look in vain, " + name, per_look, "ns");
}

// ---- giving up ----

struct Leaving {
  Word last_ns;
  Word gave_up;
  Word passed;
};

__global__ void waits_for_nothing(Word* words, Guard guard, Leaving* leaving) {
  __shared__ bool came;
  if (threadIdx.x == 0)
    came = await<Spin::bounded_and_sleeping>(words + 4 * blockIdx.x, words, 5 + blockIdx.x, 7, guard);
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicAdd(came ? &leaving->passed : &leaving->gave_up, 1ull);
  atomicMax(&leaving->last_ns, global_ns());
}
__global__ void fill_words(Word* words, Word seed) {
  words[threadIdx.x] = scrambled(seed + threadIdx.x);
}

void give_up(Bench& bench, Bench::Claim where, const std::string& name) {
  const int blocks = multiprocessors(), trials = bench.quick ? 2 : 20;
  CardArray<Leaving> leaving(1);
  CardArray<Word> words(std::size_t(blocks) * 4);
  const Word limit_ns = 5'000'000;
  long long wrong = 0;
  std::string first;
  Samples leave_us, late_us;
  for (int trial = 0; trial < trials; ++trial) {
    const Guard guard = bench.guard(where, limit_ns);
    words.fill(0);
    leaving.fill(0);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const double begin = now_us();
    waits_for_nothing<<<blocks, 64>>>(words.data(), guard, leaving.data());
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const double us = now_us() - begin;
    const Record record = bench.record[0];
    const Leaving left = leaving.read()[0];
    const bool is_right = record.state == 2 && record.rank == 0 && record.block >= 0 && record.block < blocks &&
                          record.step == 7 && record.kind == 17 && record.offset == Word(record.block) * 32 &&
                          record.wanted == 5 + Word(record.block) && record.seen == 0 && record.waited_ns > limit_ns &&
                          left.passed == 0 && left.gave_up == Word(blocks);
    if (!is_right && wrong++ == 0)
      first = "state " + std::to_string(record.state) + ", block " + std::to_string(record.block) + ", step " +
              std::to_string(record.step) + ", offset " + std::to_string(record.offset) + ", wanted " +
              std::to_string(record.wanted) + ", waited " + std::to_string(record.waited_ns) + " ns, " +
              std::to_string(left.gave_up) + " of " + std::to_string(blocks) + " blocks gave up";
    leave_us.values.push_back(us);
    late_us.values.push_back(double(record.waited_ns) * 1e-3);
    // The process goes on after the kernel has given up.
    fill_words<<<1, 256>>>(bench.words.data(), Word(trial));
    TRANSHIP_CUDA(cudaGetLastError());
    const std::vector<Word> filled = bench.words.read();
    for (unsigned i = 0; i < 256; ++i)
      if (filled[i] != scrambled(Word(trial) + i)) {
        ++wrong;
        first = "the kernel after it is wrong";
        break;
      }
  }
  check("a lost signal leaves one complete record, all blocks leave, the next kernel works, " + name, trials, wrong,
        first);
  figure("launch to the end of all blocks that wait 5 ms in vain, " + name, leave_us, "us");
  figure("how long the reporting lane waited, limit 5 ms, " + name, late_us, "us");
}

/// Many lanes claim one word in host memory at once.
__global__ void claim_together(Word* claim, Word* winners) {
  if (atomicCAS_system(claim, 0ull, 1ull) == 0) atomicAdd(winners, 1ull);
}

void claims() {
  PinnedArray<Word> claim(1);
  CardArray<Word> winners(1);
  long long wrong = 0;
  for (int trial = 0; trial < 50; ++trial) {
    claim[0] = 0;
    winners.fill(0);
    claim_together<<<multiprocessors(), 32>>>(claim.data(), winners.data());
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    wrong += winners.read()[0] != 1 || claim[0] != 1;
  }
  check("atomicCAS_system on pinned host memory has one winner among the lanes of a card", 50, wrong);
}

// ---- clocks ----

__global__ void clock_steps(int reads, Word* out) {
  Word least = ~0ull, changes = 0;
  const long long begin = clock64();
  const Word first = global_ns();
  Word last = first;
  for (int i = 0; i < reads; ++i) {
    const Word now = global_ns();
    if (now != last) {
      least = min(least, now - last);
      ++changes;
    }
    last = now;
  }
  out[0] = least;
  out[1] = changes;
  out[2] = Word(clock64() - begin);
  out[3] = last - first;
}

void clocks(Bench& bench) {
  const int reads = bench.quick ? 10000 : 200000;
  Samples rate, cost;
  Word least = ~0ull, changes = 0, span = 0;
  for (int sample = -1; sample < bench.samples(); ++sample) {
    clock_steps<<<1, 1>>>(reads, bench.out.data());
    TRANSHIP_CUDA(cudaGetLastError());
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const std::vector<Word> out = bench.out.read();
    if (sample < 0 || out[3] == 0) continue;
    least = std::min(least, out[0]);
    changes += out[1];
    span += out[3];
    rate.values.push_back(double(out[2]) / double(out[3]));
    cost.values.push_back(double(out[3]) / reads);
  }
  figure("step of %globaltimer", Samples{{double(span) / double(std::max<Word>(changes, 1))}}, "ns",
         "mean; the least is " + std::to_string(least) +
             " ns; a mean near the cost of a read means that the clock is finer than a read");
  figure("cost of reading %globaltimer", cost, "ns");
  figure("clock of the multiprocessors", rate, "cycles/ns",
         "by %globaltimer; the card says " + std::to_string(attribute(cudaDevAttrClockRate)) + " kHz");
}

// ---- a trap ----

__global__ void gives_up_and_traps(Word* words, Guard guard) {
  if (!await<Spin::bounded_and_sleeping>(words, words, 1, 9, guard)) __trap();
}

/// This comes last, because it loses the context.
void trap_after_record() {
  // The bench lives until the process ends, because the context that owns its memory is lost.
  Bench& bench = *new Bench(true);
  const Guard guard = bench.guard(Bench::Claim::on_the_card, 2'000'000);
  gives_up_and_traps<<<1, 1>>>(bench.words.data(), guard);
  TRANSHIP_CUDA(cudaGetLastError());
  const cudaError_t status = cudaDeviceSynchronize();
  answer("error of a kernel that traps", cudaGetErrorName(status));
  answer("the record in pinned memory can be read after the trap",
         bench.record[0].state == 2 && bench.record[0].step == 9 ? "yes" : "no", "expected: yes");
  void* memory = nullptr;
  answer("cudaMalloc after the trap", cudaGetErrorName(cudaMalloc(&memory, 1024)), "expected: the same error");
  cudaGetLastError();
  answer("cudaDeviceReset after the trap", cudaGetErrorName(cudaDeviceReset()));
  cudaGetLastError();
  const cudaError_t after = cudaMalloc(&memory, 1024);
  answer("cudaMalloc after the reset", cudaGetErrorName(after), "success means that a process can begin anew");
}

void run(const Options& options) {
  {
    Bench bench(options.quick());
    clocks(bench);
    cost<Spin::bare>(bench, "bare spin");
    cost<Spin::bounded>(bench, "bounded wait without sleep");
    cost<Spin::bounded_and_sleeping>(bench, "bounded wait");
    give_up(bench, Bench::Claim::on_the_card, "claimed on the card");
    claims();
    give_up(bench, Bench::Claim::in_host_memory, "claimed in host memory");
    TRANSHIP_CUDA(cudaDeviceSynchronize());
  }
  if (!options.quick()) trap_after_record();
}

}  // namespace
}  // namespace tranship::device

int main(int argc, char** argv) {
  tranship::device::run(tranship::device::Options(argc, argv));
  return 0;
}
