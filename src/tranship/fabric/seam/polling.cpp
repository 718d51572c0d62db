#include "tranship/fabric/seam/polling.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/base/sanitizers.hpp>
#include <tranship/fabric/seam/fabric.hpp>

namespace tranship {

void Polling::begin(const Fabric& fabric, std::int64_t now_ns) {
  since_ns_ = now_ns;
  own_ns_ = fabric.own_time_ns();
  calls_ = fabric.board().call_of(fabric.rank());
  allowed_ns_ = looks_ = 0;
  place_count_ = 0;
}

bool Polling::goes_on(const Fabric& fabric, const WaitNote& note) {
  if (since_ns_ == 0 || fabric.board().call_of(fabric.rank()) != calls_) return false;
  // A test that has not found what it looked for goes on wherever it looks, until something else shows there. It leaves
  // places to what is told by them alone.
  const bool is_test = note.shows == WaitNote::Shows::comparison;
  const auto end = places_.begin() + std::ptrdiff_t(place_count_);
  const auto known = std::find_if(places_.begin(), end, [&](const Place& place) {
    return place.rank == note.flag_rank && place.index == note.flag_index;
  });
  if (known != end) return known->seen == note.seen;
  if (place_count_ >= places_.size() / (is_test ? 2 : 1)) return is_test;  // else it goes through memory
  places_[place_count_++] = {note.flag_rank, note.flag_index, note.seen};
  return true;
}

int Polling::look(Fabric& fabric, const WaitNote& note, std::int64_t timeout_ns) {
  const std::int64_t now = now_ns(), passed_ns = now - std::exchange(looked_ns_, now);
  const std::int64_t polls = passed();
  more_ = 0;
#ifdef TRANSHIP_SANITIZED  // a lane takes several turns for a poll, and a turn takes microseconds there
  constexpr std::int64_t own_ns_max = 64'000;
#else
  constexpr std::int64_t own_ns_max = 1000;
#endif
  allowed_ns_ += (own_ns_max + call_ns_) * polls;
  ++looks_;
  const bool same = goes_on(fabric, note);
  if (!same) {
    begin(fabric, now);
    goes_on(fabric, note);  // remembers the place
  }

  const Board& board = fabric.board();
  if (board.has_failed()) {
    if (failure_ == Failure::seen_with_news || (failure_ == Failure::seen && same)) {
      Error error = make_error(ErrorCode::peer_lost, "{}; rank {} polls {} (from {})", board.first_failure(),
                               fabric.rank(), to_string(note), short_name(note.where));
      error.rank = fabric.rank();
      error.peer = board.first_failed();
      throw error;
    }
    // What was raised before the failure shows at the next look.
    failure_ = failure_ == Failure::none ? Failure::seen : Failure::seen_with_news;
    return given_ = step_ = 1;
  }

  const Deadline deadline =
      timeout_ns == INT64_MAX ? Deadline::never() : Deadline::after_ns(timeout_ns - (now - since_ns_));
  constexpr int looks_min = 16;  // fewer may miss what changes
  if (looks_ >= looks_min && fabric.passed(deadline)) {
    if (fabric.own_time_ns() - own_ns_ <= allowed_ns_) {
      std::string message =
          fmt::format("rank {} has done nothing but poll for {:.3g} s: {} (from {})", fabric.rank(),
                      static_cast<double>(now - since_ns_) * 1e-9, to_string(note), short_name(note.where));
      message += board.lines_of_others(fabric.rank(), note.flag_rank);
      Error error(ErrorCode::timeout, std::move(message));
      error.rank = fabric.rank();
      throw error;
    }
    begin(fabric, now);
  }
  if (fabric.polls_per_look() > 0) return given_ = fabric.polls_per_look();
  constexpr std::int64_t wanted_ns = 500'000;
  constexpr int step_max = 1024;
  const std::int64_t step = (polls > given_ ? polls : step_) * wanted_ns / std::max<std::int64_t>(1, passed_ns);
  const int before = std::exchange(step_, static_cast<int>(std::clamp<std::int64_t>(step, 1, step_max)));
  step_ = std::min(step_, 8 * before);
  // Now and then a few less: a loop that polls several places in turn shall not be seen at one of them only.
  return given_ = step_ - static_cast<int>(random_.below(static_cast<std::uint64_t>(step_) / 4 + 1));
}

}  // namespace tranship
