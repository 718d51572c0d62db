#include <tranship/array/array_exchange.hpp>
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

ArrayExchange::ArrayExchange(ArrayPlan plan, ExchangeOptions options, CallSite where)
    : KeptArrays{std::move(plan.slots)},
      LeasedExchange(checked(kept, where), std::move(plan.plan), leased(kept), options, where) {}

void ArrayExchange::start(CallSite where) {
  for (const ArraySlot& slot : kept)
    for (const NamedArray& one : slot.arrays) one.array.coherence->before_exchange(slot.change, where);
  LeasedExchange::start(where);
  for (const ArraySlot& slot : kept)
    for (const NamedArray& one : slot.arrays) one.array.coherence->note_exchange(slot.change);
}

}  // namespace tranship
