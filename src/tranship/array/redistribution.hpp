// Redistribution: describe two arrays, plan once, run as often as you like.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// Where an array is, and where it must be.
struct ArrayPair {
  ArrayRef source;
  ArrayRef target;
};

/// Moves arrays from one distribution to another. Every stored cell of the targets is filled, overlap included; with
/// RedistributionOptions::part, of those cells alone.
class Redistribution : public ArrayExchange {
 public:
  /// Collective over the world of both arrays, which must be one. Throws as plan_redistribution and Exchange do, and
  /// `invalid_use` for a const target.
  Redistribution(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options = {},
                 const RedistributionOptions& plan = {}, CallSite where = CallSite::here());
  /// Several arrays at once: what goes from one rank to another is one message. Pairs of the same two layouts are set
  /// up in about the time of one. A source may stand in several pairs.
  explicit Redistribution(const std::vector<ArrayPair>& pairs, ExchangeOptions options = {},
                          const RedistributionOptions& plan = {}, CallSite where = CallSite::here());
  /// With a plan made or loaded before, for arrays of these layouts; Error(mismatch) otherwise.
  Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan, ExchangeOptions options = {},
                 CallSite where = CallSite::here());
};

/// The adjoint (transpose) of a redistribution: adds every stored cell of `target` to the cell of `source` that it was
/// read from. Adds to what is there: zero `source` first for the adjoint alone.
class RedistributionAdjoint : public ArrayExchange {
 public:
  /// As Redistribution. Throws `invalid_use` for elements that cannot be added, and for a const source.
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options = {},
                        const RedistributionOptions& plan = {}, CallSite where = CallSite::here());
};

}  // namespace tranship
