// Private: GhostExchange brings the ghosts of several arrays and their owners together, as far as they are apart.
#pragma once

#include <list>
#include <optional>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/leased_exchange.hpp>

namespace tranship {

/// One exchange for all arrays; none where nothing is to be done. Exchanges are kept and used again.
class GhostExchange {
 public:
  /// The arrays must outlive this.
  GhostExchange(World& world, std::vector<Coherence*> arrays, ExchangeOptions options = {});
  /// Withdraws what is in flight: these ghosts are stale.
  ~GhostExchange();
  GhostExchange(const GhostExchange&) = delete;
  GhostExchange& operator=(const GhostExchange&) = delete;

  /// Collective: fills the ghosts to `depth` that are stale, of the cells of a region.
  void begin_broadcast(const std::optional<Region>& region, Index depth, CallSite where);
  /// Collective: combines into owned cells of a region what ghosts hold for them.
  void begin_reduce(const std::optional<Region>& region, CallSite where);
  /// True when nothing is in flight.
  bool test(CallSite where = CallSite::here());
  void end(CallSite where);
  const GhostCounts& counts() const noexcept { return counts_; }

 private:
  /// What of one array is exchanged.
  struct Part {
    Index depth = 0;
    Region cells;
    friend bool operator==(const Part&, const Part&) = default;
  };
  struct Planned {
    std::optional<Combine> combine;  // none: a broadcast
    std::vector<Part> parts;
    LeasedExchange exchange;
  };
  void begin(std::optional<Combine> combine, std::vector<Part> parts, CallSite where);
  /// It is over.
  void settle(const Planned& done);
  void check_idle(const char* what, CallSite where) const;
  TransferPlan plan_of(const std::optional<Combine>& combine, const std::vector<Part>& parts) const;

  World& world_;
  std::vector<Coherence*> arrays_;
  ExchangeOptions options_;
  std::list<Planned> planned_;  // the last used first
  std::vector<Planned*> in_flight_;
  CallSite since_{"", 0};
  GhostCounts counts_;
};

}  // namespace tranship
