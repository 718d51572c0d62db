// Private: numbers and names of NVSHMEM, and what the library calls them. All throw `invalid_use` for others.
#pragma once

#include <string_view>

#include <tranship/base/reduction.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// NVSHMEM_SIGNAL_SET and NVSHMEM_SIGNAL_ADD.
SignalOp shmem_signal_op(int number);
/// NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE.
Comparison shmem_comparison(int number);
/// "sum", "prod", "and".
Reduction shmem_reduction(std::string_view name);
/// In the order of Reduction.
inline constexpr const char* shmem_reduction_names[] = {"sum", "prod", "min", "max", "and", "or", "xor"};

}  // namespace tranship
