// Private: ReplayLinks, until when each link between ranks is busy.
#pragma once

#include <map>
#include <vector>

#include <tranship/program/replay/cost.hpp>

namespace tranship::replays {

class ReplayLinks {
 public:
  ReplayLinks(const MachineModel& machine, Rank ranks);

  /// Occupies the links for all loads of a step that begins at `begin_ns`, in their order. Returns when the links have
  /// carried those loads that the step waits for; 0 when they do not limit it.
  double take(const std::vector<LinkLoad>& loads, double begin_ns);
  /// Returns when a rank's proxy will have carried everything asked of it so far to a peer.
  double proxy_free_ns(Rank from, Rank to) const;

 private:
  struct Ends {
    double sends_ns = 0, receives_ns = 0;
  };
  double carry(const LinkLoad& load, double begin_ns);

  const MachineModel& machine_;
  std::vector<Ends> ranks_, hosts_;
  std::vector<std::map<Rank, double>> proxies_;  // by rank and peer: until when the proxy is busy
};

}  // namespace tranship::replays
