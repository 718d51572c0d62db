// Plans a halo exchange: the overlap of every slice is filled from the owners of its cells.
//
// One planner serves all cases: a box, a star or a stencil of offsets; one distribution or several in one exchange;
// toroidal edges; tiles joined by a Tiling, where rotation, component swaps and signs follow from the edge's index map;
// star forests.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <tranship/layout/tiling.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

enum class StencilKind : std::uint8_t {
  box,      ///< all overlap cells, corners included
  star,     ///< only the overlap cells beyond one side: no corners
  offsets,  ///< exactly the cells that an owned cell reaches by one of the offsets (and the edge cells of which some of
            ///< these are copies, at replicated edges)
};

struct Stencil {
  StencilKind kind = StencilKind::box;
  std::vector<Indices> offsets = {};
};

struct HaloOptions {
  Stencil stencil = {};
  /// How many overlap cells are filled on each side that stores any; at most the smallest width that a side stores.
  /// Empty: all.
  std::optional<Index> depth = {};
  /// Depths per dimension, at most the stored width; they override `depth`. Empty: use `depth`.
  Indices depth_low = {};
  Indices depth_high = {};
  /// Restricts the halo to ghosts of these global cells, given as disjoint boxes per array (for an indexed array: of
  /// ids, in one dimension). A ghost beyond a toroidal edge belongs to the cell to which it wraps, and one beyond
  /// another edge to the cell at that edge. Empty: all ghosts of all arrays. Must be equal on all ranks.
  std::vector<std::vector<Box>> cells = {};
};

/// Plans the halo of several arrays at once; their slots are in the given order. Everything that goes from one rank to
/// another is one message. The arrays need not have anything in common. Local: any rank can plan for any rank without
/// communication. Time and size depend on the number of slots and offsets, never on the extents. Throws `invalid_use`
/// when a depth or an offset reaches beyond the stored overlap; throws `unsupported` for a replicated array, and when a
/// rank's plan may have more than 2^22 runs (about 300 MB).
TransferPlan plan_halo(std::span<const ArraySpec> fields, Rank rank, const HaloOptions& options = {});

/// A field on a tiling: one array per tile, and the dimensions of the array that are the tile's.
struct TiledField {
  std::vector<ArraySpec> tiles;
  std::vector<int> tile_dims;
};

/// A field that holds one component of a vector, along one dimension of its tiles. cubed_sphere, doubly_periodic and
/// folded count tile dimensions (y, x): the component along x has `along` = 1.
struct VectorField {
  int field = -1;
  int along = -1;
};

struct TiledHaloOptions : HaloOptions {
  /// Vectors; each names one field for every dimension of the tiles, in any order. Crossing an edge swaps and negates
  /// the components as the edge's map says.
  std::vector<std::vector<VectorField>> vectors = {};
};

/// Plans the halo of fields on a tiling. Field f on tile t has slot f * tiles + t. In the tile dimensions the edge
/// policy must be `open`: the tiling continues the tile there, and cells that it does not reach (the corners of a cube)
/// are not changed. Also throws `invalid_use` for another edge policy and for vectors that do not name each dimension
/// once, and `mismatch` for arrays that do not have the extents of their tiles.
TransferPlan plan_halo(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                       const TiledHaloOptions& options = {});

}  // namespace tranship
