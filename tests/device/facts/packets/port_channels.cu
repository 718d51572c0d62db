// Measures port channels: the time of a request, and the triggers per second. The card puts triggers of 16 bytes into a
// ring in pinned memory. The host reads them and answers, by a word in pinned memory or by a copy on a stream with a
// completion counter behind it. The first word of a trigger is its number, counted from one, which tells the host that
// it is there. The host reports how far it has read by a word that the card looks at when the ring may be full.
#include <atomic>

#include "facts/driver.hpp"
#include "facts/packets/packets.hpp"

namespace tranship::device {
namespace {

constexpr unsigned ring_size = 256, requests_max = 64;
constexpr std::size_t copied_bytes_max = 1 << 20;
constexpr Word patience_ns = 500'000'000;

struct alignas(16) Trigger {
  Word number, what;
};

struct Port {
  Trigger* ring;       ///< in pinned memory
  const Word* tail;    ///< in pinned memory: triggers that the host has read
  Word* head;          ///< on the card
  const Word* answer;  ///< triggers that are complete, in pinned memory or on the card
  Word* source;
  Word* target;
  Word* out;  ///< nanoseconds, wrong words, whether a wait gave up
};

enum class Posting { together, ordered, unordered };

const char* words_of(Posting posting) {
  switch (posting) {
    case Posting::together:
      return "st.relaxed.sys.b128";
    case Posting::ordered:
      return "two stores of 8 bytes, fence.acq_rel.sys between";
    case Posting::unordered:
      return "two stores of 8 bytes, no fence";
  }
  return "";
}

template <Posting posting>
__device__ void post(const Port& port, Word index, Word what) {
  Trigger* const at = port.ring + index % ring_size;
  if constexpr (posting == Posting::together) {
    store16<Access::relaxed_sys_b128>(reinterpret_cast<Vector*>(at), {index + 1, what});
  } else {
    store_relaxed_sys(&at->what, what);
    if constexpr (posting == Posting::ordered) fence_sys();
    store_relaxed_sys(&at->number, index + 1);
  }
}

/// Returns false when it has given up.
template <class Ready>
__device__ bool await(const Ready& ready) {
  Word begin = 0;
  for (unsigned looks = 1; !ready(); ++looks)
    if (looks % 64 == 0) {
      const Word now = global_ns();
      if (begin == 0) begin = now;
      if (now - begin > patience_ns) return false;
    }
  return true;
}

/// Each warp posts `width` triggers, one a lane, `times` times.
template <Posting posting>
__global__ void push_many(Port port, unsigned times, unsigned width) {
  const unsigned lane = threadIdx.x % 32;
  Word tail = 0;
  bool lost = false;
  const Word begin = global_ns();
  for (unsigned i = 0; i < times && !lost; ++i) {
    Word first = 0;
    if (lane == 0) {
      first = atomicAdd(port.head, Word(width));
      const Word end = first + width;
      if (end > tail + ring_size)
        lost = !await([&] {
          tail = load_relaxed_sys(port.tail);
          return end <= tail + ring_size;
        });
    }
    first = __shfl_sync(~0u, first, 0);
    lost = __any_sync(~0u, lost) != 0;
    if (lane < width && !lost) post<posting>(port, first + lane, scrambled(first + lane));
    __syncwarp();
  }
  if (lost && lane == 0) atomicAdd(port.out + 2, 1ull);
  __syncthreads();
  if (threadIdx.x == 0) port.out[0] = global_ns() - begin;
}

__device__ Word mark(unsigned round, unsigned request, unsigned end) {
  return scrambled(Word(round) << 32 | request * 2 + end);
}

/// Lane k issues request k of each round. It marks the first and the last word of what is copied, which shows a copy
/// that came too early, or a completion that came before its copy. Times end when the completion is seen.
template <Posting posting>
__global__ void __launch_bounds__(requests_max)
    request_rounds(Port port, unsigned rounds, unsigned requests, unsigned bytes) {
  __shared__ Word first;
  __shared__ bool lost;
  const unsigned k = threadIdx.x, words = bytes / 8;
  Word* const source = port.source + std::size_t(k) * words;
  const Word* const target = port.target + std::size_t(k) * words;
  if (k == 0) lost = false;
  Word spent = 0, wrong = 0;
  for (unsigned round = 0; round < rounds; ++round) {
    if (k < requests && bytes != 0) {
      store_weak(source, mark(round, k, 0));
      if (words > 1) store_weak(source + words - 1, mark(round, k, 1));
    }
    fence_sys();
    __syncthreads();
    const Word begin = global_ns();
    if (k == 0) first = atomicAdd(port.head, Word(requests));
    __syncthreads();
    if (k < requests) post<posting>(port, first + k, k);
    if (k == 0) {
      const Word wanted = first + requests;
      if (!await([&] { return load_relaxed_sys(port.answer) >= wanted; })) lost = true;
      load_acquire_sys(port.answer);
      spent += global_ns() - begin;
    }
    __syncthreads();
    if (lost) break;
    if (k < requests && bytes != 0) {
      wrong += load_relaxed_sys(target) != mark(round, k, 0);
      if (words > 1) wrong += load_relaxed_sys(target + words - 1) != mark(round, k, 1);
    }
    __syncthreads();
  }
  if (wrong != 0) atomicAdd(port.out + 1, wrong);
  if (k != 0) return;
  port.out[0] = spent;
  port.out[2] = lost;
}

__global__ void look_many(const Word* at, int looks, Word* out) {
  Word sum = 0;
  const Word begin = global_ns();
  // The condition never holds: it makes each look wait for the one before.
  for (int i = 0; i < looks; ++i) sum += load_relaxed_sys(at + (sum >> 63));
  out[0] = global_ns() - begin;
  out[1] = sum;
}

enum class Answer { word, counter, copies, copies_at_once };

const char* words_of(Answer how) {
  switch (how) {
    case Answer::word:
      return "answered by a word in pinned memory";
    case Answer::counter:
      return "answered by cuStreamWriteValue64 alone";
    case Answer::copies:
      return "cudaMemcpyAsync and cuStreamWriteValue64";
    case Answer::copies_at_once:
      return "cudaMemcpyBatchAsync of all that are there and cuStreamWriteValue64";
  }
  return "";
}

class Ports {
 public:
  explicit Ports(const Options& options) : quick_(options.quick()), kernels_(new_stream()), copies_(new_stream()) {
    std::vector<Word> some(source_.size());
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = scrambled(777 + i);
    source_.write(some);
    can_count_ = Driver::get().cuStreamWriteValue64 != nullptr;
    if (!can_count_) answer("cuStreamWriteValue64", "no", "the driver has no such call");
  }
  ~Ports() {
    cudaStreamDestroy(kernels_);
    cudaStreamDestroy(copies_);
  }

