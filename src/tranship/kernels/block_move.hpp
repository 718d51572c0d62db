// Detail: BlockMove, a strided move between two bases that are named by number, so that a list of moves serves any
// memory. Streams of devices (memory/device/stream.hpp) take such lists.
#pragma once

#include <tranship/kernels/arithmetic.hpp>
#include <tranship/kernels/copy_block.hpp>

namespace tranship {

/// Element (i0, i1, ...) of `block` goes from base number `source_base` plus `source_offset` bytes to base number
/// `target_base` plus `target_offset` bytes. An element that is copied may have any width; one that is negated or
/// combined with the target has the width of its `arithmetic`, and a complex number is two such elements.
struct BlockMove {
  unsigned source_base = 0;
  long long source_offset = 0;
  unsigned target_base = 0;
  long long target_offset = 0;
  CopyBlock block;
  int width = 1;
  ElementMap map = ElementMap::copy;
  Arithmetic arithmetic = Arithmetic::none;  ///< none for a copy
};

}  // namespace tranship
