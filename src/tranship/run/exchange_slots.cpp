#include "tranship/run/exchange_slots.hpp"

#include <algorithm>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/lower/view_overlap.hpp>

namespace tranship {
namespace {

void check_view(const ExchangeArray& array, const Slot& slot, Rank rank) {
  const StridedView& view = array.view;
  if (view.type != slot.type)
    throw_error(ErrorCode::mismatch, "{} has elements {}, the plan {} (rank {})", array.name, name_of(view.type),
                name_of(slot.type), rank);
  if (!(view.extents == slot.local_extents))
    throw_error(ErrorCode::mismatch, "{} has local extents [{}], the plan [{}] (rank {})", array.name,
                to_string(view.extents), to_string(slot.local_extents), rank);
  if (view.strides.size() != view.extents.size())
    throw_error(ErrorCode::invalid_use, "{} has {} and {}: give one stride per extent (rank {})", array.name,
                amount(view.extents.size(), "extent"), amount(view.strides.size(), "stride"), rank);
  if (view.imaginary && !is_complex(view.type))
    throw_error(ErrorCode::invalid_use, "{} of {} has an imaginary plane (rank {})", array.name, name_of(view.type),
                rank);
  if (!view.device.is_host())
    throw_error(ErrorCode::unsupported,
                "{} lies on {}; exchanges move memory of the host, so take a lease of it there (rank {})", array.name,
                to_string(view.device), rank);
}

/// By slot: true when this rank writes it.
std::vector<bool> written_slots(const TransferPlan& plan) {
  std::vector<bool> out(plan.slots.size(), false);
  for (const TransferGroup& group : plan.receives)
    if (group.combinations() > 0) out[std::size_t(group.target_slot)] = true;
  for (const IndexedTransfer& list : plan.indexed_receives) out[std::size_t(list.target_slot)] = true;
  for (const auto* fills : {&plan.fills_before, &plan.fills_after})
    for (const LocalFill& fill : *fills) out[std::size_t(fill.slot)] = true;
  return out;
}

/// Written memory must overlap no other, because schedules move in any order.
void check_memory(const TransferPlan& plan, const ExchangeSlots& slots) {
  struct Known {
    const ExchangeArray* array;
    ByteRange range;
    bool is_written;
    std::size_t number;  // in the order in which arrays were given
  };
  const std::vector<bool> written = written_slots(plan);
  std::vector<Known> known;
  for (std::size_t s = 0; s < slots.size(); ++s)
    for (const ExchangeArray& array : slots[s]) {
      if (!array.view.data) continue;
      const ByteRange range = range_of(array.view);
      if (range.lower < range.upper) known.push_back({&array, range, written[s], known.size()});
      if (written[s] && overlaps_itself(array.view))
        throw_error(ErrorCode::invalid_use,
                    "{} is written, and strides [{}] make elements of extents [{}] share memory ({}) (rank {})",
                    array.name, to_string(array.view.strides), to_string(array.view.extents), to_string(range),
                    plan.rank);
    }
  std::stable_sort(known.begin(), known.end(),
                   [](const Known& a, const Known& b) { return a.range.lower < b.range.lower; });
  for (std::size_t i = 0; i < known.size(); ++i)
    for (std::size_t j = i + 1; j < known.size() && known[j].range.lower < known[i].range.upper; ++j) {
      const Known& first =
          std::min(known[i], known[j], [](const Known& a, const Known& b) { return a.number < b.number; });
      const Known& second = &first == &known[i] ? known[j] : known[i];
      if ((first.is_written || second.is_written) && share_bytes(first.array->view, second.array->view))
        throw_error(ErrorCode::invalid_use, "{} ({}) and {} ({}) share memory, and the exchange writes {} (rank {})",
                    first.array->name, to_string(first.range), second.array->name, to_string(second.range),
                    first.is_written && second.is_written ? "both"
                    : first.is_written                    ? first.array->name
                                                          : second.array->name,
                    plan.rank);
    }
}

}  // namespace

ExchangeSlots slots_of(const std::vector<StridedView>& views) {
  ExchangeSlots out;
  for (const StridedView& view : views)
    out.push_back({{.view = view, .name = fmt::format("array {}", out.size()), .spec = {}}});
  return out;
}

void check_has_memory(const ExchangeArray& array, Rank rank) {
  const StridedView& view = array.view;
  if (view.data) return;
  if (const Index elements = checked_product(view.extents); elements > 0)
    throw_error(ErrorCode::invalid_use, "{} of {} has no memory (rank {})", array.name, amount(elements, "element"),
                rank);
}

void check_arrays(const TransferPlan& plan, const ExchangeSlots& slots) {
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const ExchangeArray& array : slots[i]) {
      check_view(array, plan.slots[i], plan.rank);
      check_has_memory(array, plan.rank);
    }
  check_memory(plan, slots);
}

void check_slots(const TransferPlan& plan, const ExchangeSlots& slots, int world_size, Sources sources) {
  if (slots.size() != plan.slots.size())
    throw_error(ErrorCode::invalid_use, "the plan has {}, but arrays are given for {} (rank {})",
                amount(plan.slots.size(), "slot"), slots.size(), plan.rank);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i].empty())
      throw_error(ErrorCode::invalid_use, "no array is given for slot {} of the plan (rank {})", i, plan.rank);
    for (const ExchangeArray& array : slots[i]) {
      check_view(array, plan.slots[i], plan.rank);
      if (sources == Sources::in_place) check_has_memory(array, plan.rank);
    }
  }
  const auto check_transfer = [&](Rank peer, int source_slot, int target_slot) {
    if (peer < 0 || peer >= world_size)
      throw_error(ErrorCode::invalid_use, "the plan needs rank {}, the world has {} (rank {})", peer, world_size,
                  plan.rank);
    const std::size_t from = slots[std::size_t(source_slot)].size(), to = slots[std::size_t(target_slot)].size();
    if (from != to)
      throw_error(ErrorCode::invalid_use, "the plan moves slot {}, which has {}, to slot {}, which has {} (rank {})",
                  source_slot, amount(from, "array"), target_slot, to, plan.rank);
  };
  const auto check_group = [&](const Transfer& t) {
    check_transfer(t.peer, t.group->source_slot, t.group->target_slot);
  };
  plan.for_each_receive(check_group);
  plan.for_each_send(check_group);
  for (const auto* lists : {&plan.indexed_receives, &plan.indexed_sends})
    for (const IndexedTransfer& list : *lists) check_transfer(list.peer, list.source_slot, list.target_slot);
  check_memory(plan, slots);
}

}  // namespace tranship
