// Asks about copies and memsets whose stream a kernel holds: does the call return, when is the source read, and when is
// the target there? Also asks about copies that overlap, and about what a kernel on another stream sees right after a
// call of the default stream.
#include "facts/semantics/cases.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {
namespace {

constexpr std::size_t bytes_max = 16 << 20;
constexpr double held_s = 0.1;

std::string at_return(bool held) {
  return held ? "returns while the stream is held" : "waits for the stream";
}

struct Question {
  std::string name, expectation;
  cudaStream_t held;  ///< the stream that a kernel holds
  std::size_t bytes;
  Word* source;
  Word* target;
  bool is_target_on_card;
  std::function<cudaError_t()> call;
};

void read_back(std::vector<Word>& to, const Word* from, std::size_t bytes) {
  to.assign(bytes / sizeof(Word), 0);
  TRANSHIP_CUDA(cudaMemcpy(to.data(), from, bytes, cudaMemcpyDeviceToHost));
}

/// The source is host memory, which the host overwrites as soon as the call has returned.
void ask_source(const Question& q) {
  const std::size_t words = q.bytes / sizeof(Word);
  const Word before = random_word(q.bytes), after = random_word(q.bytes + 1);
  write_words(q.source, words, before);
  if (q.is_target_on_card)
    TRANSHIP_CUDA(cudaMemset(q.target, 0xa5, q.bytes));
  else
    std::memset(q.target, 0xa5, q.bytes);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Gate gate(q.held, held_s);
  const double begin = now_us();
  const cudaError_t status = q.call();
  const double us = now_us() - begin;
  const bool held = gate.holds();
  write_words(q.source, words, after);
  const bool held_still = gate.holds();
  gate.open();
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  if (status != cudaSuccess) return told(q.name, name_of(status), q.expectation);
  std::vector<Word> seen(q.target, q.is_target_on_card ? q.target : q.target + words);
  if (q.is_target_on_card) read_back(seen, q.target, q.bytes);
  const std::size_t old_words = count_words(seen.data(), words, before);
  const std::size_t new_words = count_words(seen.data(), words, after);
  const std::string bytes = old_words == words ? "the bytes of the time of the call arrive"
                            : new_words == words
                                ? "the bytes written after the call arrive"
                                : std::to_string(old_words) + " words of the time of the call and " +
                                      std::to_string(new_words) + " later ones of " + std::to_string(words) + " arrive";
  std::string detail = "the call took " + us_text(us);
  if (held && !held_still) detail += ", and the stream was open before the source was written";
  answer(q.name, at_return(held) + "; " + bytes, detail + "; expected: " + q.expectation);
}

/// The target is host memory, which the host looks at as soon as the call has returned.
void ask_target(const Question& q) {
  const std::size_t words = q.bytes / sizeof(Word);
  const Word value = random_word(q.bytes + 2);
  std::vector<Word> source(words);
  write_words(source.data(), words, value);
  TRANSHIP_CUDA(cudaMemcpy(q.source, source.data(), q.bytes, cudaMemcpyDefault));
  std::memset(q.target, 0xa5, q.bytes);
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const Gate gate(q.held, held_s);
  const double begin = now_us();
  const cudaError_t status = q.call();
  const double us = now_us() - begin;
  const bool held = gate.holds();
  const std::size_t there = count_words(q.target, words, value);
  gate.open();
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  if (status != cudaSuccess) return told(q.name, name_of(status), q.expectation);
  const std::size_t there_at_last = count_words(q.target, words, value);
  const std::string bytes =
      there == words ? "all bytes are there at its return"
      : there == 0   ? "no byte is there at its return"
                     : std::to_string(there) + " of " + std::to_string(words) + " words are there at its return";
  answer(q.name, at_return(held) + "; " + bytes,
         "the call took " + us_text(us) +
             (there_at_last == words ? "" : ", and the bytes are wrong after a synchronization") +
             "; expected: " + q.expectation);
}

struct Memory {
  CardArray<Word> card{bytes_max / 8}, card_too{bytes_max / 8};
  PinnedArray<Word> pinned{bytes_max / 8}, pinned_too{bytes_max / 8};
  std::vector<Word> pageable = std::vector<Word>(bytes_max / 8, 1), pageable_too = std::vector<Word>(bytes_max / 8, 1);
};

void held_copies(Memory& m) {
  const Stream stream;
  const auto copy = [&](Word* to, const Word* from, std::size_t bytes) {
    return [&stream, to, from, bytes] { return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream); };
  };
  const auto name = [](std::size_t bytes, const char* what) {
    return "cudaMemcpyAsync of " + size_name(bytes) + ", " + what + ", stream held";
  };
  for (const std::size_t bytes :
       {std::size_t(8), std::size_t(4) << 10, std::size_t(64) << 10, std::size_t(1) << 20, std::size_t(16) << 20}) {
    ask_source({name(bytes, "pageable to card"), "the bytes of the time of the call; small ones return", stream, bytes,
                m.pageable.data(), m.card.data(), true, copy(m.card.data(), m.pageable.data(), bytes)});
    ask_target({name(bytes, "card to pageable"), "waits; all bytes are there", stream, bytes, m.card.data(),
                m.pageable.data(), false, copy(m.pageable.data(), m.card.data(), bytes)});
  }
  for (const std::size_t bytes : {std::size_t(8), std::size_t(64) << 10, std::size_t(16) << 20}) {
    ask_source({name(bytes, "pinned to card"), "returns; the bytes written after the call", stream, bytes,
                m.pinned.data(), m.card.data(), true, copy(m.card.data(), m.pinned.data(), bytes)});
    ask_target({name(bytes, "card to pinned"), "returns; no byte is there", stream, bytes, m.card.data(),
                m.pinned.data(), false, copy(m.pinned.data(), m.card.data(), bytes)});
  }
  for (const std::size_t bytes : {std::size_t(8), std::size_t(64) << 10, std::size_t(1) << 20}) {
    ask_source({name(bytes, "pageable to pageable"), "waits; the bytes of the time of the call", stream, bytes,
                m.pageable.data(), m.pageable_too.data(), false,
                copy(m.pageable_too.data(), m.pageable.data(), bytes)});
    ask_source({name(bytes, "pinned to pinned"), "returns; the bytes written after the call", stream, bytes,
                m.pinned.data(), m.pinned_too.data(), false, copy(m.pinned_too.data(), m.pinned.data(), bytes)});
  }
  ask_source({name(64 << 10, "pageable to pinned"), "unknown", stream, 64 << 10, m.pageable.data(), m.pinned.data(),
              false, copy(m.pinned.data(), m.pageable.data(), 64 << 10)});
  ask_source({name(64 << 10, "pinned to pageable"), "unknown", stream, 64 << 10, m.pinned.data(), m.pageable.data(),
              false, copy(m.pageable.data(), m.pinned.data(), 64 << 10)});
  const cudaError_t status = cudaHostRegister(m.pageable.data(), bytes_max, cudaHostRegisterDefault);
  if (status != cudaSuccess) return told("cudaHostRegister of a std::vector", name_of(status), "cudaSuccess");
  ask_source({name(64 << 10, "registered to card"), "returns; the bytes written after the call", stream, 64 << 10,
              m.pageable.data(), m.card.data(), true, copy(m.card.data(), m.pageable.data(), 64 << 10)});
  ask_target({name(64 << 10, "card to registered"), "returns; no byte is there", stream, 64 << 10, m.card.data(),
              m.pageable.data(), false, copy(m.pageable.data(), m.card.data(), 64 << 10)});
  TRANSHIP_CUDA(cudaHostUnregister(m.pageable.data()));
}

