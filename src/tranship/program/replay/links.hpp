// Private: ReplayLinks, until when the links between ranks are taken.
#pragma once

#include <map>
#include <vector>

#include <tranship/program/replay/cost.hpp>

namespace tranship::replays {

class ReplayLinks {
 public:
  ReplayLinks(const MachineModel& machine, Rank ranks);

  /// Takes the links for all loads of a step that begins at `begin_ns`, in their order. When those have been carried
  /// that the step waits for, as far as the links limit it; 0: at once.
  double take(const std::vector<LinkLoad>& loads, double begin_ns);
  /// When all has been carried that a rank has asked its proxy to carry to a peer.
  double proxy_free_ns(Rank from, Rank to) const;

 private:
  struct Ends {
    double sends_ns = 0, receives_ns = 0;
  };
  double carry(const LinkLoad& load, double begin_ns);

  const MachineModel& machine_;
  std::vector<Ends> ranks_, hosts_;
  std::vector<std::map<Rank, double>> proxies_;  // by rank and peer: until when it is busy
};

}  // namespace tranship::replays
