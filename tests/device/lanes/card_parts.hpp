// What a Card holds. Private to the .cu files.
#pragma once

#include <cuda_runtime.h>

#include "lanes/card.hpp"

namespace tranship::device {

/// One stream each. More of them than a device has queues for by default would wait for each other.
inline constexpr int card_ranks_max = 8;

struct Card::Parts {
  cudaStream_t streams[card_ranks_max] = {};
  unsigned char* heaps = nullptr;
  unsigned char* staging = nullptr;
};

}  // namespace tranship::device
