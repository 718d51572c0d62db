// Instantiates the kernels of wait_cases.hpp for atomics.
#include "lanes/card_cases.hpp"
#include "lanes/wait_cases.hpp"

namespace tranship::device {

void add_atomic_kernels(Kernels& to) {
  KernelsOf<AtomicCases>::add(to);
}

}  // namespace tranship::device
