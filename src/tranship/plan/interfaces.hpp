// Private: Planning to make shared points agree: an interface between two parts is stored by both as their own, and a
// halo leaves what they own alone.
#pragma once

#include <span>

#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// Every interface that several parts of an array own gets the value of its owner (Distribution::owner: the upper part,
/// in every dimension). Where the overlap of a dimension is toroidal its first and its last interface are one point,
/// whose owner is the first part. Slots are the arrays in the order given. Overlap is left as it is. Throws
/// `invalid_use` for an array that counts no interfaces, `unsupported` for a replicated one.
TransferPlan plan_interfaces(std::span<const ArraySpec> fields, Rank rank);

}  // namespace tranship
