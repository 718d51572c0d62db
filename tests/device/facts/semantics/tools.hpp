// Gives the questions about CUDA's semantics their tools: a kernel that holds a stream until the host opens it, words
// that show that something has run, and launches from plain C++. Every wait of the host is bounded. Read next:
// cases.hpp.
#pragma once

#include <functional>
#include <tuple>

#include <unistd.h>

#include "facts/options.hpp"
#include "facts/semantics/kernels.hpp"

namespace tranship::device {

struct Grid {
  unsigned blocks = 1, threads = 1;
  std::size_t shared_bytes = 0;
};

template <class... P, class... A>
cudaError_t launch(cudaStream_t stream, Grid grid, void (*kernel)(P...), A... arguments) {
  std::tuple<P...> values(static_cast<P>(arguments)...);
  return std::apply(
      [&](P&... each) {
        void* pointers[] = {static_cast<void*>(&each)..., nullptr};
        return cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(grid.blocks), dim3(grid.threads), pointers,
                                grid.shared_bytes, stream);
      },
      values);
}
template <class... P>
const void* symbol(void (*kernel)(P...)) {
  return reinterpret_cast<const void*>(kernel);
}

/// Returns the name of a status, and clears the last error.
inline std::string name_of(cudaError_t status) {
  cudaGetLastError();
  return cudaGetErrorName(status);
}

/// Reports an answer by yes or no, with what is expected.
inline void said(const std::string& question, bool is_so, const std::string& expectation,
                 const std::string& detail = {}) {
  answer(question, is_so ? "yes" : "no", (detail.empty() ? "" : detail + "; ") + "expected: " + expectation);
}
inline void told(const std::string& question, const std::string& value, const std::string& expectation) {
  answer(question, value, "expected: " + expectation);
}
inline std::string us_text(double us) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f us", us);
  return text;
}

inline Word now_in(const Word* at) {
  return *static_cast<const volatile Word*>(at);
}
/// Waits until `at` holds a value that is not 0.
inline bool comes(const Word* at, double limit_ms = 1000) {
  for (const double limit = now_us() + limit_ms * 1e3; now_us() < limit;)
    if (now_in(at) != 0) return true;
  return now_in(at) != 0;
}
/// The work that could set the word takes a thousandth of 5 ms.
inline bool stays_away(const Word* at) {
  return !comes(at, 5);
}

/// Hands out words in pinned memory, each for one kernel to set. They last as long as the process, because freeing them
/// waits for the card.
class Marks {
 public:
  /// Returns a word that is 0 and that no other caller has.
  static Word* next();
};

/// Holds up a stream by a kernel until `open`, or until the kernel gives up.
class Gate {
 public:
  enum class Start { awaited, not_awaited };
  explicit Gate(cudaStream_t stream, double limit_s = 0.2, Start start = Start::awaited);
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  ~Gate() { open(); }

  bool has_started() const { return now_in(levers_->started) != 0; }
  bool holds() const { return now_in(levers_->ended) == 0; }
  /// Returns 0 at first, 1 when it was opened, and 2 when it gave up.
  Word ended() const { return now_in(levers_->ended); }
  void open() const { *static_cast<volatile Word*>(levers_->stop) = 1; }

 private:
  Levers* levers_;
};

/// Owns a stream, which is destroyed with the object.
class Stream {
 public:
  Stream() : stream_(new_stream()) {}
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }  // NOLINT: the conversion is intended

 private:
  cudaStream_t stream_;
};
class Event {
 public:
  explicit Event(unsigned flags = cudaEventDefault) { TRANSHIP_CUDA(cudaEventCreateWithFlags(&event_, flags)); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }  // NOLINT: the conversion is intended

 private:
  cudaEvent_t event_ = nullptr;
};

/// Returns random words: word i is value + i for a scrambled value.
inline Word random_word(Word x) {
  x = (x + 1) * 0x9fb21c651e98df25ull;
  x = (x ^ (x >> 29)) * 0xd6e8feb86659fd93ull;
  return x ^ (x >> 32);
}
inline void write_words(Word* to, std::size_t words, Word value) {
  for (std::size_t i = 0; i < words; ++i) to[i] = value + i;
}
inline std::size_t count_words(const Word* at, std::size_t words, Word value) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < words; ++i) out += at[i] == value + i;
  return out;
}
std::string size_name(std::size_t bytes);

/// Runs this program again for one case. Returns its exit status, 128 or more for a signal, and -1 when it was killed.
int run_case(const char* name, bool quick, double limit_s, int first = 0);

}  // namespace tranship::device
