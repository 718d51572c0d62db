// Private: Joins several plans into one, in which everything that goes from one rank to another is one message.
#pragma once

#include <vector>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Takes at least one plan, all of one kind and rank. The slots of each plan follow those of the plan before it.
TransferPlan joined(std::vector<TransferPlan> plans);

}  // namespace tranship
