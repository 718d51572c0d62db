#include "tranship/run/exchange_runner.hpp"

#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/fabric/heap/symmetric_heap.hpp>
#include <tranship/fabric/polls.hpp>
#include <tranship/run/exchange_explanation.hpp>

namespace tranship {

void ExchangeRunner::set_up(std::vector<Measured> measured) {
  setup_.run();
  progress_.open();
  measured_ = std::move(measured);
}

void ExchangeRunner::bind(std::span<const StridedView> views) {
  if (!setup_.terms().is_snapshot())
    throw_error(ErrorCode::invalid_use,
                "bind() needs Sources::snapshot: peers access the arrays of this exchange directly (rank {})",
                setup_.terms().rank());
  check_not_in_flight(Side::both);
  setup_.bind(views);
  footprint_.reset();
}

void ExchangeRunner::check_not_in_flight(Side side) const {
  if (!progress_.in_flight(side)) return;
  const std::uint64_t epoch =
      progress_.epoch(has_sends(side) && progress_.in_flight(Side::sends) ? Side::sends : Side::receives);
  throw_error(ErrorCode::invalid_use, "exchange {} is in flight: finish it before starting {} (rank {})", epoch,
              epoch + 1, setup_.terms().rank());
}

void ExchangeRunner::check_can_start(Side side) const {
  const ExchangeTerms& terms = setup_.terms();
  check_not_in_flight(side);
  if (progress_.has_left(side))
    throw_error(ErrorCode::invalid_use, "rank {} has left this side of the exchange", terms.rank());
  if (terms.is_snapshot())
    for (const auto& arrays : terms.slots)
      for (const ExchangeArray& array : arrays) check_has_memory(array, terms.rank());
  if (side != Side::both && !terms.are_apart())
    throw_error(ErrorCode::invalid_use, "this exchange was not made with Halves::apart: start both sides together");
}

void ExchangeRunner::start(Side side, CallSite where) {
  check_can_start(side);
  if (observer_) observer_->starting(where);
  try {
    if (ExchangeLog::is_open() && !setup_.terms().are_apart()) {
      recorder_.emplace(setup_.terms(), setup_.messages(), progress_.epoch(side) + 1);
      progress_.set_observer(&*recorder_);
    }
    begin_uses(side, where);
    progress_.start(side);
    if (setup_.terms().is_snapshot()) sends_use_ = {};
    stay_under_way();
  } catch (...) {
    if (observer_) observer_->not_started();
    throw;
  }
  tell([&](ExchangeObserver& observer) { observer.started(where); });
}

template <class Call>
bool ExchangeRunner::observed(Side side, CallSite where, Call&& call) {
  const auto until_lost = [&] {
    try {
      return call();
    } catch (const Error& error) {
      // A timeout while waiting for a peer that has left is reported as such.
      if (error.code() == ErrorCode::timeout) progress_.check_lost_for_good(side);
      throw;
    }
  };
  try {
    if (!until_lost()) return false;
    tell([&](ExchangeObserver& observer) { observer.completed(where); });
    stop_recording();
    return true;
  } catch (const std::exception& error) {
    tell([&](ExchangeObserver& observer) { observer.failed(where, error.what()); });
    stop_recording();
    throw;
  } catch (...) {
    tell([&](ExchangeObserver& observer) { observer.failed(where, "interrupted"); });
    stop_recording();
    throw;
  }
}
void ExchangeRunner::stop_recording() noexcept {
  if (!recorder_) return;
  progress_.set_observer(nullptr);
  recorder_.reset();
}

bool ExchangeRunner::test(Side side, CallSite where) {
  if (!progress_.in_flight(side)) return true;
  return observed(side, where, [&] {
    if (!progress_.advance_in_test(side)) {
      progress_.check_lost(side);
      setup_.terms().world.under_way().move_one(Meanwhile::polls, *this);
      poll(side, where);
      return false;
    }
    end_epoch(side);
    return true;
  });
}

/// Call after a test that is not complete, so that a loop over test() fails like a wait. Posted messages are polled
/// through the context that posts them.
void ExchangeRunner::poll(Side side, CallSite where) {
  World& world = setup_.terms().world;
  const ExchangeMessages& messages = setup_.messages();
  if (const Message* post = progress_.missing_post()) {
    (void)world.context().signal_fetch(messages.links.notices->signal(post->signal_here), where);
    return;
  }
  // A test looks at some words of every message, and each counts like a poll.
  constexpr int words_per_message = 4;
  polls_left_ -= words_per_message * std::max(1, static_cast<int>(messages.receives.size() + messages.sends.size()));
  if (polls_left_ > 0) return;
  WaitNote note("exchange", WaitNote::anyone, where);
  progress_.name_missing(side, note);
  // The address of its words distinguishes an exchange from others that are tested in turn.
  note.flag_index =
      reinterpret_cast<const std::byte*>(&messages.links.words.at(world.rank(), ExchangeLinks::source_word)) -
      world.heap().place().own;
  polls_left_ = detail::Polls(world).look_at_flags(note);
}

/// While one lives, this rank waits: peers may leave to it what it can copy, and it moves the exchange itself.
class ExchangeRunner::Waiting {
 public:
  Waiting(ExchangeRunner& runner, Side side) : runner_(runner), side_(side) {
    runner_.progress_.set_has_time(true);
    runner_.leave_list();
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() {
    runner_.progress_.set_has_time(false);
    runner_.stay_under_way();
    // A complete run has no epoch to wait for.
    if (has_told_ && runner_.progress_.in_flight(side_)) runner_.progress_.forget_waiting(side_);
  }
  void tell() {
    if (has_told_ || !runner_.setup_.terms().are_apart()) return;
    has_told_ = true;
    runner_.progress_.tell_waiting(side_);
  }

 private:
  ExchangeRunner& runner_;
  const Side side_;
  bool has_told_ = false;
};

void ExchangeRunner::finish(Side side, CallSite where) {
  if (!progress_.in_flight(side)) return;
  tell([](ExchangeObserver& observer) { observer.finishing(); });
  observed(side, where, [&] {
    WaitNote note("exchange", WaitNote::anyone, where);
    Waiting waiting(*this, side);
    setup_.terms().world.wait_until(
        [&] {
          progress_.advance();
          if (progress_.is_complete(side)) return true;
          waiting.tell();
          progress_.check_lost(side);
          progress_.name_missing(side, note);
          return false;
        },
        note);
    end_epoch(side);
    return true;
  });
}

void ExchangeRunner::end_epoch(Side side) {
  progress_.end(side);
  end_uses(side);
  if (progress_.needs_no_peer()) leave_list();
}

// A snapshot reads only in start(), and writes only when it is complete.

void ExchangeRunner::begin_uses(Side side, CallSite where) {
  if (!detail::MemoryUse::is_watched(setup_.terms().world.context())) return;
  if (!footprint_) footprint_ = footprint_of(setup_.terms(), setup_.messages());
  started_at_ = where;
  const bool is_snapshot = setup_.terms().is_snapshot();
  if (side != Side::both || is_snapshot) {
    if (has_sends(side)) sends_use_ = use_of(footprint_->sends, words_.ends_sends);
    if (has_receives(side) && !is_snapshot) receives_use_ = use_of(footprint_->receives, words_.ends_receives);
    return;
  }
  // One use for both, because a cell may be sent and then filled.
  ExchangeFootprint::Parts all = footprint_->sends;
  all.insert(all.end(), footprint_->receives.begin(), footprint_->receives.end());
  receives_use_ = use_of(all, words_.ends_receives);
}
void ExchangeRunner::end_uses(Side side) {
  if (has_sends(side)) sends_use_ = {};
  if (has_receives(side) && footprint_ && setup_.terms().is_snapshot())
    receives_use_ = use_of(footprint_->receives, words_.ends_receives);
  if (has_receives(side)) receives_use_ = {};
}
detail::MemoryUse ExchangeRunner::use_of(const ExchangeFootprint::Parts& parts, const char* completion) {
  return {setup_.terms().world.context(), parts, words_.name, completion, started_at_};
}

// Progress while the rank waits for something else, or polls.

void ExchangeRunner::stay_under_way() {
  if (progress_.needs_no_peer())
    leave_list();
  else
    setup_.terms().world.under_way().join(*this);
}
void ExchangeRunner::move_on(Meanwhile meanwhile) {
  struct HavingTime {
    ExchangeProgress& progress;
    HavingTime(ExchangeProgress& of, bool has_time) : progress(of) { progress.set_has_time(has_time); }
    HavingTime(const HavingTime&) = delete;
    HavingTime& operator=(const HavingTime&) = delete;
    ~HavingTime() { progress.set_has_time(false); }
  } having(progress_, meanwhile == Meanwhile::waits);
  const detail::CoveredCalls apart(setup_.terms().world.context(), false);
  advance();
}
void ExchangeRunner::advance() {
  progress_.advance_aside();
  if (progress_.needs_no_peer()) leave_list();
}

void ExchangeRunner::leave(Side side) {
  progress_.leave(side, Leaving::done);
  advance();
}

void ExchangeRunner::withdraw() noexcept {
  if (process_.is_here()) {  // in a forked child, the messages belong to the parent
    leave_list();
    const bool fails = setup_.terms().world.is_failing_since(exceptions_before_);
    progress_.leave(Side::both, fails ? Leaving::failing : Leaving::done);
    if (recorder_) recorder_->withdrawn();
    stop_recording();
    sends_use_ = {};
    receives_use_ = {};
  }
  if (ExchangeObserver* const observer = std::exchange(observer_, nullptr)) observer->withdrawn();
}

Schedule ExchangeRunner::schedule() const noexcept {
  if (!setup_.messages().any(true)) return Schedule::direct;
  return setup_.messages().any(false) ? Schedule::automatic : Schedule::staged;
}

std::string ExchangeRunner::explain() const {
  const ExchangeMessages& messages = setup_.messages();
  return tranship::explain({.asked = setup_.terms().options.schedule,
                            .sources = setup_.terms().options.sources,
                            .measured = measured_,
                            .receives = messages.receives,
                            .sends = messages.sends,
                            .own = messages.own,
                            .way = messages.way,
                            .traffic_bytes = messages.traffic,
                            .progress = setup_.terms().world.progress()});
}

}  // namespace tranship
