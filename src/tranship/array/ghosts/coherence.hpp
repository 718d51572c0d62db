// Private: Coherence, what is known of the copies of one array: which memory of this rank holds which cells (Buffer),
// and which ghosts, on all ranks, hold what their owners hold.
//
// All ranks make the same accesses in the same order, so each knows what the others know: which ghosts are stale
// follows from the accesses, without a message. It is kept for global cells, by the depth of their ghosts:
//
//      fresh = 1:   owner 3    ghosts of depth 1: 3    ghosts of depth 2: stale
//
// A read of ghosts to depth 1 then moves nothing between ranks; one to depth 2 moves all ghosts of these cells.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include <tranship/array/cells.hpp>
#include <tranship/array/ghosts/ghost_exchange.hpp>
#include <tranship/array/ghosts/in_flight.hpp>
#include <tranship/array/ghosts/local_cells.hpp>
#include <tranship/fabric/atomic.hpp>
#include <tranship/fabric/world.hpp>
#include <tranship/memory/state/region_map.hpp>
#include <tranship/plan/transfer_plan.hpp>

namespace tranship {

/// What all ranks know of the ghosts of some global cells.
struct GhostState {
  Index fresh = 0;                 ///< ghosts as deep as this hold what the owner holds
  Index pending = 0;               ///< ghosts as deep as this hold something that the owner has yet to get
  Combine combine = Combine::sum;  ///< how
  Index by_hand = 0;               ///< ghosts as deep as this may have been filled by a halo that is not ours
  friend bool operator==(const GhostState&, const GhostState&) = default;
};

/// What an exchange does to an array.
enum class ChangeKind : std::uint8_t {
  read,         ///< nothing
  filled,       ///< owned cells and all their ghosts are overwritten
  overwritten,  ///< owned cells are overwritten, and ghosts with what may differ from what their owners hold
  changed,      ///< some owned cells are not what they were
  halo,         ///< some ghosts become what their owners hold
  reduced,      ///< ghosts are combined into their owners
};
struct ArrayChange {
  ChangeKind kind = ChangeKind::read;
  /// Where they are filled or overwritten: these global cells alone.
  std::optional<Box> cells = {};
};

class Coherence {
 public:
  /// Costs next to nothing until a lease is opened. `owner` is kept with the memory.
  Coherence(World& world, std::shared_ptr<const ArraySpec> spec, const StridedView& view, std::shared_ptr<void> owner,
            const BufferOptions& options);
  Coherence(const Coherence&) = delete;
  Coherence& operator=(const Coherence&) = delete;

  World& world() const noexcept { return world_; }
  const ArraySpec& spec() const noexcept { return *spec_; }
  const std::shared_ptr<const ArraySpec>& shared_spec() const noexcept { return spec_; }
  const StridedView& host_view() const noexcept { return view_; }
  const std::string& name() const noexcept { return options_.name; }
  /// See ExchangeArray.
  const std::string& record() const noexcept { return record_; }
  void set_record(std::string record) { record_ = std::move(record); }
  /// This rank's. When it is made, exchanges in flight open their leases in it. Throws `unsupported` for split complex
  /// numbers.
  Buffer& buffer();
  /// Whether this rank has asked for it. Until then what is on the host is all there is.
  bool has_buffer() const noexcept { return buffer_ != nullptr; }
  /// Whether a lease has been opened, or asked for.
  bool is_tracked() const noexcept { return is_tracked_; }

  /// Collective, see Array. Exchanges ghosts as far as the access needs it.
  Lease open(Intent intent, Combine combine, const ArrayAccess& access, CallSite where);
  /// What open() would do, in words; changes nothing. Not collective.
  std::string explain(Intent intent, const ArrayAccess& access, CallSite where);
  /// Where the cells of an access lie in the local array of this rank.
  Region local_region(const ArrayAccess& access);
  const GhostCounts& counts() const noexcept { return ghost_exchange_.counts(); }

  // For what touches this rank's part in the host's memory itself. Neither exchanges anything nor waits for peers.
  // Until this rank has a buffer, the host's memory is all there is, and both return closed leases.
  /// Brings all stored cells that have a value to the host. Not collective. Throws `invalid_use` for owned cells
  /// without a value, and where ghosts hold what owners have yet to get.
  HostCells read_on_host(CallSite where);
  /// For all owned cells. As collective as open() once that has been called.
  Lease write_on_host(CallSite where);
  /// For all stored cells, which something that is no exchange of ArrayExchange's fills: note_exchange() follows.
  Lease fill_on_host(CallSite where);
  /// Whether the host has all values of this rank's own cells.
  bool is_on_host();
  /// See Lease::note_pointers().
  void note_host_pointers(CallSite where);

  // For exchanges, and collective as they are.
  /// From now on all ranks keep account of what accesses make stale. Until then all ghosts are.
  void track();
  struct Scope {
    Region cells;  ///< global
    Index depth = 0;
  };
  /// Throws `invalid_use` for cells beyond the array and for a depth beyond the overlap.
  Scope scope_of(const std::optional<Region>& region, Index depth) const;
  /// Cells whose ghosts, as deep as the scope's, are stale.
  Region stale(const Scope& scope) const;
  struct Pending {
    GhostState state;
    Region cells;
  };
  /// Cells for which ghosts deeper than `above` hold something, by what.
  std::vector<Pending> pending(const Region& cells, Index above = 0) const;
  void note_fresh(const Region& cells, Index depth);
  void note_stale(const Region& cells);
  /// What ghosts held has been given to the owners.
  void drop_ghosts(const Region& cells, Index depth, CallSite where);
  /// An exchange is about to start that does this to the array. What is known stays true if it does not.
  void before_exchange(const ArrayChange& change, CallSite where);
  /// It has started.
  void note_exchange(const ArrayChange& change);
  /// The exchanges that have started with this array and are not over.
  std::list<InFlight*>& in_flight() noexcept { return in_flight_; }

 private:
  Region owned();
  /// Tells a simulation that looks for races what a lease on the host lets its holder do.
  void announce(Intent intent, const Region& local, CallSite where) const;
  void announce(Touch touch, const Region& local, const char* name, CallSite where) const;
  template <class F>
  void update(const Region& cells, F&& f);
  void reduce(const std::vector<Pending>& what, CallSite where);
  void settle(Intent intent, Combine combine, Cells which, const Scope& scope, CallSite where);
  void begin_partials(Combine combine, const ArrayAccess& access, const Scope& scope, CallSite where);
  void change(Intent intent, Combine combine, Cells which, const Scope& scope, CallSite where);

  World& world_;
  std::shared_ptr<const ArraySpec> spec_;
  StridedView view_;
  std::shared_ptr<void> owner_;
  BufferOptions options_;
  std::string record_;
  LocalCells cells_;
  RegionMap<GhostState> ghosts_;
  bool is_tracked_ = false;
  std::list<InFlight*> in_flight_;
  std::unique_ptr<Buffer> buffer_;
  GhostExchange ghost_exchange_;
};

}  // namespace tranship
