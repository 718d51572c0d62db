// Detail: Members, which ranks of the world make a team: an arithmetic sequence, because teams are split by steps.
#pragma once

#include <tranship/base/index.hpp>

namespace tranship {

/// Member i is rank first + i * stride of the world.
struct Members {
  Rank first = 0;
  int stride = 1;
  int count = 1;

  Rank rank_of(int member) const noexcept { return first + member * stride; }
  /// -1 for a rank that is not in the team.
  int member_of(Rank rank) const noexcept {
    const int distance = rank - first;
    const int member = distance / stride;
    return distance % stride == 0 && member >= 0 && member < count ? member : -1;
  }
  /// Those of these that are among others, which they number: which members of `others` they are.
  Members among(const Members& others) const noexcept {
    Members out{.count = 0};
    for (int i = 0; i < others.count; ++i) {
      if (member_of(others.rank_of(i)) < 0) continue;
      if (out.count == 0) out.first = i;
      if (out.count == 1) out.stride = i - out.first;
      ++out.count;
    }
    return out;
  }
  friend bool operator==(const Members&, const Members&) = default;
};

}  // namespace tranship
