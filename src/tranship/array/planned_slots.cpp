#include "tranship/array/planned_slots.hpp"

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>

namespace tranship {
namespace {

std::string slot_name(std::size_t i, std::size_t width) {
  if (width == 1) return "an array";
  return i == 0 ? "a source" : "a target";
}

}  // namespace

std::vector<std::size_t> slots_of(const TransferPlan& plan, std::span<const ArrayRef> arrays, std::size_t width) {
  std::vector<std::uint64_t> fingerprints;
  for (const ArrayRef& array : arrays) fingerprints.push_back(fingerprint_of(*array.spec));
  const auto fits = [&](std::size_t slot, std::size_t i) { return plan.slots[slot].fingerprint == fingerprints[i]; };
  const bool are_in_order = plan.slots.size() == arrays.size();
  const std::size_t slots = plan.slots.size() / width * width;
  std::vector<std::size_t> out;
  std::vector<bool> is_used(slots);
  for (std::size_t first = 0; first < arrays.size(); first += width) {
    const auto first_other = [&](std::size_t slot) {
      std::size_t i = 0;
      while (i < width && fits(slot + i, first + i)) ++i;
      return i;
    };
    std::size_t slot = are_in_order ? first : 0;
    if (!are_in_order)
      while (slot < slots && first_other(slot) < width) slot += width;
    // If only one slot is possible, the message says how that slot differs.
    const std::size_t shown = are_in_order ? first : 0;
    if (const bool is_one = are_in_order || slots == width; slot >= slots || first_other(slot) < width) {
      const std::size_t other = is_one ? first_other(shown) : 0;
      const ArrayRef& array = arrays[first + other];
      const std::string here = fmt::format("given is {}, with local extents [{}] (rank {})", describe(array),
                                           to_string(array.view.extents), array.world->rank());
      if (is_one)
        throw_error(ErrorCode::mismatch, "the plan was made for {} of type {} with local extents [{}]; {}",
                    slot_name(other, width), tranship::name_of(plan.slots[shown + other].type),
                    to_string(plan.slots[shown + other].local_extents), here);
      throw_error(ErrorCode::mismatch, "the plan has {}, and none has this layout; {}",
                  amount(plan.slots.size(), "array"), here);
    }
    for (std::size_t i = 0; i < width; ++i) {
      out.push_back(slot + i);
      is_used[slot + i] = true;
    }
  }
  for (std::size_t slot = 0; slot < plan.slots.size(); ++slot)
    if (slot >= slots || !is_used[slot])
      throw_error(
          ErrorCode::mismatch,
          "the plan has {}; none of the {} given has the layout of number {}, with local extents [{}] (rank {})",
          amount(plan.slots.size(), "array"), amount(arrays.size(), "array"), slot,
          to_string(plan.slots[slot].local_extents), plan.rank);
  return out;
}

}  // namespace tranship
