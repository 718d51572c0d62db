// Detail: TeamView, the members of a team as a value for kernels, and the words by which they meet. A KernelTeam
// (fabric/lanes/kernel_team.hpp) makes it and owns the words; collectives.hpp uses it.
#pragma once

#include <tranship/kernels/shared.hpp>

namespace tranship {

/// Member i is rank first + i * stride of the world, or ranks[i] if `ranks` is not null. Only one collective call of a
/// team may run at a time: blocks that make such calls side by side need different teams. All calls of a rank to a team
/// must use the same HeapView.
struct TeamView {
  int first = 0;
  int stride = 1;
  int count = 1;
  int member = 0;  ///< index of this rank
  /// This rank's words, at the same place in the heaps of all members. Word 0 counts the meetings that this rank has
  /// entered. The first word of line 1 + k counts the meetings in which the member 2^k before this one has entered
  /// round k; on a device, where few members meet without rounds, the meetings that member k has entered.
  unsigned long long* words = nullptr;
  const int* ranks = nullptr;

  static constexpr int words_per_line = 8;  ///< so that two members never write to one line
  static constexpr int rounds_max = 31;
  static constexpr int words_count = (1 + rounds_max) * words_per_line;

  /// Returns the rank of a member, or -1 if there is no such member.
  TRANSHIP_SHARED constexpr int translate(int of) const {
    if (of < 0 || of >= count) return -1;
    return ranks ? ranks[of] : first + of * stride;
  }
  /// Returns the member that a rank is, or -1 if it is none.
  TRANSHIP_SHARED constexpr int member_of(int rank) const {
    for (int i = 0; ranks && i < count; ++i)
      if (ranks[i] == rank) return i;
    if (ranks) return -1;
    const int steps = stride == 0 ? 0 : (rank - first) / stride;
    return steps >= 0 && steps < count && first + steps * stride == rank ? steps : -1;
  }
};

}  // namespace tranship
