// Private: Several plans as one: what goes from one rank to another in any of them is one message.
#pragma once

#include <vector>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// The slots of each plan follow those of the one before. The plans are of one kind and rank; at least one.
TransferPlan joined(std::vector<TransferPlan> plans);

}  // namespace tranship
