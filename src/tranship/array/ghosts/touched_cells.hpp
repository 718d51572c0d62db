// Private: touched_cells, which lists the local cells that a plan reads and writes on this rank.
#pragma once

#include <vector>

#include <tranship/memory/region.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// The cells of one slot, as disjoint regions of local indices (for an indexed array: the number of the id, then the
/// whole dimensions).
struct TouchedCells {
  Region read;
  Region written;   ///< overwritten, whatever they held before
  Region combined;  ///< read and written
};

/// Returns one entry for each slot.
std::vector<TouchedCells> touched_cells(const TransferPlan& plan);

}  // namespace tranship
