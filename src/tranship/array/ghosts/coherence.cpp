#include "tranship/array/ghosts/coherence.hpp"

#include <algorithm>
#include <utility>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/fabric/memory_use.hpp>
#include <tranship/memory/combination.hpp>

namespace tranship {
namespace {

bool has_ghosts(Cells which) {
  return which == Cells::ghosts || which == Cells::stored;
}

/// The depth beyond which ghosts hold nothing that a lease may need.
Index kept_depth(const GhostState& state) {
  return std::max(state.fresh, state.pending);
}

/// The depth beyond which ghosts are valid in no memory.
Index valid_depth(const GhostState& state) {
  return std::max(kept_depth(state), state.by_hand);
}

/// Returns the state of ghosts after an access that changes cells.
GhostState after(const GhostState& before, Intent intent, Combine combine, Cells which, Index depth) {
  GhostState out = before;
  out.by_hand = 0;
  if (intent == Intent::accumulate && has_ghosts(which)) return {0, std::max(before.pending, depth), combine};
  if (intent != Intent::accumulate && (which == Cells::owned || which == Cells::stored)) out.pending = 0;
  switch (which) {
    case Cells::owned:
    case Cells::boundary:
      out.fresh = 0;
      break;
    case Cells::interior:
      out.fresh = std::min(out.fresh, depth);
      break;
    case Cells::ghosts:
      out.fresh = std::max(out.fresh, depth);
      break;
    case Cells::stored:
      out.fresh = depth;
      break;
  }
  return out;
}

}  // namespace

Coherence::Coherence(World& world, std::shared_ptr<const ArraySpec> spec, const StridedView& view,
                     std::shared_ptr<void> owner, const BufferOptions& options)
    : world_(world),
      spec_(std::move(spec)),
      view_(view),
      owner_(std::move(owner)),
      options_(options),
      cells_(*spec_, world.rank()),
      ghosts_(cells_.whole(), GhostState()),
      ghost_exchange_(world, {this}) {}

Buffer& Coherence::buffer() {
  if (buffer_) return *buffer_;
  auto buffer = std::make_unique<Buffer>(Buffer::import(view_, options_, owner_));
  Region stale;
  if (cells_.depth_max() > 0) stale = cells_.parts(cells_.whole(), cells_.depth_max()).ghosts;
  for (InFlight* const one : in_flight_) {
    const TouchedCells& cells = one->cells();
    stale = stale - (cells.read | cells.combined | cells.written);
  }
  if (!stale.empty()) buffer->invalidate(stale);
  std::vector<std::vector<Lease>> leases;
  for (InFlight* const one : in_flight_) leases.push_back(one->leases_in(*buffer));
  buffer_ = std::move(buffer);
  std::size_t next = 0;
  for (InFlight* const one : in_flight_) one->keep(std::move(leases[next++]));
  return *buffer_;
}

void Coherence::track() {
  if (is_tracked_) return;
  const bool may_have_ghosts = has_buffer() || !in_flight_.empty();
  buffer();
  is_tracked_ = true;
  // Ranks may differ in the exchanges that have filled ghosts in the buffer, or fill them now, so none of these ghosts
  // counts as fresh.
  if (may_have_ghosts) update(cells_.whole(), [&](GhostState& state) { state.by_hand = cells_.depth_max(); });
}

// The state of ghosts.

Coherence::Scope Coherence::scope_of(const std::optional<Region>& region, Index depth) const {
  Scope out{region ? *region : Region(cells_.whole()), depth == all_depths ? cells_.depth_max() : depth};
  if (out.depth < 0 || out.depth > cells_.depth_max())
    throw_error(ErrorCode::invalid_use, "ghosts of depth {} are asked for, but array '{}' stores them to depth {}",
                depth, options_.name, cells_.depth_max());
  if (!region) return out;
  for (const Box& box : region->boxes())
    if (box.dims() != cells_.whole().dims())
      throw_error(ErrorCode::invalid_use, "the region has {}, array '{}' has {}", amount(box.dims(), "dimension"),
                  options_.name, cells_.whole().dims());
  if (!Region(cells_.whole()).contains(*region))
    throw_error(ErrorCode::invalid_use, "region {} leaves array '{}' of {}", to_string(*region), options_.name,
                to_string(cells_.whole()));
  return out;
}

Region Coherence::stale(const Scope& scope) const {
  std::vector<Box> boxes;
  ghosts_.for_each(scope.cells, [&](const Box& box, const GhostState& state) {
    if (state.fresh < scope.depth) boxes.push_back(box);
  });
  return Region::boxes(boxes);
}

std::vector<Coherence::Pending> Coherence::pending(const Region& cells, Index above) const {
  struct Found {
    GhostState state;
    std::vector<Box> boxes;
  };
  std::vector<Found> found;
  ghosts_.for_each(cells, [&](const Box& box, const GhostState& state) {
    if (state.pending <= above) return;
    auto known = std::find_if(found.begin(), found.end(), [&](const Found& one) { return one.state == state; });
    if (known == found.end()) known = found.insert(known, Found{state, {}});
    known->boxes.push_back(box);
  });
  std::vector<Pending> out;
  for (const Found& one : found) out.push_back({one.state, Region::boxes(one.boxes)});
  return out;
}

template <class F>
void Coherence::update(const Region& cells, F&& f) {
  ghosts_.update(cells, [&](const Box&, GhostState& state) { f(state); });
}

void Coherence::note_fresh(const Region& cells, Index depth) {
  update(cells, [&](GhostState& state) { state.fresh = std::max(state.fresh, depth); });
}

void Coherence::note_stale(const Region& cells) {
  update(cells, [](GhostState& state) { state = {}; });
}

void Coherence::drop_ghosts(const Region& cells, Index depth, CallSite where) {
  if (!cells.empty() && depth > 0) buffer().invalidate(cells_.parts(cells, depth).ghosts, where);
}

void Coherence::before_exchange(const ArrayChange& change, CallSite where) {
  if (!is_tracked_) return;
  const Region whole = cells_.whole();
  const bool overwrites = change.kind == ChangeKind::filled || change.kind == ChangeKind::overwritten;
  const bool loses_all = overwrites && !change.cells;
  if (!loses_all && change.kind != ChangeKind::reduced) reduce(pending(whole), where);
  if (change.kind != ChangeKind::changed && change.kind != ChangeKind::overwritten) return;
  const Region cells = change.cells ? Region(*change.cells) : whole;
  drop_ghosts(cells, cells_.depth_max(), where);
  note_stale(cells);
}

void Coherence::note_exchange(const ArrayChange& change) {
  if (!is_tracked_) return;
  const Region whole = cells_.whole();
  switch (change.kind) {
    case ChangeKind::read:
    case ChangeKind::changed:  // before_exchange() has noted it
      break;
    case ChangeKind::filled:
      update(change.cells ? Region(*change.cells) : whole,
             [&](GhostState& state) { state = {.fresh = cells_.depth_max()}; });
      break;
    case ChangeKind::overwritten:
    case ChangeKind::halo:  // its stencil decides which of the ghosts
      update(change.cells ? Region(*change.cells) : whole,
             [&](GhostState& state) { state.by_hand = cells_.depth_max(); });
      break;
    case ChangeKind::reduced:  // ghosts hold the identity until their owners are written
      update(whole, [&](GhostState& state) { state = {.by_hand = cells_.depth_max()}; });
      break;
  }
}

// Accesses.

void Coherence::reduce(const std::vector<Pending>& what, CallSite where) {
  for (const Pending& one : what) {
    ghost_exchange_.begin_reduce(one.cells, where);
    ghost_exchange_.end(where);
  }
}

/// Combines what ghosts hold into their owners if the access would see, or lose, values without it.
void Coherence::settle(Intent intent, Combine combine, Cells which, const Scope& scope, CallSite where) {
  const bool overwrites = intent == Intent::write && (which == Cells::owned || which == Cells::stored);
  if (overwrites) return;
  std::vector<Pending> found = pending(scope.cells, which == Cells::interior ? scope.depth : 0);
  if (intent == Intent::accumulate)
    std::erase_if(found, [&](const Pending& one) {
      return one.state.combine == combine && (!has_ghosts(which) || one.state.pending >= scope.depth);
    });
  reduce(found, where);
}

/// Fills ghosts that hold no partial values yet with the identity of the combination.
void Coherence::begin_partials(Combine combine, const ArrayAccess& access, const Scope& scope, CallSite where) {
  std::vector<Box> fresh;
  ghosts_.for_each(scope.cells, [&](const Box& box, const GhostState& state) {
    if (state.pending == 0) fresh.push_back(box);
  });
  const Region ghosts = cells_.parts(Region::boxes(fresh), scope.depth).ghosts;
  if (ghosts.empty()) return;
  const Lease lease =
      buffer().write({.stream = access.stream, .device = access.device, .cause = {}, .region = ghosts}, where);
  detail::fill_identity(combine, lease.view(), ghosts, lease.stream());
}

void Coherence::change(Intent intent, Combine combine, Cells which, const Scope& scope, CallSite where) {
  const auto next = [&](const GhostState& state) { return after(state, intent, combine, which, scope.depth); };
  // The cells that lose ghosts, by the depth of the ghosts that are kept.
  std::vector<std::vector<Box>> lost(std::size_t(cells_.depth_max()) + 1);
  ghosts_.for_each(scope.cells, [&](const Box& box, const GhostState& state) {
    if (const Index kept = kept_depth(next(state)); kept < valid_depth(state)) lost[std::size_t(kept)].push_back(box);
  });
  for (Index kept = 0; kept < cells_.depth_max(); ++kept) {
    const Region cells = Region::boxes(lost[std::size_t(kept)]);
    if (cells.empty()) continue;
    const Region all = cells_.parts(cells, cells_.depth_max()).ghosts;
    buffer().invalidate(kept == 0 ? all : all - cells_.parts(cells, kept).ghosts, where);
  }
  update(scope.cells, [&](GhostState& state) { state = next(state); });
}

Lease Coherence::open(Intent intent, Combine combine, const ArrayAccess& access, CallSite where) {
  track();
  const Scope scope = scope_of(access.region, access.depth);
  settle(intent, combine, access.cells, scope, where);
  if ((intent == Intent::read || intent == Intent::read_write) && has_ghosts(access.cells)) {
    ghost_exchange_.begin_broadcast(access.region, access.depth, where);
    ghost_exchange_.end(where);
  }
  if (intent == Intent::accumulate && has_ghosts(access.cells)) begin_partials(combine, access, scope, where);
  if (intent != Intent::read) change(intent, combine, access.cells, scope, where);
  const Access local{.stream = access.stream,
                     .device = access.device,
                     .cause = {},
                     .region = cells_.region_of(access.cells, scope.cells, scope.depth)};
  const auto opened = [&] {
    switch (intent) {
      case Intent::read:
        return buffer_->read(local, where);
      case Intent::write:
        return buffer_->write(local, where);
      case Intent::read_write:
        return buffer_->read_write(local, where);
      case Intent::accumulate:
        break;
    }
    return buffer_->accumulate(combine, local, where);
  };
  Lease lease = opened();
  if (lease.view().data == view_.data) announce(intent, *local.region, where);
  return lease;
}

void Coherence::announce(Intent intent, const Region& local, CallSite where) const {
  const Touch touch = intent == Intent::read ? Touch::loads : Touch::stores;
  announce(touch, local,
           intent == Intent::read    ? "a lease to read"
           : intent == Intent::write ? "a lease to write"
                                     : "a lease to read and write",
           where);
}
void Coherence::announce(Touch touch, const Region& local, const char* name, CallSite where) const {
  const Context& rma = world_.context();
  if (!view_.data || !detail::MemoryUse::is_watched(rma)) return;
  const int last = view_.extents.size() - 1;
  for (const Box& box : local.boxes()) {
    Indices rows = box.extents();
    const Index row = last >= 0 && view_.strides[last] == 1 ? std::exchange(rows[last], 1) : 1;
    for_each_coordinate(rows, [&](const Indices& at) {
      Index offset = 0;
      for (int d = 0; d <= last; ++d) offset += (box.lower[d] + at[d]) * view_.strides[d];
      detail::MemoryUse::touches(rma, static_cast<const std::byte*>(view_.data) + offset * size_bytes(view_.type),
                                 std::size_t(row * size_bytes(view_.type)), touch, name, where);
    });
  }
}

Region Coherence::owned() {
  return cells_.parts(cells_.whole(), cells_.depth_max()).owned;
}

HostCells Coherence::read_on_host(CallSite where) {
  if (!buffer_) {
    announce(Touch::loads, cells_.whole(), "a look at all cells", where);
    return {};
  }
  const Region whole = cells_.whole();
  if (const std::vector<Pending> waiting = pending(whole); !waiting.empty())
    throw_error(ErrorCode::invalid_use,
                "array '{}' is read on the host at {}, but its ghosts hold a {} for {} that the owners have not "
                "received: open a read lease on these cells first",
                options_.name, to_string(where), name_of(waiting[0].state.combine), to_string(waiting[0].cells));
  const Region stored = Region::whole(spec_->distribution.local_extents(world_.rank()));
  Region valid;
  for (MemoryId memory = 0; memory < buffer_->devices().memory_count(); ++memory)
    valid = valid | buffer_->valid(buffer_->devices().device_of(memory));
  const Region read = owned() | valid;
  // Until leases are tracked, ghosts hold whatever other code has left in them.
  Region missing = is_tracked_ ? stored - read : Region();
  if (read.empty()) return {{}, std::move(missing)};
  return {buffer_->read({.stream = nullptr, .device = Device::host(), .cause = {}, .region = read}, where),
          std::move(missing)};
}

Lease Coherence::write_on_host(CallSite where) {
  if (!buffer_) {
    if (detail::MemoryUse::is_watched(world_.context())) announce(Touch::stores, owned(), "a fill", where);
    return {};
  }
  if (is_tracked_)
    return open(Intent::write, Combine::sum, {.cells = Cells::owned, .region = {}, .device = Device::host()}, where);
  return buffer_->write({.stream = nullptr, .device = Device::host(), .cause = {}, .region = owned()}, where);
}

Lease Coherence::fill_on_host(CallSite where) {
  if (!buffer_) return {};
  before_exchange({ChangeKind::filled}, where);
  return buffer_->write({.stream = nullptr, .device = Device::host(), .cause = {}, .region = {}}, where);
}

bool Coherence::is_on_host() {
  return !buffer_ || (buffer_->valid(Device::host()).contains(owned()) && pending(cells_.whole()).empty());
}

void Coherence::note_host_pointers(CallSite where) {
  buffer().read({.stream = nullptr, .device = Device::host(), .cause = {}, .region = Region()}, where).note_pointers();
}

Region Coherence::local_region(const ArrayAccess& access) {
  const Scope scope = scope_of(access.region, access.depth);
  return cells_.region_of(access.cells, scope.cells, scope.depth);
}

std::string Coherence::explain(Intent intent, const ArrayAccess& access, CallSite where) {
  Buffer& own = buffer();
  const Scope scope = scope_of(access.region, access.depth);
  std::string out = fmt::format("array '{}': {} of {} cells to depth {}\n", options_.name, name_of(intent),
                                name_of(access.cells), scope.depth);
  const std::vector<Pending> waiting = pending(scope.cells);
  for (const Pending& one : waiting)
    out += fmt::format("  ghosts to depth {} hold a {} for {}\n", one.state.pending, name_of(one.state.combine),
                       to_string(one.cells));
  const Region old = has_ghosts(access.cells) ? stale(scope) : Region();
  if (!old.empty())
    out += fmt::format("  an exchange fills {} of rank {}: those of {} are stale\n",
                       amount(cells_.parts(old, scope.depth).ghosts.count(), "ghost"), world_.rank(), to_string(old));
  const bool settled = waiting.empty() && (old.empty() || intent == Intent::write || intent == Intent::accumulate);
  if (settled)
    out += own.explain(
        intent, {.stream = access.stream, .device = access.device, .cause = {}, .region = local_region(access)}, where);
  return out;
}

}  // namespace tranship
