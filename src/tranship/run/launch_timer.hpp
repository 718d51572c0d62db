// Private: LaunchTimer measures launches of a program on the ranks of a world.
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

  /// Collective: the time of one launch that begins when all ranks are ready. It is the time of the slowest rank, and
  /// all ranks return the same.
  std::int64_t time_ns(FunctionRef<void()> launch);

 private:
  World& world_;
  SymmetricArray<std::int64_t> times_;  ///< by rank
};

/// Takes at least one time; for an even number, returns the later one of the two in the middle.
std::int64_t median_of(std::vector<std::int64_t> times);

}  // namespace tranship
