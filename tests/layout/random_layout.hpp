// Random layouts with every memory layout and element type, on top of support/random_layouts.hpp.
#pragma once

#include <support/random_layouts.hpp>

namespace tranship::test {

inline MemoryLayout random_full_memory(Random& random, int dims) {
  MemoryLayout out = random_memory(random, dims);
  if (random.one_in(3)) {
    // Far enough apart for any local array of random_extents with its overlaps.
    out = {.offset = out.offset};
    Index stride = random.between(1, 3);
    for (int d = 0; d < dims; ++d, stride *= random.between(600, 700)) out.strides.push_back(stride);
  } else if (random.one_in(2)) {
    for (int d = 0; d < dims; ++d) out.spacing.push_back(random.between(1, 3));
  }
  return out;
}

inline ArraySpec random_spec(std::uint64_t seed, int dims_most = 4) {
  Random random(seed);
  const int dims = static_cast<int>(random.between(1, dims_most));
  const Distribution d = random_distribution(random, random_extents(random, dims));
  std::vector<Partition> partitions;
  for (int i = 0; i < dims; ++i) partitions.push_back(d.axis(i).partition());
  MemoryLayout memory = random_full_memory(random, dims);
  const ElementType type = random.pick<ElementType>(
      {ElementType::u8, ElementType::bf16, ElementType::f64, ElementType::c64, ElementType::c128, ElementType::c256});
  if (is_complex(type) && random.one_in(2)) memory.parts = ComplexParts::split;
  return {type, Distribution(d.extents(), d.grid(), std::move(partitions), std::move(memory))};
}

}  // namespace tranship::test
