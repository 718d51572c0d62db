// Detail: InterfaceExchange, which makes all copies of an interface that several parts share equal.
#pragma once

#include <vector>

#include <tranship/array/array_exchange.hpp>
#include <tranship/array/halo_exchange.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

/// In a staggered array, neighbouring parts both own the interfaces between them, and each computes its own copy. This
/// exchange gives every copy the value of the interface's owner, the upper part. Halos never change owned cells; run a
/// halo exchange afterwards if the overlap must have the new values.
///
/// Set-up is collective over the world of the arrays, which must all belong to one, and waits for all ranks until the
/// world's timeout. Runs allocate nothing and send one message per pair of neighbours for all arrays. start() never
/// waits for peers (exceptions: array_exchange.hpp); finish() does, until the world's timeout. Every rank calls them
/// equally often (they are declared in run/exchange.hpp). Keeps the memory of arrays that tranship has allocated.
/// Foreign memory and the World must outlive it.
class InterfaceExchange : public ArrayExchange {
 public:
  /// Each rank checks by itself, before it sends anything, and throws: `invalid_use` for an array without interfaces,
  /// for a const array, and for arrays of two worlds; `unsupported` for a replicated array. The ranks check together,
  /// and all throw: `mismatch` when their calls differ; `invalid_use` for arrays that share memory; `no_memory`;
  /// `timeout` and `peer_lost` when a rank does not take part.
  explicit InterfaceExchange(const std::vector<ArrayRef>& arrays, ExchangeOptions options = {},
                             CallSite where = CallSite::here());
  /// Works on a tiling, for fields that count interfaces in one dimension of their tiles: points on an edge of two
  /// tiles get the value of the tile whose low side the edge is. `vectors` are those of a halo: components are swapped
  /// and negated as the edge's map says. Also throws `unsupported` for edges that are the high side, or the low side,
  /// of both tiles, and `mismatch` for arrays that do not have the extents of their tiles.
  InterfaceExchange(const Tiling& tiling, const std::vector<TiledArray>& fields,
                    const std::vector<std::vector<VectorField>>& vectors = {}, ExchangeOptions options = {},
                    CallSite where = CallSite::here());
};

}  // namespace tranship
