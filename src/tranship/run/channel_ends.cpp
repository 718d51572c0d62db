#include "tranship/run/channel_ends.hpp"

#include <algorithm>
#include <utility>

namespace tranship {

ChannelEnds::ChannelEnds(const Program& program) : of_rank_(program.ranks.size()) {
  const auto ranks = static_cast<Rank>(program.ranks.size());
  std::vector<Index> count(program.ranks.size());
  for (int kind = 0; kind < 2; ++kind)
    for (Rank rank = 0; rank < ranks; ++rank) {
      const std::vector<Rank>& peers = program.ranks[static_cast<std::size_t>(rank)].peers[kind];
      ends_read_ += Index(peers.size());
      for (const Rank peer : peers) ++count[static_cast<std::size_t>(peer)];
      for (const Rank peer : peers) {
        const Index channels = std::exchange(count[static_cast<std::size_t>(peer)], 0);
        if (channels == 0) continue;
        of_rank_[static_cast<std::size_t>(rank)].push_back({kind, peer, channels, 0});
        if (peer != rank) of_rank_[static_cast<std::size_t>(peer)].push_back({kind, rank, channels, 0});
      }
    }
  for (std::vector<Group>& groups : of_rank_) {
    std::sort(groups.begin(), groups.end());
    // Both ends list the channels between two ranks; the longer list counts.
    std::size_t used = 0, counters = 0;
    for (const Group& group : groups) {
      if (used > 0 && !(groups[used - 1] < group))
        groups[used - 1].count = std::max(groups[used - 1].count, group.count);
      else
        groups[used++] = group;
    }
    groups.resize(used);
    for (Group& group : groups) {
      group.first = counters;
      counters += static_cast<std::size_t>(group.count);
    }
    counters_max_ = std::max(counters_max_, counters);
  }
}

std::size_t ChannelEnds::counter(Rank at, int kind, Rank from, Index k) const {
  const std::vector<Group>& groups = of_rank_[static_cast<std::size_t>(at)];
  const auto group = std::lower_bound(groups.begin(), groups.end(), Group{kind, from, 0, 0});
  return group->first + static_cast<std::size_t>(k);
}

}  // namespace tranship
