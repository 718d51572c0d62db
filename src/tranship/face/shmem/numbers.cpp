#include "tranship/face/shmem/numbers.hpp"

#include <iterator>

#include <tranship/base/fail.hpp>

namespace tranship {

SignalOp shmem_signal_op(int number) {
  if (number == 9) return SignalOp::set;
  if (number == 10) return SignalOp::add;
  throw_error(ErrorCode::invalid_use, "signal operation {}: needs SIGNAL_SET (9) or SIGNAL_ADD (10)", number);
}

Comparison shmem_comparison(int number) {
  if (number < 0 || number > int(Comparison::greater_equal))
    throw_error(ErrorCode::invalid_use, "comparison {}: needs CMP_EQ (0) to CMP_GE (5)", number);
  return static_cast<Comparison>(number);
}

Reduction shmem_reduction(std::string_view name) {
  for (std::size_t i = 0; i < std::size(shmem_reduction_names); ++i)
    if (name == shmem_reduction_names[i]) return static_cast<Reduction>(i);
  throw_error(ErrorCode::invalid_use, "reduction '{}': needs one of sum, prod, min, max, and, or, xor", name);
}

}  // namespace tranship
