// Plans a redistribution: every slice of the target, overlap included, is filled from the owners in the source.
#pragma once

#include <optional>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Boxes of equal extents in two arrays, given by their first cells.
struct SubArray {
  Indices source;
  Indices target;
  Indices extents;
};

struct RedistributionOptions {
  /// Chooses among the owners of a replicated source: the nearest one, with ties spread evenly. Without it, a rank
  /// prefers its own copy. All ranks must pass the same function.
  std::optional<Distance> distance = {};
  /// Moves only this box of the source to the box of the target. Copies of these cells in the target's overlap are
  /// filled as well, also across toroidal edges; no other cell is changed. Not allowed for indexed distributions.
  std::optional<SubArray> part = {};
};

/// Plans the moves that touch `rank` when an array goes from `source` (slot 0) to `target` (slot 1). The rank sets may
/// be equal, overlap or be disjoint; either side may be indexed, whatever dimensions the other one cuts. Local: any
/// rank can plan for any rank without communication. Time and size depend on the number of parts and on block sizes,
/// never on the extents (for indexed distributions: on the rank's ids); the size is bounded before planning begins.
/// Throws `mismatch` when extents (without a part) or element types differ, or when no rank owns a wanted id;
/// `invalid_use` for a part that lies outside; `unsupported` when a rank's plan may have more than 2^22 runs (about 300
/// MB) or looks at more than 2^27 slices (seconds).
TransferPlan plan_redistribution(const ArraySpec& source, const ArraySpec& target, Rank rank,
                                 const RedistributionOptions& options = {});

/// Returns the number of cells of the target part with ordinal `target_ordinal` (overlap within the array included)
/// that the source part `source_ordinal` owns. Only for structured distributions without replicas.
Index shared_cells(const Distribution& source, Index source_ordinal, const Distribution& target, Index target_ordinal);

}  // namespace tranship
