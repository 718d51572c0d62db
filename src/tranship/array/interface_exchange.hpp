// InterfaceExchange: makes staggered points agree that several parts share.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

/// Neighbouring parts of an array that counts interfaces both store the points between them as their own, and compute
/// them apart. This gives each of them the value of its owner, the upper part. Halos never do that: run one afterwards
/// where the overlap must know.
///
/// Set-up is collective, over the world of the arrays, which must be one, and waits for all ranks until the world's
/// timeout. Runs allocate nothing and send one message per pair of neighbours for all arrays. start() never waits for
/// peers, finish() does, until the world's timeout; every rank calls them equally often (declared in
/// array_exchange.hpp). Keeps the memory of arrays that tranship has allocated; foreign memory, and the World, must
/// outlive it.
class InterfaceExchange : public ArrayExchange {
 public:
  /// A rank finds by itself, before it sends anything, and throws: `invalid_use` for an array without interfaces, for a
  /// const one, and for arrays of two worlds; `unsupported` for a replicated one. The ranks find together, and all
  /// throw: `mismatch` when their calls differ; `invalid_use` for arrays that share memory; `no_memory`. `timeout` and
  /// `peer_lost` where a rank does not come.
  explicit InterfaceExchange(const std::vector<ArrayRef>& arrays, ExchangeOptions options = {},
                             CallSite where = CallSite::here());
};

}  // namespace tranship
