// Asks when a copy, a value, an event or the host after a kernel sees the kernel's stores. Each answer counts rounds in
// which old words were seen.
#include "facts/driver.hpp"
#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

constexpr unsigned words = 4096;

void count_answer(const std::string& question, long long stale, int rounds, const std::string& expectation) {
  answer(question, std::to_string(stale), "of " + std::to_string(rounds) + " rounds; expected: " + expectation);
}

/// Counts rounds in which the host, once `settled` returns true, sees words that do not belong to the round.
template <class Enqueue, class Settled>
void host_sees(const std::string& question, const std::string& expectation, int rounds, cudaStream_t stream,
               const Word* seen, const Enqueue& enqueue, const Settled& settled) {
  long long stale = 0;
  for (int round = 1; round <= rounds; ++round) {
    const Word value = random_word(Word(round));
    TRANSHIP_CUDA(enqueue(Word(round), value));
    const double limit = now_us() + 1e6;
    while (!settled(Word(round)))
      if (now_us() > limit) return fault(question + ": waits in vain in round " + std::to_string(round));
    // The loop starts at the end, because the last words arrive last.
    bool is_stale = false;
    for (unsigned i = words; i-- > 0 && !is_stale;) is_stale = now_in(seen + i) != value + i;
    stale += is_stale;
    TRANSHIP_CUDA(cudaStreamSynchronize(stream));
  }
  count_answer(question, stale, rounds, expectation);
}

