// Kernels of collective_cases.hpp: reductions of all others.
#include "lanes/card_cases.hpp"
#include "lanes/collective_cases.hpp"

namespace tranship::device {

void add_wide_reduction_kernels(Kernels& to) {
  KernelsOf<WideReductionCases>::add(to);
}

}  // namespace tranship::device
