// Private: Planning in one dimension: which cells of a source part a target part wants, as runs.
//
// The source owns periodic families of slices, and the target wants periodic families of intervals. Two such families
// meet in a few families (comb.hpp) or in a lattice of them (runs.hpp). Nothing here depends on the extent. A plan in N
// dimensions is a product of such results.
#pragma once

#include <vector>

#include <tranship/layout/partition.hpp>
#include <tranship/plan/runs.hpp>

namespace tranship {

/// The stretch of a slice, relative to its first owned cell, that a target part wants, and the map of its coordinates
/// into the source: y = sign * x + offset. On a torus, the turns of one overlap are a family of period 0: they want the
/// same source cells, and lie one `pitch` apart in the target.
struct AxisWant {
  SliceFamily family;
  Index lower = 0;
  Index upper = 0;
  int sign = 1;
  Index offset = 0;

  /// Returns the wanted cells of the first slice, in source coordinates.
  Interval source_interval() const noexcept;
};

/// Appends the runs and lattices that source part `part` gives to `want`. If two parts own an interface, the one nearer
/// to the target's slice in this dimension gives it: the part above gives the slice's first point and points before it,
/// the part below gives its last point and points behind it. So a part's own points come from itself. A point inside
/// the slice comes from the part above, as in Distribution::owner. The choice depends on the slice alone, not on the
/// wanted stretch.
void append_runs(const AxisParts& source, Index part, const AxisWant& want, AxisEntry& entry);

/// Returns the parts of the source that may give something to `want`, in increasing order. For a replicated source,
/// only part 0.
std::vector<Index> parts_giving(const AxisParts& source, const AxisWant& want);

/// How a stretch of a slice is filled: with cells of a source, with zeros, or with copies of a cell of the same local
/// array.
enum class AxisPieceKind : std::uint8_t { given, zero, replicated };

struct AxisPiece {
  AxisPieceKind kind = AxisPieceKind::given;
  AxisWant want;
  Index from_local = 0;  ///< replicated: local index of the cell to copy

  /// Returns the target side of the stretch; for a replicated piece, with the source in the same local array.
  Run local_run() const noexcept;
};

/// Cuts the stretch [lower, upper) of a family's slices at the edges of the array and applies the edge policies. Omits
/// cells beyond a truncated or open edge.
std::vector<AxisPiece> resolve_edges(const AxisParts& target, const SliceFamily& family, Index lower, Index upper);

/// Returns everything that a part stores along one dimension, cut at the edges.
std::vector<AxisPiece> stored_pieces(const AxisParts& target, Index part);

}  // namespace tranship