/// The default stream waits for a stream that is made without cudaStreamNonBlocking, and a kernel holds such a stream.
void held_default_stream(Memory& m) {
  cudaStream_t blocking;
  TRANSHIP_CUDA(cudaStreamCreate(&blocking));
  const auto copy = [&](Word* to, const Word* from, std::size_t bytes) {
    return [to, from, bytes] { return cudaMemcpy(to, from, bytes, cudaMemcpyDefault); };
  };
  const auto name = [](std::size_t bytes, const char* what) {
    return "cudaMemcpy of " + size_name(bytes) + ", " + what + ", default stream held by a blocking stream";
  };
  for (const std::size_t bytes : {std::size_t(8), std::size_t(4) << 10, std::size_t(64) << 10,
                                  (std::size_t(64) << 10) + 8, std::size_t(1) << 20}) {
    ask_source({name(bytes, "pageable to card"), "up to 64 KiB it may return before the bytes are on the card",
                blocking, bytes, m.pageable.data(), m.card.data(), true,
                copy(m.card.data(), m.pageable.data(), bytes)});
    ask_source({name(bytes, "pinned to card"), "waits", blocking, bytes, m.pinned.data(), m.card.data(), true,
                copy(m.card.data(), m.pinned.data(), bytes)});
  }
  for (const std::size_t bytes : {std::size_t(8), std::size_t(1) << 20})
    ask_target({name(bytes, "card to pageable"), "waits; all bytes are there", blocking, bytes, m.card.data(),
                m.pageable.data(), false, copy(m.pageable.data(), m.card.data(), bytes)});
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  const auto returns = [&](const std::string& what, const std::string& expectation, const auto& call) {
    const Gate gate(blocking, held_s);
    const cudaError_t status = call();
    const bool held = gate.holds();
    gate.open();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    told(what + ", default stream held by a blocking stream", status == cudaSuccess ? at_return(held) : name_of(status),
         expectation);
  };
  returns("cudaMemcpy of 1 MiB, card to card", "returns, it does not synchronize with the host",
          [&] { return cudaMemcpy(m.card_too.data(), m.card.data(), 1 << 20, cudaMemcpyDefault); });
  returns("cudaMemset of 1 MiB on the card", "returns", [&] { return cudaMemset(m.card.data(), 1, 1 << 20); });
  returns("cudaMemset of 1 MiB of pinned memory", "waits, or returns",
          [&] { return cudaMemset(m.pinned.data(), 1, 1 << 20); });
  TRANSHIP_CUDA(cudaStreamDestroy(blocking));
}

