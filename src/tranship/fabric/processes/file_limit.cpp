#include "tranship/fabric/processes/file_limit.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {

RaisedFileLimit::RaisedFileLimit(int ranks) {
  // Each process takes one descriptor; others are open already or are opened for a while.
  constexpr rlim_t others = 64;
  if (getrlimit(RLIMIT_NOFILE, &before_) != 0) {
    before_ = {.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
    return;
  }
  const rlim_t needed = static_cast<rlim_t>(ranks) + others;
  if (needed <= before_.rlim_cur) return;
  const rlimit raised{.rlim_cur = needed, .rlim_max = before_.rlim_max};
  if (needed > before_.rlim_max || setrlimit(RLIMIT_NOFILE, &raised) != 0)
    throw_error(ErrorCode::no_memory, "{} that are processes need {}; this process may have {} (ulimit -Hn)",
                amount(ranks, "rank"), amount(needed, "open file"), before_.rlim_max);
}

}  // namespace tranship
