// What the programs of this room share on the host: options of the command line, a clock, and questions to the card.
#pragma once

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

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
  /// Few rounds and small arrays, for a run under compute-sanitizer.
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

/// Microseconds of the host that `work` takes, after two times that do not count; `settle` follows each, untimed.
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

/// A stream that the default stream does not wait for.
inline cudaStream_t new_stream() {
  cudaStream_t stream;
  TRANSHIP_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

/// Words that host and card both see, at one address.
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