void held_memsets(Memory& m) {
  const Stream stream;
  const auto one = [&](const std::string& what, const std::string& expectation, Word* at, bool is_host) {
    if (is_host) std::memset(at, 0xa5, 4096);
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    const Gate gate(stream, held_s);
    const cudaError_t status = cudaMemsetAsync(at, 0x5a, 4096, stream);
    const bool held = gate.holds();
    std::string value = at_return(held);
    if (is_host) value += *reinterpret_cast<const volatile unsigned char*>(at) == 0x5a ? "; done at its return" : "";
    gate.open();
    TRANSHIP_CUDA(cudaDeviceSynchronize());
    if (is_host && *reinterpret_cast<const volatile unsigned char*>(at) != 0x5a) value += "; never done";
    told("cudaMemsetAsync of 4 KiB " + what + ", stream held", status == cudaSuccess ? value : name_of(status),
         expectation);
  };
  one("on the card", "returns", m.card.data(), false);
  one("of pinned memory", "returns", m.pinned.data(), true);
  one("of pageable memory", "cudaErrorInvalidValue", m.pageable.data(), true);
}

/// Enqueues work on the default stream, and at once a kernel on a stream that does not wait for it.
void seen_by_another_stream(Memory& m, bool quick) {
  const Stream stream;
  CardArray<Word> others(1);
  const auto one = [&](const std::string& what, const std::string& expectation, std::size_t bytes, int rounds,
                       const auto& prepare, const auto& call) {
    const unsigned words = unsigned(bytes / sizeof(Word));
    int stale = 0;
    for (int round = 0; round < rounds; ++round) {
      const Word value = random_word(Word(round) + 1000);
      prepare(value, words);
      others.fill(0);
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      TRANSHIP_CUDA(call(bytes));
      TRANSHIP_CUDA(launch(stream, {32, 256}, count_other_words, m.card.data(), words, value, others.data()));
      TRANSHIP_CUDA(cudaDeviceSynchronize());
      stale += others.read()[0] != 0;
    }
    answer(what + " of " + size_name(bytes) + ", then at once a kernel on a non-blocking stream: kernels that miss it",
           std::to_string(stale), "of " + std::to_string(rounds) + "; expected: " + expectation);
  };
  const int rounds = quick ? 10 : 200;
  for (const std::size_t bytes : {std::size_t(8), std::size_t(4) << 10, std::size_t(64) << 10, std::size_t(1) << 20}) {
    const int fewer = bytes > (64 << 10) ? rounds / 4 : rounds;
    one(
        "cudaMemcpy, pageable to card,", bytes <= (64 << 10) ? "some or none" : "none", bytes, fewer,
        [&](Word value, unsigned words) { write_words(m.pageable.data(), words, value); },
        [&](std::size_t n) { return cudaMemcpy(m.card.data(), m.pageable.data(), n, cudaMemcpyHostToDevice); });
    one(
        "cudaMemcpy, pinned to card,", "none", bytes, fewer,
        [&](Word value, unsigned words) { write_words(m.pinned.data(), words, value); },
        [&](std::size_t n) { return cudaMemcpy(m.card.data(), m.pinned.data(), n, cudaMemcpyHostToDevice); });
  }
  for (const std::size_t bytes : {std::size_t(4) << 10, std::size_t(16) << 20})
    one(
        "cudaMemcpy, card to card,", "some or all", bytes, rounds / 4,
        [&](Word value, unsigned words) {
          TRANSHIP_CUDA(launch(nullptr, {256, 256}, put_words, m.card_too.data(), words, value));
        },
        [&](std::size_t n) { return cudaMemcpy(m.card.data(), m.card_too.data(), n, cudaMemcpyDeviceToDevice); });
}

