// Private: Polling tells when a rank looks for what does not come, so that a loop over test() or g() ends as a wait
// does, and gives the core of a rank that polls in vain to others. Looks are counted by their callers (context.hpp);
// every so many of them come here.
//
// What a rank has polled since it last did anything else is a row. A row goes on while every place that is looked at
// shows what it has shown before, whatever the rank does between its polls that others do not see; a transfer, a
// collective call, a wait or a new value begins the next one. A row that is as old as the timeout fails.
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
  /// After a look that `note` describes. Throws `peer_lost` when a rank has failed, at the second look after that, so
  /// that what came before is seen; `timeout` when the row is older than `timeout_ns`, and has 16 looks or one for each
  /// of its polls. Where the rank sees again what it has seen, gives the core away once in Patience::poll_ns. Returns
  /// how many polls may pass until the next call: those of Patience::poll_ns or so, 1024 at most.
  int look(Fabric& fabric, const WaitNote& note, std::int64_t timeout_ns);
  /// So many polls have passed beside those that look() has given: those of a group of lanes that poll together.
  void add_polls(std::int64_t more) noexcept { more_ += more; }
  /// Polls since the last look.
  std::int64_t passed() const noexcept { return given_ + more_; }
  /// The rank has done something else.
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
    sees_the_same,  ///< where it has looked before, or by a test, which looks for something by itself
  };
  Row next(const Fabric& fabric, const WaitNote& note);
  void begin(const Fabric& fabric, std::int64_t now_ns);
  int next_step(std::int64_t polls, std::int64_t passed_ns, std::int64_t wanted_ns);

  std::int64_t since_ns_ = 0;  // 0 before the first row
  std::uint64_t calls_ = 0;    // collective ones until then
  int looks_ = 0;              // in this row
  bool has_missed_ = false;    // polls of this row that no look has seen
  std::int64_t looked_ns_ = 0, gave_away_ns_ = 0;
  int step_ = 1;           // polls that take the time between two looks
  int given_ = 1;          // polls until this look
  std::int64_t more_ = 0;  // polls since the last look beside them
  SplitMix64 random_{1};
  std::array<Place, 8> places_{};
  std::size_t place_count_ = 0;
  enum class Failure : std::uint8_t { none, seen, seen_with_news } failure_ = Failure::none;
};

}  // namespace tranship