  void looks() {
    const int count = quick_ ? 50 : 1000;
    Samples ns;
    for (int sample = -1; sample < samples(); ++sample) {
      clear();
      look_many<<<1, 1, 0, kernels_>>>(answer_word(), count, out_.data());
      TRANSHIP_CUDA(cudaGetLastError());
      TRANSHIP_CUDA(cudaStreamSynchronize(kernels_));
      if (sample >= 0) ns.values.push_back(double(out_.read()[0]) / count);
    }
    look_ns_ = ns.median();
    figure("a look at an unchanged word in pinned memory", ns, "ns");
  }

  template <Posting posting>
  void many(unsigned warps, unsigned width) {
    const std::string name = "triggers by one block, " + std::to_string(warps) + " warps of " + std::to_string(width) +
                             " lanes, " + words_of(posting);
    const unsigned times = (quick_ ? 1024 : 10000) / (warps * width);
    const Word count = Word(times) * warps * width;
    Samples rate, card_ns;
    long long wrong = 0;
    for (int sample = -1; sample < samples(); ++sample) {
      clear();
      push_many<posting><<<1, warps * 32, 0, kernels_>>>(port(answer_word()), times, width);
      TRANSHIP_CUDA(cudaGetLastError());
      const double limit = now_us() + 1e6;
      double first_us = 0;
      Word seen = 0, told = 0;
      for (unsigned misses = 0; seen < count;) {
        if (!is_there(seen)) {
          // A full ring must not wait until a round number of triggers has been read.
          if (told != seen) tell(told = seen);
          if (++misses % 1024 == 0 && now_us() > limit) break;
          continue;
        }
        if (seen == 0) first_us = now_us();
        wrong += what(seen) != scrambled(seen);
        if (++seen % 32 == 0) tell(told = seen);
      }
      const double us = now_us() - first_us;
      TRANSHIP_CUDA(cudaStreamSynchronize(kernels_));
      const std::vector<Word> out = out_.read();
      if (seen < count || out[2] != 0) return fault(name + ": only " + std::to_string(seen) + " triggers came");
      if (sample < 0) continue;
      rate.values.push_back(double(count - 1) / us);
      card_ns.values.push_back(double(out[0]) / double(count));
    }
    figure(name, rate, "M/s", "ring of 256, seen by the host");
    figure(name + ": time of the card for each", card_ns, "ns");
    const std::string note = "of " + std::to_string((samples() + 1) * count) + " triggers";
    if (posting == Posting::unordered)
      answer("triggers whose number came before the rest, " + name, std::to_string(wrong),
             note + "; expected: none or few");
    else
      check("triggers come whole, " + name, (long long)((samples() + 1) * count), wrong);
  }

