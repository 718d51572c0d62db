// Makes pieces of memory for the questions about mapping. Read next: mapping.cpp, mapping_faults.cpp.
#pragma once

#include "facts/driver.hpp"
#include "facts/semantics/tools.hpp"

namespace tranship::device {

inline std::size_t chunk_bytes() {
  return std::max<std::size_t>(Physical::granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED), 2 << 20);
}
inline Physical created(Physical::Sharing sharing) {
  Physical out;
  out.bytes = chunk_bytes();
  const CUmemAllocationProp properties = Physical::properties(sharing);
  TRANSHIP_DRIVER(cuMemCreate(&out.handle, out.bytes, &properties, 0));
  return out;
}
inline Word* words_at(CUdeviceptr at) {
  return reinterpret_cast<Word*>(at);
}

}  // namespace tranship::device
