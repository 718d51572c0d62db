#include "tranship/program/replay/channels.hpp"

#include <map>
#include <tuple>

namespace tranship::replays {

/// The k-th channel from r to p and the k-th one from p to r are two ends: one takes what the other sends.
ReplayChannels::ReplayChannels(const Program& program) {
  const auto ranks = static_cast<Rank>(program.ranks.size());
  const auto of = [&](Rank rank) -> const RankProgram& { return program.ranks[static_cast<std::size_t>(rank)]; };
  for (int kind = 0; kind < 2; ++kind) {
    std::map<std::tuple<Rank, Rank, Index>, std::size_t> inbound;  // by rank, peer, and number among its channels from
                                                                   // that peer
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::map<Rank, Index> seen;
      first_channel_[kind].push_back(in_[kind].size());
      for (const Rank peer : of(rank).peers[kind]) {
        inbound[{rank, peer, seen[peer]++}] = counters_.size();
        in_[kind].push_back(counters_.size());
        counters_.emplace_back();
      }
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      std::map<Rank, Index> seen;
      for (const Rank peer : of(rank).peers[kind]) {
        const auto added = inbound.emplace(std::tuple(peer, rank, seen[peer]++), counters_.size());
        if (added.second) counters_.emplace_back();  // no channel leads back
        out_[kind].push_back(added.first->second);
      }
    }
  }
  for (Rank rank = 0; rank < ranks; ++rank) {
    first_semaphore_.push_back(counters_.size());
    for (const Index value : of(rank).semaphores) counters_.emplace_back().initial = value;
  }
}

}  // namespace tranship::replays
