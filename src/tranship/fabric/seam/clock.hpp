// Private: Clock, how a rank passes the time while it waits.
#pragma once

#include <cstdint>

#include <tranship/base/deadline.hpp>

namespace tranship {

/// For how long a rank stays with each way of waiting, from the first look on.
struct Patience {
  int spin_rounds = 0;       ///< looks one after the other, with nothing between them
  std::int64_t spin_ns = 0;  ///< then: looks with pauses, of which so many come before each call of idle()
  int pauses = 20;
  int unseen_rounds = 0;     ///< then: calls of idle() before the wait shows on the board and looks for failures
  std::int64_t poll_ns = 0;  ///< a rank that polls looks for failures and deadlines about so often
  int polls_per_look = 0;    ///< where it is not 0: after so many polls instead
};

class Clock {
 public:
  explicit Clock(const Patience& patience) : patience_(patience) {}
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  const Patience& patience() const noexcept { return patience_; }
  /// Gives the core away; `round` counts from 0 within one wait. Returns within a millisecond or so; with hundreds of
  /// ranks on a core within some tens.
  virtual void idle(int round) = 0;
  /// Returns true when the deadline has passed, in the time of this back-end.
  virtual bool passed(Deadline deadline) { return deadline.passed(); }

 private:
  Patience patience_;
};

}  // namespace tranship
