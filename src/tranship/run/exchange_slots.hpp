// Private: the arrays given to an exchange, slot by slot, and their checks.
#pragma once

#include <vector>

#include <tranship/run/exchange.hpp>

namespace tranship {

/// By slot of the plan; several arrays of one layout may share a slot.
using ExchangeSlots = std::vector<std::vector<ExchangeArray>>;

/// One array per slot, named by its number in the plan.
ExchangeSlots slots_of(const std::vector<StridedView>& views);

/// Throws `mismatch` or `invalid_use` when arrays do not fit the slots of the plan, when the plan needs ranks that the
/// world does not have, and when written memory overlaps other memory of the exchange; throws `unsupported` for memory
/// of devices. An array with elements and no memory is `invalid_use`, except for snapshots, whose arrays may be bound
/// later.
void check_slots(const TransferPlan& plan, const ExchangeSlots& slots, int world_size, Sources sources);
/// Checks the arrays alone; all must have memory.
void check_arrays(const TransferPlan& plan, const ExchangeSlots& slots);
/// Throws `invalid_use` for an array with elements and no memory.
void check_has_memory(const ExchangeArray& array, Rank rank);

}  // namespace tranship
