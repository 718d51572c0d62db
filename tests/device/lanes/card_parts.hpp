// Defines the parts of a Card. The header is private to the .cu files.
#pragma once

#include <cuda_runtime.h>

#include "lanes/arena.hpp"
#include "lanes/card.hpp"

namespace tranship::device {

struct Card::Parts {
  cudaStream_t streams[ranks_max] = {};
  unsigned char* heaps = nullptr;
  unsigned char* staging = nullptr;
  unsigned char** table = nullptr;
};

}  // namespace tranship::device
