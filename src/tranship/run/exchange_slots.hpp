// Private: the arrays that an exchange is given, slot by slot, and what is wrong with them.
#pragma once

#include <vector>

#include <tranship/run/exchange.hpp>

namespace tranship {

/// By slot of the plan; several arrays of one layout may share a slot.
using ExchangeSlots = std::vector<std::vector<ExchangeArray>>;

/// One array for each slot, called as it stands in a plan.
ExchangeSlots slots_of(const std::vector<StridedView>& views);

/// Throws `mismatch` and `invalid_use` where arrays do not fit the slots of the plan, where a plan needs ranks that the
/// world has not, and where memory that is written is shared with other memory of the exchange; `unsupported` for
/// memory of devices. An array with elements and no memory is `invalid_use`, except where all is bound later.
void check_slots(const TransferPlan& plan, const ExchangeSlots& slots, int world_size, Sources sources);
/// The same of the arrays alone, all of which have memory.
void check_arrays(const TransferPlan& plan, const ExchangeSlots& slots);
/// Throws `invalid_use` for an array that has elements and no memory.
void check_has_memory(const ExchangeArray& array, Rank rank);

}  // namespace tranship
