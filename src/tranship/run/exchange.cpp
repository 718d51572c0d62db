#include "tranship/run/exchange.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/run/exchange_runner.hpp>
#include <tranship/run/located.hpp>

namespace tranship {
namespace {

using Slots = std::vector<std::vector<ExchangeArray>>;

void name_all(Slots& slots) {
  int number = 0;
  for (auto& arrays : slots)
    for (ExchangeArray& array : arrays) {
      if (array.name.empty()) array.name = fmt::format("array {}", number);
      ++number;
    }
}

/// Collective: measures each schedule. Overwrites the targets.
std::vector<Measured> measure(World& world, const TransferPlan& plan, const Slots& slots, CallSite where) {
  std::vector<Measured> out;
  for (const Schedule schedule : schedules_to_measure()) {
    const auto candidate =
        std::make_shared<ExchangeRunner>(world, plan, slots, ExchangeOptions{.schedule = schedule}, where);
    candidate->set_up();
    out.push_back({schedule, time_ns(world, where, [&] {
                     candidate->start(Exchange::Side::both, where);
                     candidate->finish(Exchange::Side::both, where);
                   })});
  }
  return out;
}

}  // namespace

ExchangeCalls::ExchangeCalls(World& world, TransferPlan plan, Slots slots, ExchangeOptions options, CallSite where) {
  located(where, [&] {
    name_all(slots);
    std::vector<Measured> measured;
    if (options.schedule == Schedule::measured) {
      options.schedule = Schedule::automatic;
      if (!accumulates(plan.kind) && options.sources == Sources::in_place) {
        measured = measure(world, plan, slots, where);
        const auto faster = [](const Measured& a, const Measured& b) { return a.ns < b.ns; };
        options.schedule = std::min_element(measured.begin(), measured.end(), faster)->schedule;
      }
    }
    runner_ = std::make_shared<ExchangeRunner>(world, std::move(plan), std::move(slots), options, where);
    runner_->set_up(std::move(measured));
  });
}

ExchangeCalls::~ExchangeCalls() {
  if (runner_) runner_->withdraw();
}
ExchangeCalls::ExchangeCalls(ExchangeCalls&&) noexcept = default;

void ExchangeCalls::set_observer(std::unique_ptr<ExchangeObserver> observer) {
  observer_ = std::move(observer);
  runner_->set_observer(observer_.get());
}

ExchangeRunner& ExchangeCalls::runner() const {
  runner_->check_process();
  return *runner_;
}

void ExchangeCalls::start(CallSite where) {
  located(where, [&] { runner().start(Exchange::Side::both, where); });
}
bool ExchangeCalls::start_may_wait() const noexcept {
  return runner_->start_may_wait();
}
bool ExchangeCalls::test(CallSite where) {
  return located(where, [&] { return runner().test(Exchange::Side::both, where); });
}
void ExchangeCalls::finish(CallSite where) {
  located(where, [&] { runner().finish(Exchange::Side::both, where); });
}
Schedule ExchangeCalls::schedule() const noexcept {
  return runner_->schedule();
}
const TransferPlan& ExchangeCalls::plan() const noexcept {
  return runner_->plan();
}
std::string ExchangeCalls::explain() const {
  return runner_->explain();
}

Exchange::Exchange(World& world, TransferPlan plan, const std::vector<StridedView>& slots, ExchangeOptions options,
                   CallSite where)
    : Exchange(world, std::move(plan), slots_of(slots), options, where) {}

Exchange::Exchange(World& world, TransferPlan plan, Slots slots, ExchangeOptions options, CallSite where)
    : ExchangeCalls(world, std::move(plan), std::move(slots), options, where) {}

void Exchange::bind(std::span<const StridedView> arrays) {
  runner().bind(arrays);
}
void Exchange::start(Side side, CallSite where) {
  runner().start(side, where);
}
bool Exchange::test(Side side, CallSite where) {
  return runner().test(side, where);
}
void Exchange::finish(Side side, CallSite where) {
  runner().finish(side, where);
}
void Exchange::leave(Side side) {
  runner().leave(side);
}
void Exchange::set_words(const Words& words) {
  runner_->set_words(words);
}
void Exchange::advance() {
  runner().advance();
}
bool Exchange::peer_has_ended(Side side) const noexcept {
  return runner_->peer_has_ended(side);
}

}  // namespace tranship
