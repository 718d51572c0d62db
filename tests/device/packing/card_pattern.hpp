// Generates bytes that follow from their position, and counts moved bytes that differ from their source. This checks
// moves that are too large to copy to the host. It goes by the definition of a CopyBlock, cell by cell.
#pragma once

#include <tranship/kernels/copy_block.hpp>

#include "support/card.hpp"

namespace tranship::device {

/// Sets byte i of `data` to the pattern at position `i`. `data` is aligned to 8 bytes.
void fill_pattern(unsigned char* data, long long bytes, cudaStream_t stream);

/// Counts the cells of a block of at most 4 dimensions whose target differs from the pattern from `source_position` on.
long long wrong_cells(const CopyBlock& block, int width, long long source_position, const unsigned char* target,
                      cudaStream_t stream);

/// Counts the bytes of a range that are not `value`.
long long wrong_bytes(const unsigned char* data, long long bytes, unsigned char value, cudaStream_t stream);

/// Reads enough memory to evict everything else from the second-level cache, and leaves nothing to write back.
void read_all(const unsigned char* data, long long bytes, cudaStream_t stream);

/// Keeps the stream busy for `microseconds`, at most 2 s, so that later work is queued before it starts.
void delay(unsigned microseconds, cudaStream_t stream);

void empty_launch(cudaStream_t stream);

}  // namespace tranship::device
