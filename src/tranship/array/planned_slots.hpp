// Private: which arrays the slots of a plan stand for that was made before.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <tranship/array/local_array.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// The slot of each array. `width` slots and arrays belong together: the one array of a halo, the source and the target
/// of a redistribution. A plan has such slots for each of them in order, or fewer: then one for each layout. Throws
/// `mismatch` where a layout has no slot, or a slot no array: a plan may be one of other arrays whose local extents are
/// the same.
std::vector<std::size_t> slots_of(const TransferPlan& plan, std::span<const ArrayRef> arrays, std::size_t width);

}  // namespace tranship
