#include "tranship/run/launch_timer.hpp"

#include <algorithm>
#include <iterator>

#include <tranship/base/deadline.hpp>
#include <tranship/fabric/context.hpp>

namespace tranship {

LaunchTimer::LaunchTimer(World& world) : world_(world), times_(world.allocate<std::int64_t>(world.size())) {}

std::int64_t LaunchTimer::time_ns(FunctionRef<void()> launch) {
  // Ranks that have waited for long are asleep and leave a barrier late; the second barrier finds all of them awake.
  world_.barrier();
  world_.barrier();
  const std::int64_t begin_ns = now_ns();
  launch();
  const std::int64_t own_ns = now_ns() - begin_ns;
  for (Rank peer = 0; peer < world_.size(); ++peer) world_.context().set(times_.slice(world_.rank(), 1), own_ns, peer);
  world_.barrier();
  const std::int64_t longest_ns = *std::max_element(times_.local(), times_.local() + world_.size());
  world_.barrier();
  return longest_ns;
}

std::int64_t median_of(std::vector<std::int64_t> times) {
  const auto middle = times.begin() + std::ssize(times) / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace tranship
