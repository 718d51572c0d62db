#include "tranship/fabric/sim/access_log.hpp"

#include <algorithm>

namespace tranship {

constinit thread_local AccessLog* detail::access_log = nullptr;
constinit detail::RaceHooks detail::race_hooks;

bool AccessLog::is_of_others(Address first, Address end) noexcept {
  if (!others_are_known_) {
    enter_library();
    find_others();
    leave_library();
    others_are_known_ = true;
    others_first_ = others_.empty() ? 1 : others_.front().first;
    others_end_ = others_.empty() ? 0 : others_.back().end;
  }
  const auto after = std::partition_point(others_.begin(), others_.end(),
                                          [&](const Stretch& stretch) { return stretch.end <= first; });
  return after != others_.end() && after->first < end;
}

void AccessLog::close(const Run& run) noexcept {
  if (runs_count_ == runs_.size()) settle();
  runs_[runs_count_++] = run;
}

}  // namespace tranship
