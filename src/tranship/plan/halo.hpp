// Planning a halo exchange: fill the overlap of every slice from the owners of its cells.
//
// One planner for all: a box, star or any stencil of offsets; one distribution or several fused; toroidal edges; tiles
// joined by a Tiling, where rotation, component swaps and signs follow from the edge's index map; star forests.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <tranship/layout/tiling.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

enum class StencilKind : std::uint8_t {
  box,      ///< all overlap cells, corners included
  star,     ///< overlap cells beyond one side only: no corners
  offsets,  ///< exactly the cells that some owned cell reaches by one of the offsets (and the cells at replicated edges
            ///< that these are copies of)
};

struct Stencil {
  StencilKind kind = StencilKind::box;
  std::vector<Indices> offsets = {};
};

struct HaloOptions {
  Stencil stencil = {};
  /// How many overlap cells are filled on each side that stores any, at most what the least of them stores; nothing:
  /// all.
  std::optional<Index> depth = {};
  /// The same per dimension, which takes precedence: at most what is stored there. Empty: as `depth` says.
  Indices depth_low = {};
  Indices depth_high = {};
  /// Disjoint boxes of each array: only ghosts of these global cells are filled (of an indexed array: of these ids, in
  /// one dimension). A ghost beyond a toroidal edge is one of the cell that it wraps to, beyond another edge of the
  /// cell at that edge. Empty: all ghosts of all arrays. The same on all ranks.
  std::vector<std::vector<Box>> cells = {};
};

/// The halo of several arrays at once (slots in the order given): what goes from one rank to another is one message.
/// The arrays may differ in everything. Local: a rank plans for itself, or for any other, and sends nothing. Time and
/// size depend on the number of slices and offsets, never on the extents. Throws `invalid_use` when a depth or an
/// offset reaches beyond the stored overlap; `unsupported` for a replicated array, and when a rank's plan may have more
/// than 2^22 runs, some 300 MB.
TransferPlan plan_halo(std::span<const ArraySpec> fields, Rank rank, const HaloOptions& options = {});

/// A field on a tiling: one array per tile, and which of its dimensions are the tile's.
struct TiledField {
  std::vector<ArraySpec> tiles;
  std::vector<int> tile_dims;
};

/// A field whose values are the components of a vector along one dimension of its tiles. cubed_sphere, doubly_periodic
/// and folded count tile dimensions (y, x): what points along x has `along` = 1.
struct VectorField {
  int field = -1;
  int along = -1;
};

struct TiledHaloOptions : HaloOptions {
  /// Vectors: each names one field for every dimension of the tiles, in any order. Crossing an edge swaps and negates
  /// them as the edge's map says.
  std::vector<std::vector<VectorField>> vectors = {};
};

/// The halo of fields on a tiling. The slot of field f on tile t is f * tiles + t. In the tile dimensions the edge
/// policy must be `open`: the tiling continues the tile there, and cells that it does not reach (a cube's corners) are
/// left alone. Throws also `invalid_use` for another edge policy and for vectors that do not name each dimension once,
/// and `mismatch` for arrays that do not have the extents of their tiles.
TransferPlan plan_halo(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                       const TiledHaloOptions& options = {});

}  // namespace tranship
