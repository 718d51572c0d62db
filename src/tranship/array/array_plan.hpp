// Private: ArrayPlan, a plan together with the arrays of its slots.
#pragma once

#include <string>
#include <vector>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// An array that an exchange moves, and its name in messages.
struct NamedArray {
  ArrayRef array;
  std::string name;
};

/// The arrays of one slot of a plan, and what the plan does to them.
struct ArraySlot {
  ArrayChange change;
  std::vector<NamedArray> arrays;
};
struct ArrayPlan {
  TransferPlan plan;
  std::vector<ArraySlot> slots;
};

}  // namespace tranship
