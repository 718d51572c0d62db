#include "tranship/plan/joined.hpp"

#include <tranship/base/fail.hpp>
#include <tranship/plan/enum_names.hpp>

namespace tranship {

TransferPlan joined(std::vector<TransferPlan> plans) {
  if (plans.empty()) throw_error(ErrorCode::invalid_use, "no plans are given to join; at least 1 is needed");
  TransferPlan out = std::move(plans[0]);
  for (std::size_t i = 1; i < plans.size(); ++i) {
    TransferPlan& plan = plans[i];
    if (plan.kind != out.kind || plan.rank != out.rank)
      throw_error(ErrorCode::mismatch, "a plan of kind {} of rank {} cannot be joined to one of kind {} of rank {}",
                  name_of(plan.kind), plan.rank, name_of(out.kind), out.rank);
    const int slots = int(out.slots.size()), grids = int(out.peer_grids.size());
    const auto append = [&](auto& to, auto& from, auto... slot_members) {
      for (auto& one : from) {
        ((one.*slot_members += slots), ...);
        to.push_back(std::move(one));
      }
    };
    for (auto* groups : {&plan.receives, &plan.sends})
      for (TransferGroup& group : *groups)
        if (group.peer_grid >= 0) group.peer_grid += grids;
    append(out.receives, plan.receives, &TransferGroup::source_slot, &TransferGroup::target_slot);
    append(out.sends, plan.sends, &TransferGroup::source_slot, &TransferGroup::target_slot);
    append(out.indexed_receives, plan.indexed_receives, &IndexedTransfer::source_slot, &IndexedTransfer::target_slot);
    append(out.indexed_sends, plan.indexed_sends, &IndexedTransfer::source_slot, &IndexedTransfer::target_slot);
    append(out.fills_before, plan.fills_before, &LocalFill::slot);
    append(out.fills_after, plan.fills_after, &LocalFill::slot);
    append(out.slots, plan.slots);
    append(out.peer_grids, plan.peer_grids);
  }
  return out;
}

}  // namespace tranship
