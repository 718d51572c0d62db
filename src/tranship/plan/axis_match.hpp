// Private: One dimension of planning: which cells of a source part a target part wants, as runs.
//
// The source owns periodic families of slices, the target wants periodic families of intervals. Two such families meet
// in few families again (comb.hpp), or in a lattice of them (runs.hpp). Nothing here depends on the extent. N
// dimensions are products of this.
#pragma once

#include <vector>

#include <tranship/layout/partition.hpp>
#include <tranship/plan/runs.hpp>

namespace tranship {

/// The stretch of a slice, relative to its first owned cell, that a target part wants, and how its coordinates continue
/// in the source: y = sign * x + offset. Around a torus, the turns of one overlap are a family of period 0: they want
/// the same cells of the source, one `pitch` apart in the target.
struct AxisWant {
  SliceFamily family;
  Index lower = 0;
  Index upper = 0;
  int sign = 1;
  Index offset = 0;

  /// The wanted cells of the first slice, in source coordinates.
  Interval source_interval() const noexcept;
};

/// Appends the runs and lattices that source part `part` gives to `want`. An interface that two parts own is given by
/// the one that is nearer to the slice of the target, in this dimension alone: to its first point and those before it
/// by the part above, to its last point and those behind it by the part below, so that a part's own points are its own;
/// to a point inside the slice by the part above, as Distribution::owner says. Which stretch of the slice is wanted,
/// and how it was cut, changes nothing.
void append_runs(const AxisParts& source, Index part, const AxisWant& want, AxisEntry& entry);

/// Parts of the source that may give something to `want`, increasing; all other parts give nothing. Among replicas only
/// part 0.
std::vector<Index> parts_giving(const AxisParts& source, const AxisWant& want);

/// What becomes of a stretch of a slice: cells that a source gives, zeros, or copies of a cell of the same local array.
enum class AxisPieceKind : std::uint8_t { given, zero, replicated };

struct AxisPiece {
  AxisPieceKind kind = AxisPieceKind::given;
  AxisWant want;
  Index from_local = 0;  ///< replicated: local index of the cell to copy

  /// The stretch on the target's side alone; of a replicated piece with its source in the same local array.
  Run local_run() const noexcept;
};

/// Cuts the stretch [lower, upper) of a family's slices at the edges of the array and applies the edge policies. Cells
/// beyond an open edge are left out.
std::vector<AxisPiece> resolve_edges(const AxisParts& target, const SliceFamily& family, Index lower, Index upper);

/// All that one part stores along one dimension, cut at the edges.
std::vector<AxisPiece> stored_pieces(const AxisParts& target, Index part);

}  // namespace tranship
