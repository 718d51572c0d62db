// Detail: Deadlines, points in monotonic time. Every wait in tranship takes one.
#pragma once

#include <cstdint>

namespace tranship {

/// Nanoseconds of the monotonic clock.
std::int64_t now_ns() noexcept;

class Deadline {
 public:
  /// `timeout_ns` from now; a timeout that is zero or less has passed already.
  static Deadline after_ns(std::int64_t timeout_ns) noexcept;
  static Deadline after_seconds(double seconds) noexcept { return after_ns(static_cast<std::int64_t>(seconds * 1e9)); }
  /// Never passes. Only on explicit request of a user.
  static Deadline never() noexcept { return Deadline(INT64_MAX); }

  bool passed() const noexcept { return at_ns_ != INT64_MAX && now_ns() >= at_ns_; }
  std::int64_t remaining_ns() const noexcept;
  std::int64_t at_ns() const noexcept { return at_ns_; }

 private:
  explicit Deadline(std::int64_t at_ns) noexcept : at_ns_(at_ns) {}
  std::int64_t at_ns_;
};

}  // namespace tranship
