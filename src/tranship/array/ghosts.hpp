// Ghosts: the ghosts of several arrays, exchanged together, while the caller goes on with other cells.
//
//   Ghosts ghosts({u, v});
//   ghosts.begin_broadcast();     // owners' values to stale ghosts
//   ... leases on interior cells ...
//   ghosts.end();
//
// A lease of an array does this by itself, for that array, when it needs it.
#pragma once

#include <memory>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/ghosts/ghost_exchange.hpp>
#include <tranship/array/local_array.hpp>

namespace tranship {

class Ghosts {
 public:
  /// Collective from the first call on. The arrays are of one world.
  explicit Ghosts(std::vector<ArrayRef> arrays, ExchangeOptions options = {});

  // Collective, one message for each pair of ranks. From begin to end leases are open on what moves: ghosts, and the
  // owned cells that they stand for. Any other access to those is refused, with both call sites. Nothing begins where
  // there is nothing to do. Throw `invalid_use` while one is in flight, and as exchanges do.

  /// Ghosts as deep as `depth` that are stale get what their owners hold; of a region, or of all cells.
  void begin_broadcast(Index depth = all_depths, const std::optional<Region>& region = {},
                       CallSite where = CallSite::here());
  /// Owners get what ghosts hold for them since leases have accumulated there. The ghosts are stale afterwards.
  void begin_reduce(const std::optional<Region>& region = {}, CallSite where = CallSite::here());
  /// Moves what can be moved; true when nothing is in flight.
  bool test(CallSite where = CallSite::here()) { return exchange_.test(where); }
  void end() { exchange_.end(); }

  void broadcast(Index depth = all_depths, const std::optional<Region>& region = {},
                 CallSite where = CallSite::here()) {
    begin_broadcast(depth, region, where);
    end();
  }
  void reduce(const std::optional<Region>& region = {}, CallSite where = CallSite::here()) {
    begin_reduce(region, where);
    end();
  }
  const GhostCounts& counts() const noexcept { return exchange_.counts(); }

 private:
  std::vector<ArrayRef> arrays_;
  GhostExchange exchange_;
};

}  // namespace tranship
