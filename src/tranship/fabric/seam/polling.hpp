// Private: Polling: notices when a rank polls in vain, so that a loop over test() or g() ends as a wait does, and
// yields the core of such a rank. Callers count the polls (context.hpp) and call look() after a number of them.
//
// A row is the sequence of a rank's polls since it last did anything else. It continues while every polled place shows
// what it showed before; work of the rank that others do not see does not end it. A transfer, a collective call, a wait
// or a new value begins the next row. A row as old as the timeout fails.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tranship/base/index.hpp>
#include <tranship/base/random.hpp>
#include <tranship/fabric/seam/wait_note.hpp>

namespace tranship {

class Fabric;

/// The polls of one rank.
class Polling {
 public:
  /// Called after a poll that `note` describes. Throws `peer_lost` when a rank has failed, but only at the second look
  /// after the failure, so that data which arrived before it is seen; `timeout` when the row is older than `timeout_ns`
  /// and has 16 looks, or one for each of its polls. If the rank sees the same values again, yields the core once per
  /// Patience::poll_ns. Returns how many polls may pass until the next call: about as many as fit into
  /// Patience::poll_ns, at most 1024.
  int look(Fabric& fabric, const WaitNote& note, std::int64_t timeout_ns);
  /// Adds polls to those that look() has allowed: a group of lanes that polls together makes several.
  void add_polls(std::int64_t more) noexcept { more_ += more; }
  /// Polls since the last look.
  std::int64_t passed() const noexcept { return given_ + more_; }
  /// The rank has done something other than poll.
  void end_row() noexcept { since_ns_ = 0; }

 private:
  struct Place {
    Rank rank;
    std::int64_t index;
    std::uint64_t seen;
  };
  enum class Row : std::uint8_t {
    ends,
    has_another_place,
    sees_the_same,  ///< at a known place, or by a test, which itself says what it looks for
  };
  Row next(const Fabric& fabric, const WaitNote& note);
  void begin(const Fabric& fabric, std::int64_t now_ns);
  int next_step(std::int64_t polls, std::int64_t passed_ns, std::int64_t wanted_ns);

  std::int64_t since_ns_ = 0;  // 0 before the first row
  std::uint64_t calls_ = 0;    // collective calls when the row began
  int looks_ = 0;              // in this row
  bool has_missed_ = false;    // there are polls of this row that no look has seen
  std::int64_t looked_ns_ = 0, gave_away_ns_ = 0;
  int step_ = 1;           // polls that fill the time between two looks
  int given_ = 1;          // polls until this look
  std::int64_t more_ = 0;  // further polls since the last look
  SplitMix64 random_{1};
  std::array<Place, 8> places_{};
  std::size_t place_count_ = 0;
  enum class Failure : std::uint8_t { none, seen, seen_with_news } failure_ = Failure::none;
};

}  // namespace tranship
