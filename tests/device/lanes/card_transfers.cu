// Instantiates the kernels of transfer_cases.hpp for contiguous transfers.
#include "lanes/card_cases.hpp"
#include "lanes/transfer_cases.hpp"

namespace tranship::device {

void add_transfer_kernels(Kernels& to) {
  KernelsOf<TransferCases>::add(to);
}

}  // namespace tranship::device
