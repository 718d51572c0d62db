#include "tranship/fabric/symmetric.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

namespace detail {

void refuse_slice(Index first, Index count, Index size) {
  throw_error(ErrorCode::invalid_use, "a slice of {} {} from element {} on leaves a symmetric object of {}", count,
              plural(count, "element"), first, size);
}

}  // namespace detail

std::size_t RegisteredMemory::offset_of(const void* first, Index count, std::size_t element_bytes) const {
  const auto from = reinterpret_cast<std::uintptr_t>(memory_);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(first) - from;
  if (count < 0 || offset > size_bytes_ || std::size_t(count) > (size_bytes_ - offset) / element_bytes)
    throw_error(ErrorCode::invalid_use, "{} of {} at {} do not lie in the {} registered at {}",
                amount(count, "element"), amount(element_bytes, "byte"), first, amount(size_bytes_, "byte"),
                static_cast<const void*>(memory_));
  return offset;
}

}  // namespace tranship
