// Private: ExchangeRunner implements the calls of one rank: start(), test() and finish() over the list of messages that
// set-up has made. It waits and polls, lets the exchange progress in other waits of the rank, and tells the observers.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <tranship/fabric/under_way.hpp>
#include <tranship/run/exchange_footprint.hpp>
#include <tranship/run/exchange_progress.hpp>
#include <tranship/run/exchange_recorder.hpp>
#include <tranship/run/exchange_schedule.hpp>
#include <tranship/run/exchange_setup.hpp>

namespace tranship {

class ExchangeRunner final : public UnderWay::Item, public std::enable_shared_from_this<ExchangeRunner> {
 public:
  using Side = Exchange::Side;

  /// Not collective; set_up() is.
  ExchangeRunner(World& world, TransferPlan plan, ExchangeSlots slots, ExchangeOptions options, CallSite where)
      : setup_(world, std::move(plan), std::move(slots), options, where),
        progress_(setup_.terms(), setup_.messages()) {}
  ~ExchangeRunner() { withdraw(); }
  ExchangeRunner(const ExchangeRunner&) = delete;
  ExchangeRunner& operator=(const ExchangeRunner&) = delete;

  void set_up(std::vector<Measured> measured = {});
  /// Valid until the exchange is withdrawn. One observer beside the log's recorder.
  void set_observer(ExchangeObserver* observer) { observer_ = observer; }

  void set_words(const Exchange::Words& words) { words_ = words; }
  void bind(std::span<const StridedView> views);
  void start(Side side, CallSite where);
  bool test(Side side, CallSite where);
  void finish(Side side, CallSite where);
  void leave(Side side);
  void advance();
  /// Afterwards no peer touches this rank's memory or waits for it for ever, and this rank touches none of theirs. It
  /// may still be inside move_on() (kept()).
  void withdraw() noexcept;

  void check_process() const { process_.check(setup_.terms().rank()); }
  bool start_may_wait() const noexcept { return observer_ && observer_->start_may_wait(); }
  bool peer_has_ended(Side side) const { return progress_.peer_has_ended(side); }
  const TransferPlan& plan() const noexcept { return setup_.terms().plan; }
  Schedule schedule() const noexcept;
  std::string explain() const;

 private:
  class Waiting;

  std::shared_ptr<void> kept() override { return weak_from_this().lock(); }
  void move_on(Meanwhile meanwhile) override;
  void stay_under_way();
  void leave_list() noexcept { UnderWay::Item::leave(); }

  void check_can_start(Side side) const;
  void check_not_in_flight(Side side) const;
  void poll(Side side, CallSite where);
  void end_epoch(Side side);

  /// Calls f(observer) for all observers.
  template <class F>
  void tell(F&& f) {
    if (observer_) f(*observer_);
    if (recorder_) f(*recorder_);
  }
  /// Runs a call that returns true when the side is complete, and tells the observers of completion or failure.
  template <class Call>
  bool observed(Side side, CallSite where, Call&& call);
  void stop_recording() noexcept;

  /// Declares the memory that runs touch, for a simulation that looks for races.
  void begin_uses(Side side, CallSite where);
  void end_uses(Side side);
  detail::MemoryUse use_of(const ExchangeFootprint::Parts& parts, const char* completion);

  ExchangeSetup setup_;
  ExchangeProgress progress_;
  std::vector<Measured> measured_;
  ExchangeObserver* observer_ = nullptr;
  std::optional<ExchangeRecorder> recorder_;    // of this run, while a log exists
  std::optional<ExchangeFootprint> footprint_;  // of the arrays that are bound now
  detail::MemoryUse sends_use_, receives_use_;
  CallSite started_at_{};  // set while uses are watched
  Exchange::Words words_ = {};
  const detail::ProcessOfRank process_ = {};
  int polls_left_ = 0;  // calls of test() until it checks the world
  int exceptions_before_ = std::uncaught_exceptions();
};

}  // namespace tranship
