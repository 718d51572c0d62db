// Planning a redistribution: fill every slice of the target, overlap included, from the owners in the source.
#pragma once

#include <optional>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Boxes of the same extents in two arrays, by their first cells.
struct SubArray {
  Indices source;
  Indices target;
  Indices extents;
};

struct RedistributionOptions {
  /// Chooses among the owners of a replicated source: the nearest, ties shared out evenly. Without it a rank prefers
  /// its own copy. All ranks must pass the same function.
  std::optional<Distance> distance = {};
  /// Moves this box of the source to that of the target, instead of all. The target's copies of these cells in overlap
  /// are filled as well, across toroidal edges, too; no other cell is touched. Not for indexed distributions.
  std::optional<SubArray> part = {};
};

/// The moves that touch `rank` when an array goes from `source` (slot 0) to `target` (slot 1). The rank sets may be
/// equal, overlap or be disjoint; either side may be indexed, whatever dimensions the other one cuts. Local: a rank
/// plans for itself, or for any other, and sends nothing. Time and size depend on the number of parts and on block
/// sizes, never on the extents (of indexed distributions: on the rank's ids); the size is bounded before planning
/// begins. Throws `mismatch` when extents (without a part) or element types differ; `invalid_use` for a part that lies
/// outside; `unsupported` when a rank's plan may have more than 2^22 runs, some 300 MB, or 2^27 slices to look at,
/// seconds.
TransferPlan plan_redistribution(const ArraySpec& source, const ArraySpec& target, Rank rank,
                                 const RedistributionOptions& options = {});

/// Cells of the target part with ordinal `target_ordinal` (overlap within the array included) that the owners in the
/// source part `source_ordinal` can give. Structured distributions without replicas.
Index shared_cells(const Distribution& source, Index source_ordinal, const Distribution& target, Index target_ordinal);

}  // namespace tranship
