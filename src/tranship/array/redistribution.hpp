// Redistribution: describe two arrays, plan once, run as often as you like.
#pragma once

#include <tranship/array/array_exchange.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// Moves an array from one distribution to another. Every stored cell of the target is filled, overlap included.
class Redistribution : public ArrayExchange {
 public:
  /// Collective over the world of both arrays, which must be one. Throws as plan_redistribution and Exchange do.
  Redistribution(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options = {},
                 const RedistributionOptions& plan = {});
  /// With a plan made or loaded before, for arrays of these layouts; Error(mismatch) otherwise.
  Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan, ExchangeOptions options = {});
};

/// The adjoint (transpose) of a redistribution: adds every stored cell of `target` to the cell of `source` that it was
/// read from. Adds to what is there: zero `source` first for the adjoint alone.
class RedistributionAdjoint : public ArrayExchange {
 public:
  /// As Redistribution. Throws `invalid_use` for elements that cannot be added.
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options = {},
                        const RedistributionOptions& plan = {});
};

}  // namespace tranship
