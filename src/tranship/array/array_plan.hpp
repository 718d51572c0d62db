// Private: ArrayPlan, a plan with the arrays that its slots stand for.
#pragma once

#include <string>
#include <vector>

#include <tranship/array/ghosts/coherence.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// An array that an exchange moves, and what messages call it.
struct NamedArray {
  ArrayRef array;
  std::string name;
};

/// The arrays that a slot of a plan stands for, and what the plan does to them.
struct ArraySlot {
  ArrayChange change;
  std::vector<NamedArray> arrays;
};
struct ArrayPlan {
  TransferPlan plan;
  std::vector<ArraySlot> slots;
};

}  // namespace tranship
