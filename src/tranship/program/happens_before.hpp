// Private: Happens-before by vector clocks. Whatever acts in an order of its own has a timeline: a thread block, the
// proxy of a port channel, the host of a rank. Its actions are numbered; a clock says for every timeline how many of
// its first actions came before.
//
// Two orders are kept. What came before in the `strong` one is also visible. In the `weak` one it has only been
// executed: enough to overwrite what it has read.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace tranship {

using Timeline = std::int32_t;
using Time = std::uint32_t;

struct Clock {
  std::vector<Time> strong, weak;

  explicit Clock(std::size_t timelines) : strong(timelines, 0), weak(timelines, 0) {}
};
using ClockPointer = std::shared_ptr<const Clock>;

/// What an timeline tells with a signal: all that it knew, and its own actions up to a time.
struct Snapshot {
  ClockPointer strong_of, weak_of;  ///< either may be null
  Timeline timeline = -1;
  Time strong_time = 0, weak_time = 0;
};

/// What an timeline knows, and what it will know when its threads have met.
class Knowledge {
 public:
  explicit Knowledge(ClockPointer clock) : clock_(std::move(clock)) {}

  const ClockPointer& clock() const noexcept { return clock_; }
  bool knows_strongly(Timeline timeline, Time time) const noexcept {
    return clock_->strong[std::size_t(timeline)] > time;
  }
  bool knows_weakly(Timeline timeline, Time time) const noexcept { return clock_->weak[std::size_t(timeline)] > time; }

  void learn_later(Snapshot snapshot) { pending_.push_back(std::move(snapshot)); }
  void learn_now(const Snapshot& snapshot) {
    auto next = std::make_shared<Clock>(*clock_);
    join(*next, snapshot);
    clock_ = std::move(next);
  }
  void learn() {
    if (pending_.empty()) return;
    auto next = std::make_shared<Clock>(*clock_);
    for (const Snapshot& snapshot : pending_) join(*next, snapshot);
    pending_.clear();
    clock_ = std::move(next);
  }
  void reset(ClockPointer clock) {
    pending_.clear();
    clock_ = std::move(clock);
  }

  static void join(Clock& clock, const Snapshot& snapshot) {
    if (snapshot.strong_of) join(clock.strong, snapshot.strong_of->strong);
    if (snapshot.weak_of) join(clock.weak, snapshot.weak_of->weak);
    const auto timeline = static_cast<std::size_t>(snapshot.timeline);
    clock.strong[timeline] = std::max(clock.strong[timeline], snapshot.strong_time);
    clock.weak[timeline] = std::max(clock.weak[timeline], snapshot.weak_time);
  }

 private:
  static void join(std::vector<Time>& into, const std::vector<Time>& from) {
    Time* const target = into.data();
    const Time* const source = from.data();
    const std::size_t count = into.size();
    for (std::size_t i = 0; i < count; ++i) target[i] = std::max(target[i], source[i]);
  }

  ClockPointer clock_;
  std::vector<Snapshot> pending_;
};

}  // namespace tranship