  template <Posting posting>
  void requests(Answer how, unsigned requests, unsigned bytes) {
    std::string name = std::to_string(requests) + (requests == 1 ? " request" : " requests");
    if (bytes != 0) name += " of " + bytes_text(bytes);
    name += std::string(", trigger to completion, ") + words_of(how) + ", trigger by " + words_of(posting);
    if (how != Answer::word && !can_count_) return;
    const unsigned rounds = quick_ ? 5 : 100;
    Samples us;
    long long wrong = 0;
    for (int sample = -1; sample < samples(); ++sample) {
      clear();
      target_.fill(0xa5);
      // The driver must load what the first use needs before the kernel waits.
      for (unsigned k = 0; k < requests; ++k) ring_[k].what = k;
      if (!serve(how, 0, requests, bytes) || cudaStreamSynchronize(copies_) != cudaSuccess)
        return answer(name, cudaGetErrorName(cudaGetLastError()), "the driver refuses it");
      clear();
      request_rounds<posting><<<1, requests_max, 0, kernels_>>>(
          port(how == Answer::word ? answer_word() : counter_.data()), rounds, requests, bytes);
      TRANSHIP_CUDA(cudaGetLastError());
      const Word count = Word(rounds) * requests;
      const double limit = now_us() + 1e6;
      Word seen = 0;
      for (unsigned misses = 0; seen < count;) {
        Word end = seen;
        while (end < count && end - seen < requests && is_there(end)) ++end;
        if (end == seen) {
          if (++misses % 1024 == 0 && now_us() > limit) break;
          continue;
        }
        if (!serve(how, seen, end, bytes)) break;
        seen = end;
      }
      TRANSHIP_CUDA(cudaStreamSynchronize(kernels_));
      TRANSHIP_CUDA(cudaStreamSynchronize(copies_));
      const std::vector<Word> out = out_.read();
      if (out[2] != 0)
        return fault(name + ": gave up after " + std::to_string(seen) + " of " + std::to_string(count) + " triggers");
      wrong += (long long)out[1];
      if (sample >= 0) us.values.push_back(double(out[0]) * 1e-3 / rounds);
    }
    figure(name, us, "us", requests > 1 ? "all requests" : "");
    if (how == Answer::word)
      figure("trigger to seen by the host, " + std::string(words_of(posting)),
             us.mapped([&](double t) { return t * 1e3 - look_ns_; }), "ns",
             "the round trip less a look of the card; the fetch_add of the head is in it");
    if (bytes != 0)
      check("copies are of what was there at the trigger and over at the completion: " + name,
            (samples() + 1ll) * rounds * requests * (bytes > 8 ? 2 : 1), wrong);
  }

