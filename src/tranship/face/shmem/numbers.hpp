// Private: translations of NVSHMEM's numbers and names to the library's types. All throw `invalid_use` for unknown
// ones.
#pragma once

#include <string_view>

#include <tranship/base/reduction.hpp>
#include <tranship/kernels/word.hpp>

namespace tranship {

/// Takes NVSHMEM_SIGNAL_SET or NVSHMEM_SIGNAL_ADD.
SignalOp shmem_signal_op(int number);
/// Takes NVSHMEM_CMP_EQ to NVSHMEM_CMP_GE.
Comparison shmem_comparison(int number);
/// Takes "sum", "prod", "and" and the other names below.
Reduction shmem_reduction(std::string_view name);
/// In the order of Reduction.
inline constexpr const char* shmem_reduction_names[] = {"sum", "prod", "min", "max", "and", "or", "xor"};

}  // namespace tranship
