// Private: Coherence, which tracks the copies of one array: which memory of this rank holds which cells (Buffer), and
// which ghosts, on all ranks, are fresh.
//
// All ranks make the same accesses in the same order, so each rank derives from the accesses which ghosts are stale,
// without a message. The state is kept for global cells, by the depth of their ghosts:
//
//      fresh = 1:   owner 3    ghosts of depth 1: 3    ghosts of depth 2: stale
//
// A read of ghosts to depth 1 then moves nothing between ranks; a read to depth 2 moves all ghosts of these cells.
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

/// The state, known to all ranks, of the ghosts of some global cells.
struct GhostState {
  Index fresh = 0;                 ///< ghosts to this depth hold what the owner holds
  Index pending = 0;               ///< ghosts to this depth hold values that the owner has yet to get
  Combine combine = Combine::sum;  ///< how the owner combines them
  Index by_hand = 0;               ///< ghosts to this depth may hold values of a halo that Coherence has not made
  friend bool operator==(const GhostState&, const GhostState&) = default;
};

/// The effect of an exchange on an array.
enum class ChangeKind : std::uint8_t {
  read,         ///< changes nothing
  filled,       ///< overwrites owned cells and all their ghosts
  overwritten,  ///< overwrites owned cells, and ghosts with values that may differ from their owners'
  changed,      ///< changes some owned cells
  halo,         ///< gives some ghosts their owners' values
  reduced,      ///< combines ghosts into their owners
};
struct ArrayChange {
  ChangeKind kind = ChangeKind::read;
  /// The global cells that are filled or overwritten; empty: all.
  std::optional<Box> cells = {};
};

class Coherence {
 public:
  /// Costs next to nothing until a lease is opened. Keeps `owner`, the owner of the memory of `view`.
  Coherence(World& world, std::shared_ptr<const ArraySpec> spec, const StridedView& view, std::shared_ptr<void> owner,
            const BufferOptions& options);
  Coherence(const Coherence&) = delete;
  Coherence& operator=(const Coherence&) = delete;

  World& world() const noexcept { return world_; }
  const ArraySpec& spec() const noexcept { return *spec_; }
  const std::shared_ptr<const ArraySpec>& shared_spec() const noexcept { return spec_; }
  const StridedView& host_view() const noexcept { return view_; }
  const std::string& name() const noexcept { return options_.name; }
  /// See ExchangeArray::record.
  const std::string& record() const noexcept { return record_; }
  void set_record(std::string record) { record_ = std::move(record); }
  /// Returns this rank's buffer. When the first call makes it, exchanges in flight open their leases in it. Throws
  /// `unsupported` for split complex numbers.
  Buffer& buffer();
  /// Returns true once this rank has asked for the buffer. Until then the host's memory is the only copy.
  bool has_buffer() const noexcept { return buffer_ != nullptr; }
  /// Returns true once a lease has been opened, or asked for.
  bool is_tracked() const noexcept { return is_tracked_; }

  /// Collective, see Array. Exchanges the ghosts that the access needs.
  Lease open(Intent intent, Combine combine, const ArrayAccess& access, CallSite where);
  /// Describes what open() would do. Changes nothing. Not collective.
  std::string explain(Intent intent, const ArrayAccess& access, CallSite where);
  /// Returns where the cells of an access lie in the local array of this rank.
  Region local_region(const ArrayAccess& access);
  const GhostCounts& counts() const noexcept { return ghost_exchange_.counts(); }

  // For code that accesses this rank's part in the host's memory directly. None of these exchanges anything or waits
  // for peers. Until this rank has a buffer, the host's memory is the only copy, and all return closed leases.
  /// Brings all stored cells that have a value to the host. Not collective. Throws `invalid_use` for owned cells
  /// without a value, and when ghosts hold values that owners have yet to get.
  HostCells read_on_host(CallSite where);
  /// Opens a lease on all owned cells. Collective once open() has been called.
  Lease write_on_host(CallSite where);
  /// Opens a lease on all stored cells for code that fills them and is not an ArrayExchange; note_exchange() must
  /// follow.
  Lease fill_on_host(CallSite where);
  /// Returns true when the host has the values of all cells that this rank owns.
  bool is_on_host();
  /// See Lease::note_pointers().
  void note_host_pointers(CallSite where);

  // For exchanges, and collective as these are.
  /// Begins to track which ghosts are fresh, on all ranks. All ghosts are stale until then.
  void track();
  struct Scope {
    Region cells;  ///< global
    Index depth = 0;
  };
  /// Throws `invalid_use` for cells outside the array and for a depth beyond the overlap.
  Scope scope_of(const std::optional<Region>& region, Index depth) const;
  /// Returns the cells that have stale ghosts within the depth of the scope.
  Region stale(const Scope& scope) const;
  struct Pending {
    GhostState state;
    Region cells;
  };
  /// Returns the cells for which ghosts deeper than `above` hold values that owners have yet to get, by state.
  std::vector<Pending> pending(const Region& cells, Index above = 0) const;
  void note_fresh(const Region& cells, Index depth);
  void note_stale(const Region& cells);
  /// Invalidates ghosts whose values the owners have got.
  void drop_ghosts(const Region& cells, Index depth, CallSite where);
  /// Prepares for an exchange that makes this change and is about to start. The state stays true if it does not start.
  void before_exchange(const ArrayChange& change, CallSite where);
  /// Records the change of an exchange that has started.
  void note_exchange(const ArrayChange& change);
  /// The exchanges that have started with this array and are not complete.
  std::list<InFlight*>& in_flight() noexcept { return in_flight_; }

 private:
  Region owned();
  /// Tells a simulation that looks for races which cells the holder of a lease on the host may load or store.
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
