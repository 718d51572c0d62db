// Asks about host functions of streams: which threads run them, what they hold up, and what the calls of CUDA return
// that they must not make.
#include <atomic>
#include <thread>

#include <sys/syscall.h>

#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

/// This host function stays until it is told to go, or for 0.2 s.
struct Stay {
  std::atomic<int> started{0}, stop{0}, ended{0};
  std::atomic<long> thread{0};

  static void CUDART_CB run(void* at) {
    Stay& self = *static_cast<Stay*>(at);
    self.thread = syscall(SYS_gettid);
    self.started = 1;
    for (const double limit = now_us() + 0.2e6; self.stop == 0 && now_us() < limit;) usleep(20);
    self.ended = 1;
  }
};
bool is_set(const std::atomic<int>& flag, double limit_ms = 1000) {
  for (const double limit = now_us() + limit_ms * 1e3; now_us() < limit; usleep(20))
    if (flag != 0) return true;
  return flag != 0;
}

struct Meeting {
  std::atomic<int> present{0}, met{0}, over{0};

  static void CUDART_CB run(void* at) {
    Meeting& self = *static_cast<Meeting*>(at);
    self.present++;
    for (const double limit = now_us() + 0.1e6; self.present < 2 && now_us() < limit;) usleep(20);
    // A function that starts after the other has given up has not met it.
    if (self.present == 2 && self.over == 0) self.met++;
    self.over++;
  }
};

cudaError_t put(cudaStream_t stream, Word* mark) {
  return launch(stream, {}, put_word, mark, Word(1));
}

struct Flag {
  std::atomic<int> done{0};
  std::atomic<int> status{-1};
  static void CUDART_CB raise(void* at) { static_cast<Flag*>(at)->done = 1; }
  static void CUDART_CB raise_with_status(cudaStream_t, cudaError_t status, void* at) {
    static_cast<Flag*>(at)->status = int(status);
    static_cast<Flag*>(at)->done = 1;
  }
};

void while_one_runs() {
  const Stream a, b, c;
  static Stay stay, second;
  static Flag flag;
  PinnedArray<Word> pinned(512);
  CardArray<Word> card(512);
  Word* const own = Marks::next();
  Word* const other = Marks::next();
  TRANSHIP_CUDA(cudaLaunchHostFunc(a, Stay::run, &stay));
  TRANSHIP_CUDA(put(a, own));
  if (!is_set(stay.started)) return fault("a host function does not start");
  const auto runs = [&] { return stay.ended == 0; };
  told("cudaStreamQuery while a host function of the stream runs", name_of(cudaStreamQuery(a)), "cudaErrorNotReady");
  TRANSHIP_CUDA(put(b, other));
  const bool other_came = comes(other, 20) && runs();
  said("a kernel in another stream runs while a host function runs", other_came, "yes");
  TRANSHIP_CUDA(cudaMemcpyAsync(card.data(), pinned.data(), 4096, cudaMemcpyHostToDevice, c));
  const double begin = now_us();
  cudaError_t status = cudaErrorNotReady;
  while (status == cudaErrorNotReady && now_us() - begin < 20e3) status = cudaStreamQuery(c);
  said("a copy in another stream is done while a host function runs", status == cudaSuccess && runs(), "yes",
       name_of(status));
  TRANSHIP_CUDA(cudaLaunchHostFunc(b, Flag::raise, &flag));
  const bool second_ran = is_set(flag.done, 20) && runs();
  said("a host function of another stream runs while a host function runs", second_ran, "no, one thread runs them all");
  const bool own_stays = stays_away(own) && runs();
  said("a kernel behind a host function waits for its end", own_stays, "yes");
  std::vector<Word> pageable(512, 7);
  status = cudaMemcpyAsync(card.data(), pageable.data(), 4096, cudaMemcpyHostToDevice, c);
  const bool copied = runs();
  said("cudaMemcpyAsync of 4 KiB from pageable memory in another stream returns while a host function runs", copied,
       "yes", name_of(status));
  stay.stop = 1;
  said("a kernel behind a host function runs after its end", comes(own), "yes");
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  said("cudaDeviceSynchronize has waited for the host functions", stay.ended == 1 && flag.done == 1, "yes");
  second.stop = 1;
  TRANSHIP_CUDA(cudaLaunchHostFunc(b, Stay::run, &second));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  told("thread of host functions",
       std::string(stay.thread == syscall(SYS_gettid) ? "that of the caller" : "one of the driver") +
           (stay.thread == second.thread ? ", the same for two streams" : ", another one for another stream"),
       "one of the driver, the same for two streams");
}

void that_meet() {
  const Stream a, b;
  static Meeting meeting;
  TRANSHIP_CUDA(cudaLaunchHostFunc(a, Meeting::run, &meeting));
  TRANSHIP_CUDA(cudaLaunchHostFunc(b, Meeting::run, &meeting));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  told("two host functions of two streams that wait for one another",
       meeting.met == 2 ? "meet" : "run one after the other", "run one after the other");
}

void callbacks() {
  const Stream a;
  static Flag flag;
  Word* const mark = Marks::next();
  const Gate gate(a);
  const cudaError_t status = cudaStreamAddCallback(a, Flag::raise_with_status, &flag, 0);
  TRANSHIP_CUDA(put(a, mark));
  const bool early = is_set(flag.done, 5);
  gate.open();
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  told("cudaStreamAddCallback", name_of(status), "cudaSuccess");
  said("a callback waits for the work before it and gets cudaSuccess",
       !early && flag.done == 1 && flag.status == int(cudaSuccess), "yes");
}

