#include "tranship/fabric/shared/shared_clock.hpp"

#include <algorithm>
#include <cstdint>

#include <time.h>

#include <tranship/base/sync.hpp>

namespace tranship {
namespace {

/// A rank with a core of its own may spin for longer than a large message takes. With more ranks than cores, a spinning
/// rank keeps the rank that it waits for from running.
constexpr Patience with_cores{.spin_rounds = 1000, .spin_ns = 200'000, .poll_ns = 20'000};
constexpr Patience without_cores{.spin_rounds = 10, .unseen_rounds = 20, .poll_ns = 5'000};

}  // namespace

Patience SharedClock::patience_of(int ranks, int cores) {
  return ranks <= cores ? with_cores : without_cores;
}

SharedClock::SharedClock(int ranks, int cores, const Patience& patience)
    : Clock(patience), ranks_per_core_(std::max(1, ranks / std::max(1, cores))) {}

void SharedClock::idle(int round) {
  // Yielding is much faster than a futex when many ranks share a core and all continue soon. A rank sleeps only when
  // yielding has not helped for long: then another rank computes, and yielding would take half its core. With hundreds
  // of ranks per core, one yield lets all of them look, and waking all of them every millisecond takes more time than
  // the core has; naps are so long that looking costs a tenth of it.
  const int yields = std::clamp(6400 / ranks_per_core_, 10, 200);
  constexpr std::int64_t sleep_ns_min = 20'000, look_ns = 5'000;
  const std::int64_t sleep_ns_max = std::max<std::int64_t>(1'000'000, 10 * look_ns * ranks_per_core_);
  if (round < yields) return RealSync::yield();
  const int doublings = std::min((round - yields) / 4, 20);
  const std::int64_t nap_ns = std::min(sleep_ns_min << doublings, sleep_ns_max);
  const timespec nap = {nap_ns / 1'000'000'000, nap_ns % 1'000'000'000};
  nanosleep(&nap, nullptr);
}

}  // namespace tranship
