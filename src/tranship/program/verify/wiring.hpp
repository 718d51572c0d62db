// Private: Wiring connects channels: it finds the counter that a signal raises and the counter that a wait takes from.
#pragma once

#include <vector>

#include <tranship/program/program.hpp>

namespace tranship::verification {

/// The k-th channel from r to p and the k-th one from p to r are two ends: one takes what the other sends. Counters are
/// numbered; those of semaphores come last.
class Wiring {
 public:
  explicit Wiring(const Program& program);

  int out(Rank rank, ChannelKind kind, std::int32_t channel) const { return at(out_, rank, kind, channel); }
  int in(Rank rank, ChannelKind kind, std::int32_t channel) const { return at(in_, rank, kind, channel); }
  int semaphore(Rank rank, std::int32_t id) const { return first_semaphore_[static_cast<std::size_t>(rank)] + id; }
  int counters() const { return counters_; }

 private:
  using Table = std::vector<int>[2];
  int at(const Table& table, Rank rank, ChannelKind kind, std::int32_t channel) const {
    const auto k = static_cast<std::size_t>(kind);
    return table[k][static_cast<std::size_t>(first_channel_[k][static_cast<std::size_t>(rank)]) +
                    static_cast<std::size_t>(channel)];
  }

  Table in_, out_;
  std::vector<int> first_channel_[2], first_semaphore_;
  int counters_ = 0;
};

}  // namespace tranship::verification
