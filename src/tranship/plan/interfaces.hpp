// Private: Planning to make shared points agree: an interface between two parts is stored by both as their own, and a
// halo leaves what they own alone.
#pragma once

#include <span>

#include <tranship/plan/halo.hpp>

namespace tranship {

/// Every interface that several parts of an array own gets the value of its owner (Distribution::owner: the upper part,
/// in every dimension). Where the overlap of a dimension is toroidal its first and its last interface are one point,
/// whose owner is the first part. Slots are the arrays in the order given. Overlap is left as it is. Throws
/// `invalid_use` for an array that counts no interfaces, `unsupported` for a replicated one.
TransferPlan plan_interfaces(std::span<const ArraySpec> fields, Rank rank);

/// The same for fields on a tiling, each of which counts interfaces in one dimension of its tiles: those on an edge of
/// two tiles get the values of the tile whose low side it is, components of vectors swapped and negated as the edge's
/// map says. Slots as those of plan_halo. Throws also `unsupported` for an edge that is the high side of both tiles, or
/// the low side, and for fields that count interfaces in several dimensions of their tiles: a point in which three
/// tiles meet has no owner.
TransferPlan plan_interfaces(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                             const std::vector<std::vector<VectorField>>& vectors = {});

}  // namespace tranship
