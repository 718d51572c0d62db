// Private: how long launches of a program take on the ranks of a world.
#pragma once

#include <cstdint>
#include <vector>

#include <tranship/base/function_ref.hpp>
#include <tranship/fabric/world.hpp>

namespace tranship {

class LaunchTimer {
 public:
  /// Collective.
  explicit LaunchTimer(World& world);

  /// Collective: what one launch takes, from when all ranks are ready for it. A launch takes as long as its slowest
  /// rank; all ranks return the same, once all have ended.
  std::int64_t time_ns(FunctionRef<void()> launch);

 private:
  World& world_;
  SymmetricArray<std::int64_t> times_;  ///< of each rank
};

/// Of at least one time; of an even number the later one of the two in the middle.
std::int64_t median_of(std::vector<std::int64_t> times);

}  // namespace tranship