void overlaps(Memory& m) {
  const Stream stream;
  for (const bool is_up : {true, false}) {
    for (const std::size_t bytes : {std::size_t(4) << 10, std::size_t(1) << 20, std::size_t(8) << 20}) {
      std::string value;
      for (const std::size_t shift : {std::size_t(8), std::size_t(1024), bytes / 2}) {
        std::vector<Word> wanted((bytes + shift) / sizeof(Word)), seen;
        write_words(wanted.data(), wanted.size(), random_word(shift));
        TRANSHIP_CUDA(cudaMemcpy(m.card.data(), wanted.data(), bytes + shift, cudaMemcpyHostToDevice));
        TRANSHIP_CUDA(cudaDeviceSynchronize());
        Word* const low = m.card.data();
        Word* const high = low + shift / sizeof(Word);
        const cudaError_t status =
            cudaMemcpyAsync(is_up ? high : low, is_up ? low : high, bytes, cudaMemcpyDeviceToDevice, stream);
        TRANSHIP_CUDA(cudaDeviceSynchronize());
        read_back(seen, m.card.data(), bytes + shift);
        std::memmove(wanted.data() + (is_up ? shift / sizeof(Word) : 0),
                     wanted.data() + (is_up ? 0 : shift / sizeof(Word)), bytes);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < wanted.size(); ++i) wrong += wanted[i] != seen[i];
        value += (value.empty() ? "by " : "; by ") + size_name(shift) + ": ";
        value += status != cudaSuccess ? name_of(status)
                 : wrong == 0          ? "as memmove"
                              : std::to_string(wrong) + " of " + std::to_string(wanted.size()) + " words wrong";
      }
      told("cudaMemcpyAsync of " + size_name(bytes) + " on the card onto itself, moved " + (is_up ? "up" : "down"),
           value, "undefined, so wrong words at some size");
    }
  }
}

}  // namespace

void ask_copies(const Options& options) {
  Memory memory;
  // The first use of each path may initialise the driver.
  TRANSHIP_CUDA(cudaMemcpy(memory.card.data(), memory.pageable.data(), bytes_max, cudaMemcpyHostToDevice));
  TRANSHIP_CUDA(cudaMemcpy(memory.pageable.data(), memory.card.data(), bytes_max, cudaMemcpyDeviceToHost));
  TRANSHIP_CUDA(cudaMemcpy(memory.card_too.data(), memory.card.data(), bytes_max, cudaMemcpyDeviceToDevice));
  TRANSHIP_CUDA(cudaMemset(memory.card.data(), 1, bytes_max));
  TRANSHIP_CUDA(cudaDeviceSynchronize());
  held_copies(memory);
  held_default_stream(memory);
  seen_by_another_stream(memory, options.quick());
  overlaps(memory);
  held_memsets(memory);
}

}  // namespace tranship::device
