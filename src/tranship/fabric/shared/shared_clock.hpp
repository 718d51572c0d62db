// Private: SharedClock: the clock of ranks that share the cores of a machine.
#pragma once

#include <tranship/fabric/seam/clock.hpp>

namespace tranship {

class SharedClock : public Clock {
 public:
  SharedClock(int ranks, int cores) : SharedClock(ranks, cores, patience_of(ranks, cores)) {}

  void idle(int round) override;

 protected:
  SharedClock(int ranks, int cores, const Patience& patience);
  static Patience patience_of(int ranks, int cores);

 private:
  int ranks_per_core_;
};

}  // namespace tranship
