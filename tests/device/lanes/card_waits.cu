// Instantiates the kernels of wait_cases.hpp for waits and tests.
#include "lanes/card_cases.hpp"
#include "lanes/wait_cases.hpp"

namespace tranship::device {

void add_wait_kernels(Kernels& to) {
  KernelsOf<WaitCases>::add(to);
}

}  // namespace tranship::device
