// Private: What running a plan reads and writes on this rank, as regions of its local arrays.
#pragma once

#include <vector>

#include <tranship/memory/region.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// The cells of one slot, in local indices (of an indexed array: the number of the id, then the whole dimensions).
/// Disjoint.
struct TouchedCells {
  Region read;
  Region written;   ///< whatever they held before
  Region combined;  ///< read and written
};

/// One for each slot.
std::vector<TouchedCells> touched_cells(const TransferPlan& plan);

}  // namespace tranship
