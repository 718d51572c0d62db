// Instantiates the kernels of collective_cases.hpp for reductions of all other types.
#include "lanes/card_cases.hpp"
#include "lanes/collective_cases.hpp"

namespace tranship::device {

void add_wide_reduction_kernels(Kernels& to) {
  KernelsOf<WideReductionCases>::add(to);
}

}  // namespace tranship::device
