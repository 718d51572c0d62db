#include "tranship/array/array_exchange.hpp"

#include <utility>

#include <tranship/array/array_plan.hpp>
#include <tranship/array/leased_exchange.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/run/located.hpp>

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

/// Returns the world of all arrays. Throws `invalid_use` when the exchange would write a const array.
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

/// Keeps the arrays until no peer touches their memory, and tells their Coherence how an exchange changes their cells.
class ArrayChanges final : public ExchangeLeases {
 public:
  ArrayChanges(std::vector<ArraySlot> slots, const TransferPlan& plan)
      : ExchangeLeases(leased(slots), plan), slots_(std::move(slots)) {}

  void starting(CallSite where) override {
    for (const ArraySlot& slot : slots_)
      for (const NamedArray& one : slot.arrays) one.array.coherence->before_exchange(slot.change, where);
    ExchangeLeases::starting(where);
  }
  void started(CallSite) override {
    for (const ArraySlot& slot : slots_)
      for (const NamedArray& one : slot.arrays) one.array.coherence->note_exchange(slot.change);
  }

 private:
  std::vector<ArraySlot> slots_;
};

}  // namespace

ArrayExchange::ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where)
    : ExchangeCalls(checked(plan.slots, where), std::move(plan.plan), exchanged(leased(plan.slots)), options, where) {
  set_observer(std::make_unique<ArrayChanges>(std::move(plan.slots), this->plan()));
}

}  // namespace tranship
