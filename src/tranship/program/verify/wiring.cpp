#include "tranship/program/verify/wiring.hpp"

#include <map>
#include <tuple>

namespace tranship::verification {

Wiring::Wiring(const Program& program) {
  for (std::size_t kind = 0; kind < 2; ++kind) {
    std::map<std::tuple<Rank, Rank, Index>, int> inbound;  // by rank, peer, and number among its channels from that
                                                           // peer
    Rank rank = 0;
    for (const RankProgram& one : program.ranks) {
      std::map<Rank, Index> seen;
      first_channel_[kind].push_back(static_cast<int>(in_[kind].size()));
      for (const Rank peer : one.peers[kind]) {
        inbound[{rank, peer, seen[peer]++}] = counters_;
        in_[kind].push_back(counters_++);
      }
      ++rank;
    }
    rank = 0;
    for (const RankProgram& one : program.ranks) {
      std::map<Rank, Index> seen;
      for (const Rank peer : one.peers[kind]) {
        const auto [at, is_new] = inbound.emplace(std::tuple(peer, rank, seen[peer]++), counters_);
        if (is_new) ++counters_;  // no channel leads back
        out_[kind].push_back(at->second);
      }
      ++rank;
    }
  }
  for (const RankProgram& one : program.ranks) {
    first_semaphore_.push_back(counters_);
    counters_ += static_cast<int>(one.semaphores.size());
  }
}

}  // namespace tranship::verification
