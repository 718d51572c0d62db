#include "tranship/base/deadline.hpp"

#include <chrono>

namespace tranship {

std::int64_t now_ns() noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Deadline Deadline::after_ns(std::int64_t timeout_ns) noexcept {
  std::int64_t at_ns;
  if (__builtin_add_overflow(now_ns(), timeout_ns, &at_ns)) return never();
  return Deadline(at_ns);
}

std::int64_t Deadline::remaining_ns() const noexcept {
  if (at_ns_ == INT64_MAX) return INT64_MAX;
  const std::int64_t left_ns = at_ns_ - now_ns();
  return left_ns > 0 ? left_ns : 0;
}

}  // namespace tranship
