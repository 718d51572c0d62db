// Declares the parts of device_packing; packing.cu lists its options.
#pragma once

#include <cstdint>

#include "support/card.hpp"

namespace tranship::device {

struct PackingOptions {
  int lists = 3000;
  std::uint64_t seed = 1;
  bool is_broken = false;
  bool has_large = true;  ///< moves of more than 2^31 bytes, and figures
};

/// Owns two arenas of the card; all bytes of the sources hold the pattern (card_pattern.hpp).
struct CardArenas {
  unsigned char* sources = nullptr;
  unsigned char* targets = nullptr;
  long long bytes = 0;  ///< size of each
};

void check_random_lists(const PackingOptions& options, cudaStream_t stream);
void check_large_lists(const CardArenas& arenas, cudaStream_t stream);
void measure_shapes(const CardArenas& arenas, cudaStream_t stream);
void measure_ndsl(const CardArenas& arenas, cudaStream_t stream);

}  // namespace tranship::device
