// Instantiates the kernels of collective_cases.hpp for reductions of integers of up to 32 bits.
#include "lanes/card_cases.hpp"
#include "lanes/collective_cases.hpp"

namespace tranship::device {

void add_reduction_kernels(Kernels& to) {
  KernelsOf<ReductionCases>::add(to);
}

}  // namespace tranship::device