 private:
  int samples() const { return quick_ ? 1 : 9; }
  // The words of the host lie in lines of their own behind the ring.
  Word* tail_word() const { return words_.data(); }
  Word* answer_word() const { return words_.data() + 32; }

  Port port(const Word* answer_at) const {
    return {ring_.data(), tail_word(), head_.data(), answer_at, source_.data(), target_.data(), out_.data()};
  }
  void clear() {
    for (unsigned i = 0; i < ring_size; ++i) ring_[i] = {0, 0xa5a5a5a5a5a5a5a5};
    *tail_word() = 0;
    *answer_word() = 0;
    head_.fill(0);
    counter_.fill(0);
    out_.fill(0);
  }
  bool is_there(Word index) const {
    return std::atomic_ref<Word>(ring_[index % ring_size].number).load(std::memory_order_acquire) == index + 1;
  }
  Word what(Word index) const {
    return std::atomic_ref<Word>(ring_[index % ring_size].what).load(std::memory_order_relaxed);
  }
  void tell(Word seen) { std::atomic_ref<Word>(*tail_word()).store(seen, std::memory_order_release); }

  /// Serves the triggers [first, end). Returns false, and leaves the error in the runtime, when a copy is refused.
  bool serve(Answer how, Word first, Word end, unsigned bytes) {
    if (how == Answer::word) {
      std::atomic_ref<Word>(*answer_word()).store(end, std::memory_order_release);
      return true;
    }
    if (how == Answer::copies || how == Answer::copies_at_once) {
      void* targets[requests_max];
      const void* sources[requests_max];
      std::size_t sizes[requests_max];
      std::size_t count = 0;
      for (Word index = first; index < end; ++index, ++count) {
        // The copy stays within the arrays, whatever a trigger says.
        const std::size_t at = std::size_t(what(index) % (copied_bytes_max / bytes)) * (bytes / 8);
        targets[count] = target_.data() + at;
        sources[count] = source_.data() + at;
        sizes[count] = bytes;
      }
      if (how == Answer::copies) {
        for (std::size_t i = 0; i < count; ++i)
          if (cudaMemcpyAsync(targets[i], sources[i], bytes, cudaMemcpyDeviceToDevice, copies_) != cudaSuccess)
            return false;
      } else {
        cudaMemcpyAttributes attributes = {};
        attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
        std::size_t of_first = 0;
        if (cudaMemcpyBatchAsync(targets, sources, sizes, count, &attributes, &of_first, 1, copies_) != cudaSuccess)
          return false;
      }
    }
    TRANSHIP_DRIVER(cuStreamWriteValue64(copies_, reinterpret_cast<CUdeviceptr>(counter_.data()), end, 0));
    return true;
  }

  bool quick_, can_count_ = false;
  double look_ns_ = 0;
  cudaStream_t kernels_, copies_;
  PinnedArray<Trigger> ring_{ring_size};
  PinnedArray<Word> words_{64};
  CardArray<Word> head_{16}, counter_{16}, out_{16};
  CardArray<Word> source_{copied_bytes_max / 8}, target_{copied_bytes_max / 8};
};

}  // namespace

void port_channels(const Options& options) {
  Ports ports(options);
  ports.looks();
  ports.requests<Posting::together>(Answer::word, 1, 0);
  ports.requests<Posting::ordered>(Answer::word, 1, 0);
  ports.requests<Posting::together>(Answer::counter, 1, 0);
  for (const unsigned bytes : {8u, 4096u, 64u << 10, 1u << 20})
    ports.requests<Posting::together>(Answer::copies, 1, bytes);
  for (const unsigned requests : {8u, 64u}) {
    ports.requests<Posting::together>(Answer::copies, requests, 4096);
    ports.requests<Posting::together>(Answer::copies_at_once, requests, 4096);
  }
  for (const auto& [warps, width] : {std::pair{1u, 1u}, {1u, 32u}, {8u, 32u}}) {
    ports.many<Posting::together>(warps, width);
    ports.many<Posting::ordered>(warps, width);
    ports.many<Posting::unordered>(warps, width);
  }
}

}  // namespace tranship::device
