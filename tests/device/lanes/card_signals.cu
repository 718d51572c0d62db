// Instantiates the kernels of transfer_cases.hpp for elements, signals and rings.
#include "lanes/card_cases.hpp"
#include "lanes/transfer_cases.hpp"

namespace tranship::device {

void add_signal_kernels(Kernels& to) {
  KernelsOf<SignalCases>::add(to);
}

}  // namespace tranship::device
