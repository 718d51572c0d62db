#include "tranship/run/exchange_schedule.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/kernels/host/host_move.hpp>
#include <tranship/run/launch_timer.hpp>

namespace tranship {
namespace {

/// Messages with shorter contiguous runs are staged, so that the lines that cross between cores are full of elements,
/// instead of one line for every element (docs/copying.md).
constexpr Index direct_run_bytes_min = 32;
/// Smaller messages touch too few lines to be worth a second copy.
constexpr Index staged_message_bytes_min = 1024;

/// With more lines than this, they have left the caches near the sender, and are as far from it as from the receiver.
constexpr Index staged_caches_max = 8;
Index staged_lines_bytes_max() {
  return staged_caches_max * private_cache_bytes();
}

constexpr Schedule measured_schedules[] = {Schedule::automatic, Schedule::direct, Schedule::staged};

}  // namespace

const char* name_of(Schedule schedule) {
  switch (schedule) {
    case Schedule::automatic:
      return "automatic";
    case Schedule::direct:
      return "direct";
    case Schedule::staged:
      return "staged";
    case Schedule::measured:
      break;
  }
  return "measured";
}

const char* name_of(Sources sources) {
  return sources == Sources::snapshot ? "a snapshot of what it sends" : "what it sends from its arrays";
}

bool is_staged(Schedule schedule, const ContiguousRuns& direct) {
  if (schedule != Schedule::automatic) return schedule == Schedule::staged;
  if (direct.bytes < staged_message_bytes_min) return false;
  return direct.bytes / direct.count < direct_run_bytes_min && direct.count * line_bytes <= staged_lines_bytes_max();
}

std::string automatic_rule() {
  return fmt::format(
      "chosen by message: staged from {} bytes on in contiguous runs of less than {} on average, while their lines "
      "have no more than {}, {} times a core's own cache\n",
      staged_message_bytes_min, direct_run_bytes_min, staged_lines_bytes_max(), staged_caches_max);
}

std::span<const Schedule> schedules_to_measure() noexcept {
  return measured_schedules;
}

std::int64_t time_ns(World& world, CallSite where, FunctionRef<void()> exchange) {
  constexpr int rounds = 7;
  std::vector<std::int64_t> times;
  for (int round = 0; round <= rounds; ++round) {
    world.barrier(where);
    const std::int64_t begin = now_ns();
    exchange();
    const auto later = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
    const std::int64_t slowest = world.team().reduce(now_ns() - begin, later, where);
    if (round > 0) times.push_back(slowest);  // the first round faults in its pages
  }
  return median_of(std::move(times));
}

}  // namespace tranship
