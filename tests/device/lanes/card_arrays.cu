// Instantiates the kernels of array_cases.hpp.
#include "lanes/array_cases.hpp"
#include "lanes/card_cases.hpp"

namespace tranship::device {

void add_array_kernels(Kernels& to) {
  KernelsOf<ArrayCases>::add(to);
}
void add_memory_kernels(Kernels& to) {
  KernelsOf<MemoryCases>::add(to);
}

}  // namespace tranship::device
