// Bytes that follow from where they lie, and the count of moved bytes that are not what their source has: the check for
// moves that are too large to bring home. It goes by the definition of a CopyBlock, cell by cell.
#pragma once

#include <tranship/kernels/copy_block.hpp>

#include "support/card.hpp"

namespace tranship::device {

/// Makes byte i of `data` what the pattern has at position `i`. `data` is aligned to 8 bytes.
void fill_pattern(unsigned char* data, long long bytes, cudaStream_t stream);

/// The cells of a block of at most 4 dimensions whose target differs from the pattern at `source_position` and on.
long long wrong_cells(const CopyBlock& block, int width, long long source_position, const unsigned char* target,
                      cudaStream_t stream);

/// The bytes of a range that are not `value`.
long long wrong_bytes(const unsigned char* data, long long bytes, unsigned char value, cudaStream_t stream);

/// Reads so much that nothing else stays in the second-level cache, without leaving anything to write back.
void read_all(const unsigned char* data, long long bytes, cudaStream_t stream);

/// Keeps the stream busy for so long, at most 2 s, so that what comes next is queued before it starts.
void delay(unsigned microseconds, cudaStream_t stream);

void empty_launch(cudaStream_t stream);

}  // namespace tranship::device
