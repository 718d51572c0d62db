// Private: matches arrays to the slots of a plan that was made before.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tranship/array/local_array.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Returns the slot of each array. `width` consecutive slots and arrays belong together: 1 for the array of a halo, 2
/// for source and target of a redistribution. A plan has such a group of slots for each group of arrays, in order, or
/// fewer: then one for each layout. Throws `mismatch` when a layout has no slot or a slot no array. Layouts are
/// compared and not only local extents, because a plan of other arrays may have the same local extents.
std::vector<std::size_t> slots_of(const TransferPlan& plan, std::span<const ArrayRef> arrays, std::size_t width);

}  // namespace tranship
