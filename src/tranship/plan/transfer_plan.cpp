#include "tranship/plan/transfer_plan.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <tranship/base/fail.hpp>
#include <tranship/plan/clip.hpp>
#include <tranship/plan/enum_names.hpp>

namespace tranship {

bool can_map(ElementMap map, ElementType type) noexcept {
  if (map == ElementMap::negate || map == ElementMap::accumulate_negated) return type != ElementType::bool8;
  return !is_complex(type) || combine_of(map).value_or(Combine::sum) == Combine::sum;
}

Index TransferGroup::combinations() const noexcept {
  Index out = 1;
  for (const auto& axis : axes) out *= Index(axis.size());
  return out;
}

void sort_by_target(IndexedTransfer& list) {
  std::vector<Index> order(list.target_cells.size());
  std::iota(order.begin(), order.end(), Index(0));
  std::sort(order.begin(), order.end(), [&](Index a, Index b) { return list.target_cells[a] < list.target_cells[b]; });
  IndexedTransfer sorted = list;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.source_cells[i] = list.source_cells[order[i]];
    sorted.target_cells[i] = list.target_cells[order[i]];
  }
  list = std::move(sorted);
}

Index Transfer::cells() const {
  Index out = 1;
  for (int d = 0; d < entries.size(); ++d) out *= group->axes[d][entries[d]].cells();
  return out;
}

namespace {

void for_each(const TransferPlan& plan, const TransferGroup& group, const std::vector<int>& peer_dims,
              FunctionRef<void(const Transfer&)> f) {
  const int tables = int(group.axes.size());
  Indices counts;
  for (const auto& axis : group.axes) counts.push_back(Index(axis.size()));
  Transfer transfer{.group = &group, .peer = -1, .entries = {}};
  Place place{.coordinates = Indices::filled(tables, 0), .replica = group.peer_replica};
  Index number = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    transfer.entries = at;
    if (group.peer_grid < 0) {
      transfer.peer = group.peers[number++];
    } else {
      for (int k = 0; k < tables; ++k) place.coordinates[peer_dims[k]] = group.axes[k][at[k]].peer;
      transfer.peer = plan.peer_grids[group.peer_grid].rank_of(place);
    }
    if (transfer.peer >= 0) f(transfer);
  });
}

}  // namespace

void TransferPlan::for_each_receive(FunctionRef<void(const Transfer&)> f) const {
  for (const TransferGroup& group : receives) for_each(*this, group, group.source_dims, f);
}

void TransferPlan::for_each_send(FunctionRef<void(const Transfer&)> f) const {
  for (const TransferGroup& group : sends) for_each(*this, group, group.target_dims, f);
}

Index TransferPlan::stored_runs() const noexcept {
  Index out = 0;
  for (const auto* groups : {&receives, &sends})
    for (const TransferGroup& group : *groups)
      for (const auto& axis : group.axes)
        for (const AxisEntry& entry : axis) out += Index(entry.runs.size() + entry.lattices.size());
  for (const auto* lists : {&indexed_receives, &indexed_sends})
    for (const IndexedTransfer& list : *lists) out += Index(list.source_cells.size());
  for (const auto* fills : {&fills_before, &fills_after})
    for (const LocalFill& fill : *fills)
      for (const auto& axis : fill.axes) out += Index(axis.size());
  return out;
}

namespace {

/// Returns the map of the reverse transfer.
ElementMap reversed(ElementMap map, Combine combine) {
  if (map == ElementMap::copy) return map_of(combine);
  if (map == ElementMap::negate && combine == Combine::sum) return ElementMap::accumulate_negated;
  throw_error(ErrorCode::unsupported, "the reverse of the element map {} by {} is not defined", name_of(map),
              name_of(combine));
}

TransferGroup reversed(TransferGroup group, Combine combine) {
  std::swap(group.source_slot, group.target_slot);
  std::swap(group.source_dims, group.target_dims);
  group.map = reversed(group.map, combine);
  for (auto& axis : group.axes)
    for (AxisEntry& entry : axis) {
      for (Run& run : entry.runs) run = reversed(run);
      for (RunLattice& lattice : entry.lattices) lattice = reversed(lattice);
    }
  return group;
}

IndexedTransfer reversed(IndexedTransfer list, Combine combine) {
  std::swap(list.source_slot, list.target_slot);
  std::swap(list.source_cells, list.target_cells);
  list.map = reversed(list.map, combine);
  return list;
}

}  // namespace