/// Tests whether stores of the host are seen before a function and after it.
void visibility(int rounds) {
  const Stream a;
  CardArray<Word> others(1);
  others.fill(0);
  struct Shared {
    Word* data;
    Word value;
    int stale;
  };
  PinnedArray<Word> pinned(512), written(512);
  std::vector<Shared> shared{std::size_t(rounds)};
  for (int round = 0; round < rounds; ++round) {
    Shared& mine = shared[std::size_t(round)];
    mine = {pinned.data(), random_word(Word(round)), 0};
    TRANSHIP_CUDA(launch(a, {2, 256}, put_words, pinned.data(), 512u, mine.value));
    TRANSHIP_CUDA(cudaLaunchHostFunc(
        a,
        [](void* at) {
          Shared& self = *static_cast<Shared*>(at);
          for (unsigned i = 0; i < 512; ++i) self.stale += now_in(self.data + i) != self.value + i;
          write_words(self.data, 512, self.value ^ 1);
        },
        &mine));
    TRANSHIP_CUDA(launch(a, {2, 256}, count_other_words, pinned.data(), 512u, mine.value ^ 1, others.data()));
  }
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  long long stale = 0;
  for (const Shared& one : shared) stale += one.stale;
  answer("old words that a host function sees of the kernel before it", std::to_string(stale),
         "of " + std::to_string(rounds) + " rounds of 512; expected: none");
  answer("old words that a kernel sees of the host function before it", std::to_string(others.read()[0]),
         "of " + std::to_string(rounds) + " rounds of 512; expected: none");
}

// ---- calls that a host function must not make ----

struct Forbidden {
  cudaStream_t own, other;
  cudaEvent_t event;
  Word* card;
  Word* mark;
  void* memory = nullptr;
};
struct Call {
  const char* name;
  cudaError_t (*call)(Forbidden&);
};
const Call calls[] = {
    {"cudaGetLastError", [](Forbidden&) { return cudaGetLastError(); }},
    {"cudaEventQuery of a complete event", [](Forbidden& f) { return cudaEventQuery(f.event); }},
    {"cudaStreamQuery of another stream", [](Forbidden& f) { return cudaStreamQuery(f.other); }},
    {"cudaStreamQuery of its own stream", [](Forbidden& f) { return cudaStreamQuery(f.own); }},
    {"a kernel launch into another stream", [](Forbidden& f) { return put(f.other, f.mark); }},
    {"cudaEventRecord into another stream", [](Forbidden& f) { return cudaEventRecord(f.event, f.other); }},
    {"cudaMemcpyAsync into another stream",
     [](Forbidden& f) { return cudaMemcpyAsync(f.mark, f.card, 8, cudaMemcpyDefault, f.other); }},
    {"cudaMalloc", [](Forbidden& f) { return cudaMalloc(&f.memory, 1 << 20); }},
    {"cudaMemcpy", [](Forbidden& f) { return cudaMemcpy(f.mark, f.card, 8, cudaMemcpyDefault); }},
    {"cudaStreamSynchronize of another stream", [](Forbidden& f) { return cudaStreamSynchronize(f.other); }},
    {"a kernel launch into its own stream", [](Forbidden& f) { return put(f.own, f.mark); }},
    {"cudaMallocAsync into another stream", [](Forbidden& f) { return cudaMallocAsync(&f.memory, 1 << 20, f.other); }},
    {"cudaLaunchHostFunc into another stream",
     [](Forbidden& f) {
       static Flag flag;
       return cudaLaunchHostFunc(f.other, Flag::raise, &flag);
     }},
    {"cudaFree", [](Forbidden& f) { return cudaFree(f.card); }},
    {"cudaDeviceSynchronize", [](Forbidden&) { return cudaDeviceSynchronize(); }},
    {"cudaStreamSynchronize of its own stream", [](Forbidden& f) { return cudaStreamSynchronize(f.own); }},
};

struct Trial {
  const Call* call;
  Forbidden* with;
  std::atomic<int> began{0}, status{-1};

  static void CUDART_CB run(void* at) {
    Trial& self = *static_cast<Trial*>(at);
    self.began = 1;
    self.status = int(self.call->call(*self.with));
  }
};

}  // namespace

void ask_host_functions(const Options& options) {
  while_one_runs();
  that_meet();
  callbacks();
  visibility(options.quick() ? 20 : 500);
}

void ask_calls_of_host_functions(const Options& options) {
  // These objects are never destroyed: a call that hangs may use them.
  Forbidden& with = *new Forbidden{new_stream(), new_stream(), nullptr, nullptr, Marks::next()};
  TRANSHIP_CUDA(cudaEventCreateWithFlags(&with.event, cudaEventDisableTiming));
  TRANSHIP_CUDA(cudaMalloc(&with.card, 1 << 20));
  TRANSHIP_CUDA(cudaEventRecord(with.event, with.other));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const int count = int(std::size(calls));
  for (int i = int(options.number("--first", 0)); i < count; ++i) {
    Trial& trial = *new Trial{&calls[i], &with};
    TRANSHIP_CUDA(cudaLaunchHostFunc(with.own, Trial::run, &trial));
    for (const double limit = now_us() + 0.3e6; trial.status < 0 && now_us() < limit;) usleep(20);
    const std::string name = std::string("in a host function: ") + calls[i].name;
    const int status = trial.status;
    if (status < 0) {
      told(name, trial.began ? "does not return" : "the host function does not begin",
           "cudaErrorNotPermitted or any other");
      // Another process asks the rest, because this one can no longer synchronize.
      if (i + 1 < count) run_case("calls of host functions", options.quick(), 4, i + 1);
      std::_Exit(0);
    }
    told(name, cudaGetErrorName(cudaError_t(status)), "cudaErrorNotPermitted or any other");
    // If this wait never ends, the limit of the process ends the case.
    TRANSHIP_CUDA(cudaStreamSynchronize(with.own));
  }
}

}  // namespace tranship::device