void watched_by_a_kernel(bool acquires, int rounds) {
  const Driver& driver = Driver::get();
  const Stream writer, reader;
  CardArray<Word> data(words), flag(1), others(1);
  data.fill(0xa5);
  flag.fill(0);
  others.fill(0);
  Word* const acknowledged = Marks::next();
  const std::string question =
      std::string("a kernel in another stream that sees a value of cuStreamWriteValue64, and ") +
      (acquires ? "acquires it, " : "only loads it, ") + "sees old words of the kernel before it on the card";
  TRANSHIP_CUDA(launch(reader, {1, 256}, watch_rounds, flag.data(), data.data(), words, rounds, int(acquires),
                       Word(1'000'000'000), acknowledged, others.data()));
  for (int round = 1; round <= rounds; ++round) {
    TRANSHIP_CUDA(launch(writer, {16, 256}, put_words, data.data(), words, Word(round)));
    const CUresult status =
        driver.cuStreamWriteValue64(writer, reinterpret_cast<CUdeviceptr>(flag.data()), cuuint64_t(round), 0);
    if (status != CUDA_SUCCESS) return answer(question, driver.error(status));
    const double limit = now_us() + 1.5e6;
    while (now_in(acknowledged) < Word(round))
      if (now_us() > limit) return fault(question + ": waits in vain in round " + std::to_string(round));
  }
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  answer(question, std::to_string(others.read()[0]) + " words",
         "of " + std::to_string(words) + " in " + std::to_string(rounds) +
             " rounds; expected: " + (acquires ? "none" : "some, from the reader's L1"));
}

}  // namespace

void ask_order(const Options& options) {
  const Driver& driver = Driver::get();
  const int many = options.quick() ? 50 : 10000, some = options.quick() ? 50 : 2000;
  const Stream stream, other;
  const cudaStream_t s = stream, o = other;
  CardArray<Word> card(words);
  PinnedArray<Word> pinned(words), source(words);
  Word* const flag = Marks::next();
  const auto is_done = [&](Word) { return cudaStreamQuery(s) == cudaSuccess; };
  const auto put = [&](Word* at, Word value) { return launch(s, {16, 256}, put_words, at, words, value); };
  const auto write_flag = [&](Word round, unsigned flags) {
    TRANSHIP_DRIVER(cuStreamWriteValue64(s, reinterpret_cast<CUdeviceptr>(flag), round, flags));
    return cudaSuccess;
  };
  const auto flag_is = [&](Word round) { return now_in(flag) == round; };

  if (driver.cuStreamWriteValue64 == nullptr) {
    answer("cuStreamWriteValue64", "not in the driver");
  } else {
    for (const bool barrier : {true, false}) {
      *static_cast<volatile Word*>(flag) = 0;
      const unsigned flags = barrier ? CU_STREAM_WRITE_VALUE_DEFAULT : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
      const std::string with = barrier ? "" : " without memory barrier";
      const CUresult taken = driver.cuStreamWriteValue64(s, reinterpret_cast<CUdeviceptr>(flag), 0, flags);
      if (taken != CUDA_SUCCESS) {
        answer("cuStreamWriteValue64" + with, "refused", driver.error(taken) + "; expected: taken");
        continue;
      }
      host_sees(
          "kernel stores to pinned memory, cuStreamWriteValue64" + with +
              ", the host that sees the value sees old words",
          barrier ? "none" : "some or none", many, s, pinned.data(),
          [&](Word round, Word value) {
            const cudaError_t status = put(pinned.data(), value);
            return status == cudaSuccess ? write_flag(round, flags) : status;
          },
          flag_is);
      *static_cast<volatile Word*>(flag) = 0;
      host_sees(
          "a copy to pinned memory, cuStreamWriteValue64" + with + ", the host that sees the value sees old words",
          barrier ? "none" : "some or none", some, s, pinned.data(),
          [&](Word round, Word value) {
            TRANSHIP_CUDA(put(card.data(), value));
            TRANSHIP_CUDA(cudaMemcpyAsync(pinned.data(), card.data(), words * sizeof(Word), cudaMemcpyDeviceToHost, s));
            return write_flag(round, flags);
          },
          flag_is);
    }
    watched_by_a_kernel(true, many);
    watched_by_a_kernel(false, some);
  }

  host_sees(
      "kernel stores to pinned memory, the host that sees cudaStreamQuery succeed sees old words", "none", some, s,
      pinned.data(), [&](Word, Word value) { return put(pinned.data(), value); }, is_done);
  const Event event(cudaEventDisableTiming);
  host_sees(
      "kernel stores to pinned memory, the host that sees cudaEventQuery succeed sees old words", "none", some, s,
      pinned.data(),
      [&](Word, Word value) {
        const cudaError_t status = put(pinned.data(), value);
        return status == cudaSuccess ? cudaEventRecord(event, s) : status;
      },
      [&](Word) { return cudaEventQuery(event) == cudaSuccess; });
  host_sees(
      "kernel stores to the card, cudaMemcpyAsync of them in the same stream copies old words", "none", some, s,
      pinned.data(),
      [&](Word, Word value) {
        const cudaError_t status = put(card.data(), value);
        return status == cudaSuccess
                   ? cudaMemcpyAsync(pinned.data(), card.data(), words * sizeof(Word), cudaMemcpyDeviceToHost, s)
                   : status;
      },
      is_done);
  host_sees(
      "kernel stores to the card, cudaMemcpyAsync in a stream that waits for an event after it copies old words",
      "none", some, s, pinned.data(),
      [&](Word, Word value) {
        TRANSHIP_CUDA(put(card.data(), value));
        TRANSHIP_CUDA(cudaEventRecord(event, s));
        TRANSHIP_CUDA(cudaStreamWaitEvent(o, event, 0));
        return cudaMemcpyAsync(pinned.data(), card.data(), words * sizeof(Word), cudaMemcpyDeviceToHost, o);
      },
      [&](Word) { return cudaStreamQuery(o) == cudaSuccess; });

  CardArray<Word> others(1);
  others.fill(0);
  for (int round = 1; round <= some; ++round) {
    const Word value = random_word(Word(round) + 77);
    write_words(source.data(), words, value);
    TRANSHIP_CUDA(cudaMemcpyAsync(card.data(), source.data(), words * sizeof(Word), cudaMemcpyHostToDevice, s));
    TRANSHIP_CUDA(launch(s, {16, 256}, count_other_words, card.data(), words, value, others.data()));
    TRANSHIP_CUDA(cudaStreamSynchronize(s));
  }
  answer("a copy from pinned memory, a kernel after it in the same stream sees old words",
         std::to_string(others.read()[0]) + " words", "in " + std::to_string(some) + " rounds; expected: none");
  others.fill(0);
  for (int round = 1; round <= some; ++round) {
    const Word value = random_word(Word(round) + 7777);
    write_words(source.data(), words, value);
    TRANSHIP_CUDA(launch(s, {16, 256}, count_other_words, source.data(), words, value, others.data()));
    TRANSHIP_CUDA(cudaStreamSynchronize(s));
  }
  answer("the host stores to pinned memory, a kernel launched after that sees old words",
         std::to_string(others.read()[0]) + " words", "in " + std::to_string(some) + " rounds; expected: none");
}

}  // namespace tranship::device