TransferPlan adjoint(const TransferPlan& plan, Combine combine) {
  if (plan.kind != PlanKind::redistribution && plan.kind != PlanKind::halo)
    throw_error(ErrorCode::unsupported, "a plan of kind {} is an adjoint already", name_of(plan.kind));
  for (const Slot& slot : plan.slots)
    if (!can_map(map_of(combine), slot.type))
      throw_error(ErrorCode::unsupported, "plans do not combine elements {} by {}", name_of(slot.type),
                  name_of(combine));
  TransferPlan out;
  out.kind = plan.kind == PlanKind::halo ? PlanKind::halo_adjoint : PlanKind::redistribution_adjoint;
  out.rank = plan.rank;
  out.slots = plan.slots;
  out.peer_grids = plan.peer_grids;
  for (const TransferGroup& group : plan.sends) out.receives.push_back(reversed(group, combine));
  for (const TransferGroup& group : plan.receives) out.sends.push_back(reversed(group, combine));
  for (const IndexedTransfer& list : plan.indexed_sends) out.indexed_receives.push_back(reversed(list, combine));
  for (const IndexedTransfer& list : plan.indexed_receives) out.indexed_sends.push_back(reversed(list, combine));

  // Values that were replicated at an edge flow back into the edge before the peers read. Zeros had no source.
  for (const LocalFill& fill : plan.fills_after) {
    if (fill.kind != LocalFillKind::replicate) continue;
    LocalFill back{.kind = LocalFillKind::accumulate, .combine = combine, .slot = fill.slot, .axes = fill.axes};
    for (auto& axis : back.axes)
      for (Run& run : axis) run = reversed(run);
    out.fills_before.push_back(std::move(back));
  }

  if (plan.kind == PlanKind::redistribution) return out;

  auto clear = [&](int slot, std::vector<std::vector<Run>> axes) {
    out.fills_after.push_back({.kind = LocalFillKind::zero, .combine = combine, .slot = slot, .axes = std::move(axes)});
  };
  for (const TransferGroup& group : plan.receives) {
    std::vector<std::vector<Run>> axes(group.axes.size());
    for (std::size_t k = 0; k < group.axes.size(); ++k)
      for (const AxisEntry& entry : group.axes[k])
        entry.for_each_run([&](const Run& run) { axes[group.target_dims[k]].push_back(run); });
    clear(group.target_slot, std::move(axes));
  }
  for (const IndexedTransfer& list : plan.indexed_receives) {
    std::vector<std::vector<Run>> axes(1);
    for (const Index cell : list.target_cells) axes[0].push_back({.source = cell, .target = cell, .length = 1});
    const Indices& extents = plan.slots[list.target_slot].local_extents;
    for (int d = 1; d < extents.size(); ++d) axes.push_back({{.length = extents[d]}});
    clear(list.target_slot, std::move(axes));
  }
  for (const LocalFill& fill : plan.fills_after) clear(fill.slot, fill.axes);
  return out;
}

namespace {

/// FNV-1a over the numbers that describe a layout.
struct Hash {
  std::uint64_t state = 0xcbf29ce484222325u;
  void add(Index value) {
    for (int shift = 0; shift < 64; shift += 8) {
      state ^= static_cast<std::uint64_t>(value) >> shift & 0xff;
      state *= 0x100000001b3u;
    }
  }
  template <class Range>
  void add_all(const Range& values) {
    add(Index(std::size(values)));
    for (auto v : values) add(Index(v));
  }
};

}  // namespace

std::uint64_t fingerprint_of(const ArraySpec& spec) {
  const Distribution& d = spec.distribution;
  Hash hash;
  hash.add(Index(spec.type));
  hash.add_all(std::span(d.extents().begin(), d.extents().end()));
  hash.add(d.grid().replicas());
  hash.add_all(std::span(d.grid().extents().begin(), d.grid().extents().end()));
  for (Index i = 0; i < d.grid().size(); ++i) {
    if (!d.grid().ranks_listed() && i >= 2) break;  // arithmetic ranks: two of them define all
    hash.add(d.grid().rank_at(i));
  }
  // Axes of extent 1 do not affect the numbering, so equal grids may differ there.
  for (int k = 0; k <= d.grid().dims(); ++k) {
    const Index extent = k < d.grid().dims() ? d.grid().extents()[k] : d.grid().replicas();
    hash.add(extent > 1 ? d.grid().ordinal_stride(k) : 0);
  }
  const MemoryLayout& m = d.memory();
  for (const Indices* list : {&m.order, &m.strides, &m.spacing}) hash.add_all(std::span(list->begin(), list->end()));
  hash.add(m.align);
  hash.add(m.offset);
  hash.add(Index(m.parts));
  if (d.is_indexed()) {
    hash.add(d.indexed_dims());
    for (Index i = 0; i < d.grid().size(); ++i) {
      hash.add_all(d.indexed_part(i).owned);
      hash.add_all(d.indexed_part(i).ghosts);
    }
    return hash.state;
  }
  for (int k = 0; k < d.dims(); ++k) {
    const Partition& p = d.axis(k).partition();
    for (Index v :
         {Index(p.kind), Index(p.remainder), p.block_size, p.minimum, p.modulo, Index(p.points), p.overlap.left.width,
          Index(p.overlap.left.edge), p.overlap.right.width, Index(p.overlap.right.edge)})
      hash.add(v);
    hash.add_all(p.bounds);
  }
  return hash.state;
}

}  // namespace tranship
