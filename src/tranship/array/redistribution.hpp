// Detail: Redistribution: describe two arrays, plan once, run as often as you like.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// Where an array is, and where it must be.
struct ArrayPair {
  ArrayRef source;
  ArrayRef target;
};

/// Moves arrays from one distribution to another: `turn()`, or `turn.start()`, other work, `turn.finish()`. Every
/// stored cell of the targets is filled, overlap included; with RedistributionOptions::part, of those cells alone.
///
/// Set-up is collective, over the world of the arrays, which must be one, and waits for all ranks until the world's
/// timeout. It plans in time that does not depend on the extents, lets the ranks compare their plans, and allocates
/// buffers for messages that are staged. Runs allocate nothing. Each run sends one message per pair of ranks that
/// share cells, for all pairs of arrays together. start() never waits for peers, finish() does, until the world's
/// timeout; every rank calls them equally often (declared in run/exchange.hpp). When finish() has returned on a rank,
/// its targets are complete and its sources may be written; the others may still be at work.
///
/// Keeps the memory of arrays that tranship has allocated; foreign memory, and the World, must outlive it.
class Redistribution : public ArrayExchange {
 public:
  /// A rank finds by itself, before it sends anything, and throws: `mismatch` when extents (without a part) or element
  /// types differ; `invalid_use` for a const target, arrays of two worlds and a part that lies outside; `unsupported`
  /// for plans of more than 2^22 runs, some 300 MB, or 2^27 slices to look at. The ranks find together, and all throw:
  /// `mismatch` when their calls differ; `invalid_use` for a target that shares memory with another array or with
  /// itself; `no_memory`. `timeout` and `peer_lost` where a rank does not come. Targets are as they were then, except
  /// with Schedule::measured.
  ///
  /// Like all exchanges it takes the options that say which cells move before those that say how. The latter may stand
  /// alone.
  Redistribution(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& plan = {},
                 ExchangeOptions options = {}, CallSite where = CallSite::here());
  Redistribution(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                 CallSite where = CallSite::here())
      : Redistribution(source, target, RedistributionOptions{}, options, where) {}
  /// Several arrays at once: what goes from one rank to another is one message. Pairs of the same two layouts are set
  /// up in about the time of one. A source may stand in several pairs.
  explicit Redistribution(const std::vector<ArrayPair>& pairs, const RedistributionOptions& plan = {},
                          ExchangeOptions options = {}, CallSite where = CallSite::here());
  Redistribution(const std::vector<ArrayPair>& pairs, ExchangeOptions options, CallSite where = CallSite::here())
      : Redistribution(pairs, RedistributionOptions{}, options, where) {}
  /// With this rank's plan, made or loaded before, for arrays of these layouts. Throws `mismatch` for a plan of others.
  Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan, ExchangeOptions options = {},
                 CallSite where = CallSite::here());
  /// The same for several pairs: a plan has two slots for each of them in order, or for each pair of layouts.
  template <std::same_as<TransferPlan> Plan>
  Redistribution(const std::vector<ArrayPair>& pairs, Plan plan, ExchangeOptions options = {},
                 CallSite where = CallSite::here())
      : Redistribution(Planned{std::move(plan)}, pairs, options, where) {}

 private:
  struct Planned {
    TransferPlan plan;
  };
  Redistribution(Planned given, const std::vector<ArrayPair>& pairs, ExchangeOptions options, CallSite where);
};

/// The adjoint (transpose) of a redistribution: adds every stored cell of `target` to the cell of `source` that it was
/// read from. Adds to what is there: zero `source` first for the adjoint alone. Sums are made in the order of the
/// ranks, so they are the same in every run. Costs and waits are those of a redistribution: the set-up is collective,
/// runs allocate nothing, finish() waits.
class RedistributionAdjoint : public ArrayExchange {
 public:
  /// Throws `invalid_use` for elements that cannot be added, and for a const source; and `mismatch`, `invalid_use`,
  /// `unsupported`, `no_memory`, `timeout` and `peer_lost` for the reasons that Redistribution above gives.
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& plan = {},
                        ExchangeOptions options = {}, CallSite where = CallSite::here());
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                        CallSite where = CallSite::here())
      : RedistributionAdjoint(source, target, RedistributionOptions{}, options, where) {}
  /// With this rank's plan of an adjoint, made or loaded before. Throws `mismatch` for a plan of other layouts.
  template <std::same_as<TransferPlan> Plan>
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, Plan plan, ExchangeOptions options = {},
                        CallSite where = CallSite::here())
      : RedistributionAdjoint(Planned{std::move(plan)}, {source, target}, options, where) {}

 private:
  struct Planned {
    TransferPlan plan;
  };
  RedistributionAdjoint(Planned given, const ArrayPair& pair, ExchangeOptions options, CallSite where);
};

}  // namespace tranship
