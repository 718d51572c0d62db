// Private: Clock: how a rank passes the time while it waits.
#pragma once

#include <cstdint>

#include <tranship/base/deadline.hpp>

namespace tranship {

/// How long a rank waits in each way, in this order, from the first look on.
struct Patience {
  int spin_rounds = 0;       ///< looks in a row, with nothing between them
  std::int64_t spin_ns = 0;  ///< then looks with pauses, and idle() after every `pauses` looks
  int pauses = 20;
  int unseen_rounds = 0;     ///< then calls of idle() before the wait shows on the board and checks failures
  std::int64_t poll_ns = 0;  ///< interval at which a polling rank checks failures and deadlines
  int polls_per_look = 0;    ///< if not 0: it checks them after this number of polls instead
};

class Clock {
 public:
  explicit Clock(const Patience& patience) : patience_(patience) {}
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  const Patience& patience() const noexcept { return patience_; }
  /// Yields the core; `round` counts from 0 within one wait. Returns within about a millisecond, or tens of
  /// milliseconds with hundreds of ranks per core.
  virtual void idle(int round) = 0;
  /// Returns true when the deadline has passed, by the clock of this back-end.
  virtual bool passed(Deadline deadline) { return deadline.passed(); }

 private:
  Patience patience_;
};

}  // namespace tranship
