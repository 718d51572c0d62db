#include "tranship/array/array_exchange.hpp"

#include <tranship/array/array_plan.hpp>
#include <tranship/array/leased_exchange.hpp>
#include <tranship/array/located.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::vector<std::vector<LeasedArray>> leased(const std::vector<ArraySlot>& slots) {
  std::vector<std::vector<LeasedArray>> out;
  for (const ArraySlot& slot : slots) {
    auto& arrays = out.emplace_back();
    for (const NamedArray& one : slot.arrays) arrays.push_back({one.array.coherence.get(), one.name});
  }
  return out;
}

/// The world of all arrays, none of which is const and written.
World& checked(const std::vector<ArraySlot>& slots, CallSite where) {
  return located(where, [&]() -> World& {
    std::vector<ArrayRef> arrays;
    for (const ArraySlot& slot : slots)
      for (const NamedArray& one : slot.arrays) {
        if (one.array.is_const && slot.change.kind != ChangeKind::read)
          throw_error(ErrorCode::invalid_use, "{} is const, and would be written (rank {})", one.name,
                      one.array.world->rank());
        arrays.push_back(one.array);
      }
    return common_world(arrays);
  });
}

}  // namespace

struct ArrayExchange::State {
  std::vector<ArraySlot> kept;  // before the exchange, which uses their memory until it ends
  LeasedExchange exchange;

  State(ArrayPlan plan, ExchangeOptions options, CallSite where)
      : kept(std::move(plan.slots)),
        exchange(checked(kept, where), std::move(plan.plan), leased(kept), options, where) {}
};

ArrayExchange::ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where)
    : state_(std::make_unique<State>(std::move(plan), options, where)) {}

ArrayExchange::~ArrayExchange() = default;
ArrayExchange::ArrayExchange(ArrayExchange&&) noexcept = default;

void ArrayExchange::start(CallSite where) {
  for (const ArraySlot& slot : state_->kept)
    for (const NamedArray& one : slot.arrays) one.array.coherence->before_exchange(slot.change, where);
  state_->exchange.start(where);
  for (const ArraySlot& slot : state_->kept)
    for (const NamedArray& one : slot.arrays) one.array.coherence->note_exchange(slot.change);
}

bool ArrayExchange::start_may_wait() const noexcept {
  return state_->exchange.start_may_wait();
}

bool ArrayExchange::test(CallSite where) {
  return state_->exchange.test(where);
}

void ArrayExchange::finish(CallSite where) {
  state_->exchange.finish(where);
}

Schedule ArrayExchange::schedule() const noexcept {
  return state_->exchange.schedule();
}

const TransferPlan& ArrayExchange::plan() const noexcept {
  return state_->exchange.plan();
}

std::string ArrayExchange::explain() const {
  return state_->exchange.explain();
}

}  // namespace tranship
