// Detail: Redistribution: describe two arrays, plan once, run any number of times. plan/redistribution.hpp computes the
// moves, and run/exchange.hpp makes them.
#pragma once

#include <concepts>
#include <utility>
#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/plan/redistribution.hpp>

namespace tranship {

/// An array as it is, and the array that it must become.
struct ArrayPair {
  ArrayRef source;
  ArrayRef target;
};

/// Moves arrays from one distribution to another: call `turn()`, or `turn.start()`, other work, `turn.finish()`. Fills
/// every stored cell of the targets, overlap included; with RedistributionOptions::part, only the cells of that part.
///
/// Set-up is collective over the world of the arrays, which must all belong to one, and waits for all ranks until the
/// world's timeout. It plans in time that does not depend on the extents, compares the plans of the ranks, and
/// allocates buffers for staged messages. Runs allocate nothing. Each run sends one message per pair of ranks that
/// share cells, for all pairs of arrays together. start() never waits for peers (exceptions: array_exchange.hpp);
/// finish() does, until the world's timeout. Every rank calls them equally often (they are declared in
/// run/exchange.hpp). When finish() has returned on a rank, its targets are complete and its sources may be written;
/// other ranks may still be copying.
///
/// Keeps the memory of arrays that tranship has allocated. Foreign memory and the World must outlive it.
class Redistribution : public ArrayExchange {
 public:
  /// Each rank checks by itself, before it sends anything, and throws: `mismatch` when extents (without a part) or
  /// element types differ; `invalid_use` for a const target, arrays of two worlds and a part that lies outside;
  /// `unsupported` for plans of more than 2^22 runs (about 300 MB) or with more than 2^27 slices to examine. The ranks
  /// check together, and all throw: `mismatch` when their calls differ; `invalid_use` for a target that shares memory
  /// with another array or with itself; `no_memory`; `timeout` and `peer_lost` when a rank does not take part. The
  /// targets are then unchanged, except with Schedule::measured.
  ///
  /// In all exchanges, the options that say which cells move come before those that say how they move; the latter may
  /// be given alone.
  Redistribution(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& plan = {},
                 ExchangeOptions options = {}, CallSite where = CallSite::here());
  Redistribution(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                 CallSite where = CallSite::here())
      : Redistribution(source, target, RedistributionOptions{}, options, where) {}
  /// Moves several arrays at once, with one message from one rank to another. Setting up several pairs of the same two
  /// layouts takes about the time of one. A source may stand in several pairs.
  explicit Redistribution(const std::vector<ArrayPair>& pairs, const RedistributionOptions& plan = {},
                          ExchangeOptions options = {}, CallSite where = CallSite::here());
  Redistribution(const std::vector<ArrayPair>& pairs, ExchangeOptions options, CallSite where = CallSite::here())
      : Redistribution(pairs, RedistributionOptions{}, options, where) {}
  /// Takes this rank's plan, made or loaded before, for arrays of these layouts. Throws `mismatch` for a plan of
  /// others.
  Redistribution(const ArrayRef& source, const ArrayRef& target, TransferPlan plan, ExchangeOptions options = {},
                 CallSite where = CallSite::here());
  /// Takes a plan for several pairs, with two slots for each pair in their order, or two for each pair of layouts.
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

/// The adjoint (transpose) of a redistribution: adds every stored cell of `target` to the cell of `source` from which
/// the redistribution reads it. It adds to the values in `source`: zero `source` first for the adjoint alone. Sums are
/// made in the order of the ranks, so they are the same in every run. Costs and waits are those of a redistribution:
/// the set-up is collective, runs allocate nothing, finish() waits.
class RedistributionAdjoint : public ArrayExchange {
 public:
  /// Throws `invalid_use` for elements that cannot be added and for a const source; `mismatch`, `invalid_use`,
  /// `unsupported`, `no_memory`, `timeout` and `peer_lost` for the reasons that Redistribution gives.
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, const RedistributionOptions& plan = {},
                        ExchangeOptions options = {}, CallSite where = CallSite::here());
  RedistributionAdjoint(const ArrayRef& source, const ArrayRef& target, ExchangeOptions options,
                        CallSite where = CallSite::here())
      : RedistributionAdjoint(source, target, RedistributionOptions{}, options, where) {}
  /// Takes this rank's plan of an adjoint, made or loaded before. Throws `mismatch` for a plan of other layouts.
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
