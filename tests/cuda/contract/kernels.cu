// The kernels of the contract as a card runs them.
#include <tranship/cuda/card_lane.hpp>

#include "cuda/contract/kernels.hpp"

namespace tranship::contract {

#define TRANSHIP_CONTRACT_KERNEL(name, Args, shared)                                                      \
  extern "C" __global__ void __launch_bounds__(1024) contract_##name(const __grid_constant__ Args args) { \
    name(cuda::CardLane(), args);                                                                         \
  }
TRANSHIP_CONTRACT_KERNELS(TRANSHIP_CONTRACT_KERNEL)

}  // namespace tranship::contract
