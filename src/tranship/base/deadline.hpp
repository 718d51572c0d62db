// Detail: Deadline, a point in monotonic time. Every wait in tranship takes one.
#pragma once

#include <cstdint>

namespace tranship {

/// Returns the time of the monotonic clock in nanoseconds.
std::int64_t now_ns() noexcept;

class Deadline {
 public:
  /// Returns the time `timeout_ns` from now. A timeout of zero or less has already passed; one that overflows never
  /// passes.
  static Deadline after_ns(std::int64_t timeout_ns) noexcept;
  static Deadline after_seconds(double seconds) noexcept { return after_ns(static_cast<std::int64_t>(seconds * 1e9)); }
  /// Never passes. Use it only where a user asks for it.
  static Deadline never() noexcept { return Deadline(INT64_MAX); }

  bool passed() const noexcept { return at_ns_ != INT64_MAX && now_ns() >= at_ns_; }
  std::int64_t remaining_ns() const noexcept;
  std::int64_t at_ns() const noexcept { return at_ns_; }

 private:
  explicit Deadline(std::int64_t at_ns) noexcept : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

}  // namespace tranship
