// Detail: Polling tells when a rank does nothing but look for what does not come, so that a loop over test() or g()
// ends as a wait does. Looks are counted by their callers (context.hpp); every so many of them come here.
//
// What a rank has polled since it last did anything else is a row. A row goes on while every place that is looked at
// shows what it has shown before; a transfer, a collective call, a wait or a new value begins the next one.
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
  /// that what came before is seen; `timeout` when the row is older than `timeout_ns`, has 16 looks, and the rank takes
  /// less than a microsecond of its own time for a poll beside what the polls themselves take, for those that compute
  /// meanwhile do not wait. Returns how many polls may pass until the next call: one millisecond's or so, 1024 at most.
  int look(Fabric& fabric, const WaitNote& note, std::int64_t timeout_ns);
  /// So many polls have passed beside those that look() has given. A poll that a group of lanes makes together takes
  /// the time in which each of them comes and goes, so it counts once for each.
  void add_polls(std::int64_t more) noexcept { more_ += more; }
  /// Each poll since the last look has taken about so long by itself, for what it has moved.
  void add_time(std::int64_t poll_ns) noexcept { allowed_ns_ += poll_ns * passed(); }
  /// And each later one takes so long by its call.
  void set_call_ns(std::int64_t call_ns) noexcept { call_ns_ = call_ns; }
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
  /// Whether the row goes on.
  bool goes_on(const Fabric& fabric, const WaitNote& note);
  void begin(const Fabric& fabric, std::int64_t now_ns);

  std::int64_t since_ns_ = 0;    // 0 before the first row
  std::int64_t own_ns_ = 0;      // this thread's at the start of the row
  std::uint64_t calls_ = 0;      // collective ones until then
  std::int64_t allowed_ns_ = 0;  // of this thread's in this row, by a rank that does not compute
  std::int64_t call_ns_ = 0;
  std::int64_t looks_ = 0;  // in this row
  std::int64_t looked_ns_ = 0;
  int step_ = 1;           // polls that take the time between two looks
  int given_ = 1;          // polls until this look
  std::int64_t more_ = 0;  // polls since the last look beside them
  SplitMix64 random_{1};
  std::array<Place, 8> places_{};
  std::size_t place_count_ = 0;
  enum class Failure : std::uint8_t { none, seen, seen_with_news } failure_ = Failure::none;
};

}  // namespace tranship
