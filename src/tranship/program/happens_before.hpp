// Private: happens-before by vector clocks (base/times.hpp), in two orders. An action that is before another one in the
// `strong` order is also visible to it. In the `weak` order it has only been executed, which suffices to overwrite what
// it has read.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <tranship/base/index.hpp>
#include <tranship/base/times.hpp>

namespace tranship {

/// The knowledge that one timeline has of all others.
struct VectorClock {
  Times strong, weak;
};

/// The content of a signal: all that its timeline knew, and the timeline's own actions up to a time.
struct Snapshot {
  VectorClock known;
  Timeline timeline = -1;
  Time strong_time = 0, weak_time = 0;
  Times begun;  ///< what it knew strongly when its launch began: all that a relaxed wait learns strongly
};

inline void join(VectorClock& clock, const Snapshot& snapshot, Index& work) {
  clock.strong.join(snapshot.known.strong, work);
  clock.weak.join(snapshot.known.weak, work);
  clock.strong.raise(snapshot.timeline, snapshot.strong_time);
  clock.weak.raise(snapshot.timeline, snapshot.weak_time);
}

/// The combined knowledge of `snapshot_of(begin)` to `snapshot_of(end - 1)`. Joins halves, because joining one after
/// the other would compare each with everything added before.
template <class SnapshotOf>
VectorClock joint_clock(Index begin, Index end, SnapshotOf&& snapshot_of, Index& work) {
  VectorClock out;
  if (end - begin == 1) {
    join(out, snapshot_of(begin), work);
  } else if (begin < end) {
    const Index middle = begin + (end - begin) / 2;
    out = joint_clock(begin, middle, snapshot_of, work);
    const VectorClock other = joint_clock(middle, end, snapshot_of, work);
    out.strong.join(other.strong, work);
    out.weak.join(other.weak, work);
  }
  return out;
}

/// The knowledge of a timeline, and what it will learn when its threads meet.
class Knowledge {
 public:
  const VectorClock& clock() const noexcept { return clock_; }
  bool knows_strongly(Timeline timeline, Time time) const noexcept { return clock_.strong.of(timeline) > time; }
  bool knows_weakly(Timeline timeline, Time time) const noexcept { return clock_.weak.of(timeline) > time; }

  void learn_later(Snapshot snapshot) { pending_.push_back(std::move(snapshot)); }
  void learn_now(const Snapshot& snapshot, Index& work) { join(clock_, snapshot, work); }
  void learn(Index& work) {
    if (pending_.empty()) return;
    const VectorClock news = joint_clock(
        0, static_cast<Index>(pending_.size()),
        [&](Index i) -> const Snapshot& { return pending_[static_cast<std::size_t>(i)]; }, work);
    clock_.strong.join(news.strong, work);
    clock_.weak.join(news.weak, work);
    pending_.clear();
  }
  void reset(VectorClock clock) {
    pending_.clear();
    clock_ = std::move(clock);
  }

 private:
  VectorClock clock_;
  std::vector<Snapshot> pending_;
};

}  // namespace tranship
