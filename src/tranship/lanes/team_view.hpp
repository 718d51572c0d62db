// Detail: TeamView, the members of a team as a value for kernels, with the words by which they meet. A KernelTeam
// (fabric/lanes/kernel_team.hpp) makes it and keeps the words; collectives.hpp uses it.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// Member i is rank first + i * stride of the world, or ranks[i] where there is a list. One collective call of a team
/// runs at a time: blocks that make such calls side by side use different teams. All calls of a rank to a team use the
/// same HeapView.
struct TeamView {
  int first = 0;
  int stride = 1;
  int count = 1;
  int member = 0;  ///< this rank's place
  /// This rank's words, at the same place of the heaps of all members: word 0 counts the meetings that this rank has
  /// come to, and the first word of line 1 + k those in which the member 2^k before this one has come to round k; on a
  /// device, where few members meet without rounds, those to which member k has come.
  unsigned long long* words = nullptr;
  const int* ranks = nullptr;

  static constexpr int words_per_line = 8;  ///< so that members do not write to one line
  static constexpr int rounds_max = 31;
  static constexpr int words_count = (1 + rounds_max) * words_per_line;

  /// The rank of a member; -1 for none.
  TRANSHIP_SHARED constexpr int translate(int of) const {
    if (of < 0 || of >= count) return -1;
    return ranks ? ranks[of] : first + of * stride;
  }
  /// The member that a rank is; -1 for none.
  TRANSHIP_SHARED constexpr int member_of(int rank) const {
    for (int i = 0; ranks && i < count; ++i)
      if (ranks[i] == rank) return i;
    if (ranks) return -1;
    const int steps = stride == 0 ? 0 : (rank - first) / stride;
    return steps >= 0 && steps < count && first + steps * stride == rank ? steps : -1;
  }
};

}  // namespace tranship
