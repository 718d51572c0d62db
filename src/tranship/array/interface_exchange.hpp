// Detail: InterfaceExchange: makes staggered points agree that several parts share.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/halo_exchange.hpp>
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
  /// On a tiling, of fields that count interfaces in one dimension of their tiles: points on an edge of two tiles get
  /// the value of the tile whose low side it is. `vectors` as those of a halo: components are swapped and negated as
  /// the edge's map says. Throws also `unsupported` for edges that are the high side, or the low side, of both tiles,
  /// and `mismatch` for arrays that do not have the extents of their tiles.
  InterfaceExchange(const Tiling& tiling, const std::vector<TiledArray>& fields,
                    const std::vector<std::vector<VectorField>>& vectors = {}, ExchangeOptions options = {},
                    CallSite where = CallSite::here());
};

}  // namespace tranship
