#include "tranship/fabric/seam/polling.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/deadline.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/seam/fabric.hpp>
#include <tranship/fabric/seam/global_exit.hpp>

namespace tranship {
namespace {

constexpr int looks_min = 16;  // of a row in which polls are missed: fewer may miss a change

}  // namespace

void Polling::begin(const Fabric& fabric, std::int64_t now_ns) {
  since_ns_ = now_ns;
  calls_ = fabric.board().call_of(fabric.rank());
  looks_ = 0;
  has_missed_ = false;
  place_count_ = 0;
}

Polling::Row Polling::next(const Fabric& fabric, const WaitNote& note) {
  if (since_ns_ == 0 || fabric.board().call_of(fabric.rank()) != calls_) return Row::ends;
  // A test that has failed continues the row wherever it looks, until a known place shows another value. It leaves half
  // of the places to polls whose values alone show a change.
  const bool is_test = note.shows == WaitNote::Shows::comparison;
  const auto end = places_.begin() + std::ptrdiff_t(place_count_);
  const auto known = std::find_if(places_.begin(), end, [&](const Place& place) {
    return place.rank == note.flag_rank && place.index == note.flag_index;
  });
  if (known != end) return known->seen == note.seen ? Row::sees_the_same : Row::ends;
  if (place_count_ >= places_.size() / (is_test ? 2 : 1))
    return is_test ? Row::sees_the_same : Row::ends;  // the rank walks through memory
  places_[place_count_++] = {note.flag_rank, note.flag_index, note.seen};
  return is_test ? Row::sees_the_same : Row::has_another_place;
}

int Polling::look(Fabric& fabric, const WaitNote& note, std::int64_t timeout_ns) {
  const std::int64_t now = now_ns(), passed_ns = now - std::exchange(looked_ns_, now);
  const std::int64_t polls = passed();
  more_ = 0;
  const Row row = next(fabric, note);
  const bool same = row != Row::ends;
  if (!same) {
    begin(fabric, now);
    next(fabric, note);  // remembers the place
  }
  has_missed_ |= same && polls > 1;
  looks_ = std::min(looks_ + 1, looks_min);

  const Board& board = fabric.board();
  if (board.has_failed()) {
    end_with_all(board);
    if (failure_ == Failure::seen_with_news || (failure_ == Failure::seen && same)) {
      Error error = make_error(ErrorCode::peer_lost, "{}; rank {} polls {} (from {})", board.first_failure(),
                               fabric.rank(), to_string(note), short_name(note.where));
      error.rank = fabric.rank();
      error.peer = board.first_failed();
      throw error;
    }
    // Values raised before the failure show at the next look.
    failure_ = failure_ == Failure::none ? Failure::seen : Failure::seen_with_news;
    return given_ = step_ = 1;
  }

  const Deadline deadline =
      timeout_ns == INT64_MAX ? Deadline::never() : Deadline::after_ns(timeout_ns - (now - since_ns_));
  if (same && (looks_ >= looks_min || !has_missed_) && fabric.clock().passed(deadline)) {
    Error error = make_error(ErrorCode::timeout, "rank {} has seen nothing new for {:.3g} s: it polls {} (from {}){}",
                             fabric.rank(), static_cast<double>(now - since_ns_) * 1e-9, to_string(note),
                             short_name(note.where), board.lines_of_others(fabric.rank(), note.flag_rank));
    error.rank = fabric.rank();
    throw error;
  }
  if (fabric.clock().patience().polls_per_look > 0) return given_ = fabric.clock().patience().polls_per_look;
  if (row == Row::sees_the_same && now - gave_away_ns_ >= fabric.clock().patience().poll_ns) {
    fabric.clock().idle(0);  // looked_ns_ was taken before: the time counts for the next look
    gave_away_ns_ = now;
  }
  return given_ = next_step(polls, passed_ns, fabric.clock().patience().poll_ns);
}

int Polling::next_step(std::int64_t polls, std::int64_t passed_ns, std::int64_t wanted_ns) {
  constexpr int step_max = 1024;
  const std::int64_t step = (polls > given_ ? polls : step_) * wanted_ns / std::max<std::int64_t>(1, passed_ns);
  const int before = std::exchange(step_, static_cast<int>(std::clamp<std::int64_t>(step, 1, step_max)));
  step_ = std::min(step_, 8 * before);
  // Varies the step, so that a loop that polls several places in turn is not seen at one of them only.
  return step_ - static_cast<int>(random_.below(static_cast<std::uint64_t>(step_) / 4 + 1));
}

}  // namespace tranship
