// Defines the parts of a Card. The header is private to the .cu files.
#pragma once

#include <string>

#include <cuda_runtime.h>

#include "lanes/arena.hpp"
#include "lanes/card.hpp"

namespace tranship::device {

struct Card::Parts {
  cudaStream_t streams[ranks_max] = {};
  unsigned char* heaps = nullptr;
  unsigned char* staging = nullptr;
  unsigned char** table = nullptr;
  /// Waits of all kernels give up under this guard.
  WaitGuard* guard = nullptr;
  WaitRecord* record = nullptr;

  /// Makes the guard ready for the next launch on the stream.
  void arm(cudaStream_t stream, unsigned long long limit_ns, bool traps = false);
  /// What a wait of the last launch has left; empty if none has given up. The launch has ended.
  std::string lost_wait() const;
};

}  // namespace tranship::device
