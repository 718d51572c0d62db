// Wraps calls of the CUDA runtime so that a failure ends the program with a line that tells where; also times work on a
// stream.
#pragma once

#include <cstdlib>
#include <string>

#include <cuda_runtime.h>

#include "support/findings.hpp"

namespace tranship::device {

inline void must(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  fault(std::string(call) + ": " + cudaGetErrorString(status) + " (" + file + ":" + std::to_string(line) + ")");
  std::_Exit(3);
}
#define TRANSHIP_CUDA(call) ::tranship::device::must((call), #call, __FILE__, __LINE__)

/// Owns memory of the card, which is freed with the object.
template <class T>
class CardArray {
 public:
  explicit CardArray(std::size_t count) : count_(count) {
    TRANSHIP_CUDA(cudaMalloc(&data_, std::max<std::size_t>(count, 1) * sizeof(T)));
  }
  explicit CardArray(const std::vector<T>& from) : CardArray(from.size()) { write(from); }
  CardArray(const CardArray&) = delete;
  CardArray& operator=(const CardArray&) = delete;
  ~CardArray() { cudaFree(data_); }

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  // Both copies have completed when they return: a stream that does not wait for the default stream may be used next.
  void write(const std::vector<T>& from) {
    TRANSHIP_CUDA(cudaMemcpy(data_, from.data(), from.size() * sizeof(T), cudaMemcpyHostToDevice));
    TRANSHIP_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  }
  void fill(int byte) {
    TRANSHIP_CUDA(cudaMemset(data_, byte, count_ * sizeof(T)));
    TRANSHIP_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  }
  std::vector<T> read() const {
    std::vector<T> out(count_);
    TRANSHIP_CUDA(cudaMemcpy(out.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return out;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

/// Measures what `enqueue` puts into the stream, in microseconds of the card, `rounds` times after two that do not
/// count.
template <class F>
Samples card_us(cudaStream_t stream, int rounds, const F& enqueue) {
  cudaEvent_t begin, end;
  TRANSHIP_CUDA(cudaEventCreate(&begin));
  TRANSHIP_CUDA(cudaEventCreate(&end));
  Samples out;
  for (int round = -2; round < rounds; ++round) {
    TRANSHIP_CUDA(cudaEventRecord(begin, stream));
    enqueue();
    TRANSHIP_CUDA(cudaEventRecord(end, stream));
    TRANSHIP_CUDA(cudaEventSynchronize(end));
    float ms = 0;
    TRANSHIP_CUDA(cudaEventElapsedTime(&ms, begin, end));
    if (round >= 0) out.values.push_back(ms * 1e3);
  }
  TRANSHIP_CUDA(cudaGetLastError());
  TRANSHIP_CUDA(cudaEventDestroy(begin));
  TRANSHIP_CUDA(cudaEventDestroy(end));
  return out;
}

}  // namespace tranship::device
