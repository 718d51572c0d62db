// Private: ReplayChannels, the signals in flight on the channels of a replayed program and the releases of its
// semaphores, each with its time of arrival.
#pragma once

#include <queue>
#include <vector>

#include <tranship/program/program.hpp>
#include <tranship/program/replay/written.hpp>

namespace tranship::replays {

struct ComesLater {
  bool operator()(const Arrival& a, const Arrival& b) const { return a > b; }
};

/// Signals in one direction of a channel, or releases of a semaphore.
struct Counter {
  std::priority_queue<Arrival, std::vector<Arrival>, ComesLater> arrivals;  ///< the earliest one on top
  Index initial = 0;                                                        ///< available from the beginning
  std::vector<int> waiting;                                                 ///< blocks that wait here
};

class ReplayChannels {
 public:
  explicit ReplayChannels(const Program& program);

  /// The counter that a wait of the rank on its channel takes from, and the one that its signal there raises.
  Counter& in(Rank rank, ChannelKind kind, std::int32_t id) { return counters_[index(in_, rank, kind, id)]; }
  Counter& out(Rank rank, ChannelKind kind, std::int32_t id) { return counters_[index(out_, rank, kind, id)]; }
  Counter& semaphore(Rank rank, std::int32_t id) {
    return counters_[first_semaphore_[std::size_t(rank)] + std::size_t(id)];
  }

 private:
  std::size_t index(const std::vector<std::size_t> (&channels)[2], Rank rank, ChannelKind kind, std::int32_t id) const {
    const auto k = static_cast<std::size_t>(kind);
    return channels[k][first_channel_[k][std::size_t(rank)] + std::size_t(id)];
  }

  std::vector<Counter> counters_;
  std::vector<std::size_t> in_[2], out_[2];
  std::vector<std::size_t> first_channel_[2], first_semaphore_;
};

}  // namespace tranship::replays
