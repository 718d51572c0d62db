// Private: GhostExchange, which brings ghosts and their owners up to date with each other, for several arrays at once.
#pragma once

#include <list>
#include <optional>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/leased_exchange.hpp>

namespace tranship {

/// Makes one exchange for all arrays, or none if there is nothing to do. Keeps exchanges and uses them again.
class GhostExchange {
 public:
  /// The arrays must outlive this object.
  GhostExchange(World& world, std::vector<Coherence*> arrays, ExchangeOptions options = {});
  /// Withdraws what is in flight; the ghosts of these cells are then stale.
  ~GhostExchange();
  GhostExchange(const GhostExchange&) = delete;
  GhostExchange& operator=(const GhostExchange&) = delete;

  /// Collective: fills the stale ghosts to `depth` of the cells of a region.
  void begin_broadcast(const std::optional<Region>& region, Index depth, CallSite where);
  /// Collective: combines what ghosts hold into the owned cells of a region.
  void begin_reduce(const std::optional<Region>& region, CallSite where);
  /// Moves what can be moved. Returns true when nothing is in flight.
  bool test(CallSite where = CallSite::here());
  void end(CallSite where);
  const GhostCounts& counts() const noexcept { return counts_; }

 private:
  /// The cells of one array that an exchange moves, and the depth of their ghosts.
  struct Part {
    Index depth = 0;
    Region cells;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Planned {
    std::optional<Combine> combine;  // empty for a broadcast
    std::vector<Part> parts;
    LeasedExchange exchange;
  };
  void begin(std::optional<Combine> combine, std::vector<Part> parts, CallSite where);
  /// Completes an exchange: the ghosts of a reduction become invalid.
  void settle(const Planned& done);
  void check_idle(const char* what, CallSite where) const;
  TransferPlan plan_of(const std::optional<Combine>& combine, const std::vector<Part>& parts) const;

  World& world_;
  std::vector<Coherence*> arrays_;
  ExchangeOptions options_;
  std::list<Planned> planned_;  // most recently used first
  std::vector<Planned*> in_flight_;
  CallSite since_{"", 0};
  GhostCounts counts_;
};

}  // namespace tranship
