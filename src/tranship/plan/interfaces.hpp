// Private: Plans that make shared points agree. Two parts both own and store the interface between them, and a halo
// does not change owned points.
#pragma once

#include <span>

#include <tranship/plan/halo.hpp>

namespace tranship {

/// Plans to copy the value of its owner to every interface that several parts own (Distribution::owner: the upper part,
/// in every dimension). In a dimension with toroidal overlap, the first and the last interface are one point, which the
/// first part owns. Slots are the arrays in the given order. Overlap is not changed. Throws `invalid_use` for an array
/// that counts no interfaces, and `unsupported` for a replicated one.
TransferPlan plan_interfaces(std::span<const ArraySpec> fields, Rank rank);

/// Plans the same for fields on a tiling, each of which counts interfaces in one dimension of its tiles. Interfaces on
/// an edge of two tiles get the values of the tile whose low side the edge is; components of vectors are swapped and
/// negated as the edge's map says. Slots are those of plan_halo. Also throws `unsupported` for an edge that is the high
/// side, or the low side, of both tiles, and for fields that count interfaces in several dimensions of their tiles: a
/// point where three tiles meet has no owner.
TransferPlan plan_interfaces(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                             const std::vector<std::vector<VectorField>>& vectors = {});

}  // namespace tranship
