// Detail: Ghosts: the ghosts of several arrays, exchanged together, while the caller goes on with other cells.
//
//   Ghosts ghosts({u, v});
//   ghosts.begin_broadcast();     // owners' values to stale ghosts
//   ... leases on interior cells ...
//   ghosts.end();
//
// A lease of an array does this by itself, for that array, when it needs it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/local_array.hpp>
#include <tranship/run/exchange.hpp>

namespace tranship {

class GhostExchange;

/// Keeps its arrays. Used by the thread of its rank. Making it costs nothing and is not collective; the first exchange
/// of given stale ghosts plans it (collective, allocates), and the last 32 plans are kept.
class Ghosts {
 public:
  /// The arrays are of one world, which must outlive this. Throws `invalid_use` for none and for two worlds.
  explicit Ghosts(std::vector<ArrayRef> arrays, ExchangeOptions options = {});
  /// Not collective. Withdraws what is in flight: these ghosts are stale, and peers that wait for this rank fail with
  /// `peer_lost`.
  ~Ghosts();
  Ghosts(const Ghosts&) = delete;
  Ghosts& operator=(const Ghosts&) = delete;

  // Collective: all ranks make the same calls in the same order, with equal depths and regions. One message goes
  // between each pair of ranks for all arrays; where nothing is to be done, nothing is sent. From begin to end leases
  // are open on what moves: ghosts, and the owned cells that they stand for. Any other access to those is refused, with
  // both call sites. begin waits for devices that hold these cells, and end for the peers until the world's timeout.
  // Throw `invalid_use` while an exchange is in flight and for regions and depths that are not there; `timeout`,
  // `peer_lost`, `device_lost`, `no_memory`.

  /// Ghosts as deep as `depth` that are stale get what their owners hold; of a region, or of all cells. Waits for a
  /// reduce() first where ghosts hold values that owners have yet to get.
  void begin_broadcast(Index depth = all_depths, const std::optional<Region>& region = {},
                       CallSite where = CallSite::here());
  /// Owners get what ghosts hold for them since leases have accumulated there. The ghosts are stale afterwards. Ghosts
  /// of several depths, or combined in several ways, take a message for each.
  void begin_reduce(const std::optional<Region>& region = {}, CallSite where = CallSite::here());
  /// Moves what can be moved and returns at once; true when nothing is in flight.
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
  /// What has been exchanged on this rank. Not collective.
  const GhostCounts& counts() const noexcept;

 private:
  std::vector<ArrayRef> arrays_;
  std::unique_ptr<GhostExchange> exchange_;
};

}  // namespace tranship
