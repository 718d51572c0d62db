// Private: ChannelEnds numbers the counters that count the signals of each channel at a rank. All ranks derive equal
// numbers from the program, in one pass over its channels.
#pragma once

#include <cstddef>
#include <vector>

#include <tranship/program/program.hpp>

namespace tranship {

class ChannelEnds {
 public:
  explicit ChannelEnds(const Program& program);

  /// Returns the counter at rank `at` for the k-th channel of a kind from rank `from`. There must be such a channel
  /// between them, in either direction.
  std::size_t counter(Rank at, int kind, Rank from, Index k) const;
  /// Number of counters of the rank that has most.
  std::size_t counters_max() const noexcept { return counters_max_; }
  /// Number of channel ends that the constructor has visited, for tests of its cost.
  Index ends_read() const noexcept { return ends_read_; }

 private:
  /// Channels of one kind from one rank, whose counters are consecutive.
  struct Group {
    int kind;
    Rank from;
    Index count;
    std::size_t first;

    friend bool operator<(const Group& a, const Group& b) {
      return a.kind != b.kind ? a.kind < b.kind : a.from < b.from;
    }
  };

  std::vector<std::vector<Group>> of_rank_;  ///< by rank, each list sorted
  std::size_t counters_max_ = 0;
  Index ends_read_ = 0;
};

}  // namespace tranship
