// Private: SharedClock, that of ranks which share the cores of a machine.
#pragma once

#include <tranship/fabric/seam/clock.hpp>

namespace tranship {

class SharedClock : public Clock {
 public:
  SharedClock(int ranks, int cores);

  void idle(int round) override;

 private:
  int ranks_per_core_;
};

}  // namespace tranship
