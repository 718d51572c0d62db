// Private: which counter of a rank counts the signals of which channel. All ranks derive the same numbers from the
// program, in one pass over its channels.
#pragma once

#include <cstddef>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

class ChannelEnds {
 public:
  explicit ChannelEnds(const Program& program);

  /// The counter at rank `at` of the k-th channel of a kind that leads there from rank `from`. `at` and `from` have
  /// such a channel between them, in either direction.
  std::size_t counter(Rank at, int kind, Rank from, Index k) const;
  /// Counters of the rank that has most.
  std::size_t counters_max() const noexcept { return counters_max_; }
  /// How many ends of channels the constructor has looked at.
  Index ends_read() const noexcept { return ends_read_; }

 private:
  /// Channels of one kind from one rank. Their counters lie one after the other.
  struct Group {
    int kind;
    Rank from;
    Index count;
    std::size_t first;

    friend bool operator<(const Group& a, const Group& b) {
      return a.kind != b.kind ? a.kind < b.kind : a.from < b.from;
    }
  };

  std::vector<std::vector<Group>> of_rank_;  ///< sorted
  std::size_t counters_max_ = 0;
  Index ends_read_ = 0;
};

}  // namespace tranship
