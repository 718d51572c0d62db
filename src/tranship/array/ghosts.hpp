// Detail: Ghosts, which exchanges the ghosts of several arrays together while the caller works on other cells.
//
//   Ghosts ghosts({u, v});
//   ghosts.begin_broadcast();     // owners' values to stale ghosts
//   ... leases on interior cells ...
//   ghosts.end();
//
// A lease of one array exchanges that array's ghosts by itself when it needs them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

class GhostExchange;

/// Keeps its arrays. Only the thread of the rank may use it. Making it costs nothing and is not collective. The first
/// exchange of a given set of stale ghosts plans it (collective, allocates); the last 32 plans are kept.
class Ghosts {
 public:
  /// All arrays belong to one world, which must outlive this object. Throws `invalid_use` for an empty list and for
  /// arrays of two worlds.
  explicit Ghosts(std::vector<ArrayRef> arrays, ExchangeOptions options = {});
  /// Not collective. Withdraws the exchange in flight: its ghosts are stale, and peers that wait for this rank fail
  /// with `peer_lost`.
  ~Ghosts();
  Ghosts(const Ghosts&) = delete;
  Ghosts& operator=(const Ghosts&) = delete;

  // Collective: all ranks make the same calls in the same order, with equal depths and regions. Each pair of ranks
  // exchanges one message for all arrays; when there is nothing to do, nothing is sent. From begin to end, leases are
  // open on the ghosts that move and on the owned cells that they copy. Any other access to these cells is refused; the
  // message has both call sites. begin waits for devices that hold these cells, and end waits for the peers until the
  // world's timeout. All throw `invalid_use` while an exchange is in flight and for regions and depths that do not
  // exist; `timeout`, `peer_lost`, `device_lost`, `no_memory`.

  /// Copies the owners' values to the stale ghosts of depth `depth` or less, of a region or of all cells. If
  /// ghosts hold values that their owners have yet to get, it first runs a reduce() of the region and waits for it.
  void begin_broadcast(Index depth = all_depths, const std::optional<Region>& region = {},
                       CallSite where = CallSite::here());
  /// Combines into the owners what leases have accumulated in ghosts. The ghosts are stale afterwards. Each depth and
  /// each combination takes a message of its own.
  void begin_reduce(const std::optional<Region>& region = {}, CallSite where = CallSite::here());
  /// Moves what can be moved and returns at once. Returns true when nothing is in flight.
  bool test(CallSite where = CallSite::here());
  /// Waits until everything has arrived. Returns at once when nothing is in flight.
  void end(CallSite where = CallSite::here());

  void broadcast(Index depth = all_depths, const std::optional<Region>& region = {},
                 CallSite where = CallSite::here()) {
    begin_broadcast(depth, region, where);
    end(where);
  }
  void reduce(const std::optional<Region>& region = {}, CallSite where = CallSite::here()) {
    begin_reduce(region, where);
    end(where);
  }
  /// Returns what has been exchanged on this rank. Not collective.
  const GhostCounts& counts() const noexcept;

 private:
  std::vector<ArrayRef> arrays_;
  std::unique_ptr<GhostExchange> exchange_;
};

}  // namespace tranship
