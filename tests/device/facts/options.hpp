// Gives the programs of this folder what they share on the host: options of the command line, a clock, and questions to
// the card.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include "support/card.hpp"

namespace tranship::device {

/// Options are words like --quick, and pairs like --case NAME.
class Options {
 public:
  Options(int count, char** words) : count_(count), words_(words) {}

  bool has(const char* option) const { return find(option) != 0; }
  std::string text(const char* option, const std::string& otherwise) const {
    const int at = find(option);
    return at != 0 && at + 1 < count_ ? words_[at + 1] : otherwise;
  }
  long long number(const char* option, long long otherwise) const {
    const std::string word = text(option, "");
    return word.empty() ? otherwise : std::strtoll(word.c_str(), nullptr, 10);
  }
  /// Asks for few rounds and small arrays, for a run under compute-sanitizer.
  bool quick() const { return has("--quick"); }

 private:
  int find(const char* option) const {
    for (int i = 1; i < count_; ++i)
      if (std::strcmp(words_[i], option) == 0) return i;
    return 0;
  }

  int count_;
  char** words_;
};

inline double now_us() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::micro>(Clock::now().time_since_epoch()).count();
}

/// Returns the exit status of a child, 128 plus the number of the signal that ended it, or -1 when it had to be killed
/// after `limit_s`. The status of a child that could not be started (-1) is 3.
inline int status_of(pid_t child, double limit_s) {
  if (child < 0) return 3;
  const double limit = now_us() + limit_s * 1e6;
  bool is_late = false;
  while (now_us() < limit + 3e6) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child)
      return is_late ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    if (!is_late && now_us() > limit) {
      kill(child, SIGKILL);
      is_late = true;
    }
    usleep(1000);
  }
  return -1;
}

/// Measures `work` in microseconds of the host, after two runs that do not count; `settle` follows each run, untimed.
template <class Work, class Settle>
Samples host_us(int rounds, const Work& work, const Settle& settle) {
  Samples out;
  for (int round = -2; round < rounds; ++round) {
    const double begin = now_us();
    work();
    const double end = now_us();
    settle();
    if (round >= 0) out.values.push_back(end - begin);
  }
  return out;
}

inline int attribute(cudaDeviceAttr which) {
  int value = 0;
  TRANSHIP_CUDA(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}
inline int multiprocessors() {
  return attribute(cudaDevAttrMultiProcessorCount);
}
inline bool is_hopper_or_later() {
  return attribute(cudaDevAttrComputeCapabilityMajor) >= 9;
}

/// Makes a stream that the default stream does not wait for.
inline cudaStream_t new_stream() {
  cudaStream_t stream;
  TRANSHIP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Holds words that host and card both see, at one address.
template <class T>
class PinnedArray {
 public:
  explicit PinnedArray(std::size_t count) {
    TRANSHIP_CUDA(cudaHostAlloc(&data_, count * sizeof(T), cudaHostAllocPortable | cudaHostAllocMapped));
    std::memset(static_cast<void*>(data_), 0, count * sizeof(T));
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;
  ~PinnedArray() { cudaFreeHost(data_); }

  T* data() const { return data_; }
  T& operator[](std::size_t i) const { return data_[i]; }

 private:
  T* data_ = nullptr;
};

}  // namespace tranship::device
