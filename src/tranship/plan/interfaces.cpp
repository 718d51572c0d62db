#include "tranship/plan/interfaces.hpp"

#include <algorithm>
#include <set>

#include <tranship/base/amounts.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/axis_match.hpp>
#include <tranship/plan/tiled_fields.hpp>

namespace tranship {
namespace {

bool is_toroidal(const AxisParts& axis) {
  const Overlap& overlap = axis.partition().overlap;
  return (overlap.left.width > 0 && overlap.left.edge == EdgePolicy::toroidal) ||
         (overlap.right.width > 0 && overlap.right.edge == EdgePolicy::toroidal);
}

/// Returns the point that represents an interface: the first of the two ends of a periodic dimension.
Index canonical(const AxisParts& axis, Index point) {
  return is_toroidal(axis) && point == axis.extent() - 1 ? 0 : point;
}

/// One dimension of one part: what it keeps, what it gets from the owner of its last point, and who gets its first
/// point.
struct AxisShares {
  std::vector<AxisEntry> kept;
  std::vector<AxisEntry> from;
  std::vector<AxisEntry> to;
};

Run one_point(Index source, Index target) {
  return {.source = source, .target = target, .length = 1};
}

/// Returns what the owner of a part's last point gives to the part, if that is another part or point.
std::optional<AxisEntry> share_of(const AxisParts& axis, Index part) {
  const std::vector<SliceFamily> slices = axis.stretches(part);
  if (axis.partition().points != Points::interfaces || slices.empty() || slices.back().length == 0) return std::nullopt;
  const SliceFamily& slice = slices.back();
  const Index last = slice.start + (slice.count - 1) * slice.period + slice.length - 1;
  const Index point = canonical(axis, last), owner = axis.owner(point);
  if (owner == part && point == last) return std::nullopt;
  return AxisEntry{owner, {one_point(*axis.local_of(owner, point), *axis.local_of(part, last))}};
}

AxisShares shares_of(const AxisParts& axis, Index part) {
  AxisShares out;
  if (const std::optional<AxisEntry> share = share_of(axis, part)) out.from.push_back(*share);
  AxisEntry kept{part, {}};
  const std::vector<SliceFamily> slices = axis.stretches(part);
  for (const SliceFamily& f : slices) {
    Run run{.source = f.local + f.left,
            .target = f.local + f.left,
            .length = f.length,
            .count = f.count,
            .source_pitch = f.pitch,
            .target_pitch = f.pitch};
    if (&f == &slices.back() && !out.from.empty()) --run.length;
    if (run.length > 0) kept.runs.push_back(run);
  }
  if (!kept.runs.empty()) out.kept.push_back(std::move(kept));
  for (Index q = 0; axis.partition().points == Points::interfaces && q < axis.parts(); ++q)
    if (std::optional<AxisEntry> share = share_of(axis, q); share && share->peer == part) {
      share->peer = q;
      out.to.push_back(std::move(*share));
    }
  return out;
}

class InterfacePlanner {
 public:
  InterfacePlanner(const Distribution& array, int slot, TransferPlan& plan) : array_(array), slot_(slot), plan_(plan) {}

  void add() {
    const std::optional<Place> place = array_.grid().place_of(plan_.rank);
    if (!place) return;
    for (int d = 0; d < array_.dims(); ++d) shares_.push_back(shares_of(array_.axis(d), place->coordinates[d]));
    // A transfer belongs to the first dimension in which it is shared: kept in those before, anything in those after.
    for (int d = 0; d < array_.dims(); ++d) {
      append(d, &AxisShares::from, plan_.receives);
      append(d, &AxisShares::to, plan_.sends);
    }
  }

 private:
  void append(int first, std::vector<AxisEntry> AxisShares::*shared, std::vector<TransferGroup>& groups) const {
    TransferGroup group{.source_slot = slot_, .target_slot = slot_};
    Indices counts;
    for (int d = 0; d < array_.dims(); ++d) {
      const AxisShares& axis = shares_[std::size_t(d)];
      std::vector<AxisEntry> entries;
      if (d != first) entries = axis.kept;
      if (d >= first) entries.insert(entries.end(), (axis.*shared).begin(), (axis.*shared).end());
      group.source_dims.push_back(d);
      group.target_dims.push_back(d);
      counts.push_back(Index(entries.size()));
      group.axes.push_back(std::move(entries));
    }
    if (group.combinations() == 0) return;
    for_each_coordinate(counts, [&](const Indices& at) {
      Place peer{.coordinates = {}};
      for (int d = 0; d < at.size(); ++d)
        peer.coordinates.push_back(group.axes[std::size_t(d)][std::size_t(at[d])].peer);
      group.peers.push_back(array_.grid().rank_of(peer));
    });
    groups.push_back(std::move(group));
  }

  const Distribution& array_;
  int slot_;
  TransferPlan& plan_;
  std::vector<AxisShares> shares_;
};

/// Plans what the line of points on one edge of a tile gets from the tile beyond it.
class EdgePlanner {
 public:
  EdgePlanner(const std::vector<const ArraySpec*>& slots, TransferPlan& plan) : slots_(slots), plan_(plan) {}

  /// The target counts interfaces along dimension `across`; its last one lies on the edge.
  void add(int target_slot, int across, const TiledImage& image) {
    const Distribution& target = slots_[target_slot]->distribution;
    const Distribution& source = slots_[image.source_slot]->distribution;
    if (const std::optional<Place> place = target.grid().place_of(plan_.rank)) {
      TransferGroup group = group_of(target_slot, image);
      Indices counts;
      for (int d = 0; d < target.dims(); ++d) {
        const std::vector<AxisWant> wants = wants_of(target.axis(d), place->coordinates[d], d == across, image, d);
        std::vector<AxisEntry>& entries = group.axes.emplace_back();
        std::set<Index> parts;
        for (const AxisWant& want : wants)
          for (const Index part : parts_giving(source.axis(image.source_dims[d]), want)) parts.insert(part);
        for (const Index part : parts)
          if (AxisEntry entry = entry_of(source.axis(image.source_dims[d]), part, wants); !entry.is_empty())
            entries.push_back(std::move(entry));
        counts.push_back(Index(entries.size()));
      }
      for_each_coordinate(counts, [&](const Indices& at) {
        Place from{.coordinates = Indices::filled(target.dims(), 0)};
        for (int d = 0; d < target.dims(); ++d) from.coordinates[image.source_dims[d]] = group.axes[d][at[d]].peer;
        group.peers.push_back(source.grid().rank_of(from));
      });
      if (!group.peers.empty()) plan_.receives.push_back(std::move(group));
    }
    if (const std::optional<Place> place = source.grid().place_of(plan_.rank)) {
      std::vector<std::vector<AxisEntry>> given;  // by dimension of the target, one entry for each of its parts
      Indices counts;
      for (int d = 0; d < target.dims(); ++d) {
        const int e = image.source_dims[d];
        std::vector<AxisEntry>& entries = given.emplace_back();
        for (Index q = 0; q < target.axis(d).parts(); ++q) {
          AxisEntry entry =
              entry_of(source.axis(e), place->coordinates[e], wants_of(target.axis(d), q, d == across, image, d));
          if (entry.is_empty()) continue;
          entry.peer = q;
          entries.push_back(std::move(entry));
        }
        counts.push_back(Index(entries.size()));
      }
      for_each_coordinate(counts, [&](const Indices& at) {
        TransferGroup group = group_of(target_slot, image);
        Place to{.coordinates = {}};
        for (int d = 0; d < target.dims(); ++d) {
          to.coordinates.push_back(given[d][at[d]].peer);
          group.axes.push_back({given[d][at[d]]});
        }
        group.peers.push_back(target.grid().rank_of(to));
        plan_.sends.push_back(std::move(group));
      });
    }
  }

 private:
  TransferGroup group_of(int target_slot, const TiledImage& image) const {
    TransferGroup group{.source_slot = image.source_slot,
                        .target_slot = target_slot,
                        .map = image.map,
                        .source_dims = image.source_dims};
    for (int d = 0; d < int(image.source_dims.size()); ++d) group.target_dims.push_back(d);
    return group;
  }

  /// Returns what one part gets along one dimension: the points that it owns, or only the last point of the dimension.
  static std::vector<AxisWant> wants_of(const AxisParts& axis, Index part, bool last_only, const TiledImage& image,
                                        int d) {
    std::vector<AxisWant> out;
    for (const SliceFamily& family : axis.slices(part)) {
      AxisWant want{family, 0, family.length, image.signs[d], image.offsets[d]};
      if (last_only) {
        if (family.count != 1 || family.start + family.length != axis.extent()) continue;
        want.lower = family.length - 1;
      }
      if (want.lower < want.upper) out.push_back(want);
    }
    return out;
  }

  static AxisEntry entry_of(const AxisParts& source, Index part, const std::vector<AxisWant>& wants) {
    AxisEntry entry{.peer = part};
    for (const AxisWant& want : wants) append_runs(source, part, want, entry);
    return entry;
  }

  const std::vector<const ArraySpec*>& slots_;
  TransferPlan& plan_;
};

}  // namespace

TransferPlan plan_interfaces(std::span<const ArraySpec> fields, Rank rank) {
  TransferPlan plan;
  plan.kind = PlanKind::halo;
  plan.rank = rank;
  for (const ArraySpec& field : fields) {
    const Distribution& array = field.distribution;
    const int slot = int(plan.slots.size());
    bool any = false;
    for (int d = 0; !array.is_indexed() && d < array.dims(); ++d)
      any |= array.axis(d).partition().points == Points::interfaces;
    if (!any)
      throw_error(ErrorCode::invalid_use, "array {} of {} counts interfaces in 0 of them: no two parts share a point",
                  slot, amount(array.dims(), "dimension"));
    if (array.replicated())
      throw_error(ErrorCode::unsupported, "shared interfaces of array {}, which is replicated, are not defined", slot);
    plan.slots.push_back({field.type, array.local_extents(rank), fingerprint_of(field)});
    InterfacePlanner(array, slot, plan).add();
  }
  return plan;
}

TransferPlan plan_interfaces(const Tiling& tiling, std::span<const TiledField> fields, Rank rank,
                             const std::vector<std::vector<VectorField>>& vectors) {
  const TiledFields tiled(tiling, fields, vectors);
  const std::vector<const ArraySpec*> slots = tiled.slots();
  std::vector<int> across;  // for each field, the tile dimension whose interfaces it counts
  for (int f = 0; f < int(fields.size()); ++f)
    for (int t = 0; t < tiling.tiles(); ++t) {
      const Distribution& array = fields[f].tiles[t].distribution;
      if (array.replicated())
        throw_error(ErrorCode::unsupported, "shared interfaces of field {}, which is replicated, are not defined", f);
      int found = -1, count = 0;
      for (int k = 0; k < tiling.dims(); ++k)
        if (array.axis(fields[f].tile_dims[k]).partition().points == Points::interfaces) found = k, ++count;
      if (count != 1)
        throw_error(count == 0 ? ErrorCode::invalid_use : ErrorCode::unsupported,
                    "field {} counts interfaces in {} of tile {}; needs 1", f, amount(count, "dimension"), t);
      if (t == 0)
        across.push_back(found);
      else if (found != across.back())
        throw_error(ErrorCode::invalid_use, "field {} counts interfaces in dimension {} of tile 0 and {} of tile {}", f,
                    across.back(), found, t);
    }

  TransferPlan plan;
  plan.kind = PlanKind::halo;
  plan.rank = rank;
  for (const ArraySpec* spec : slots)
    plan.slots.push_back({spec->type, spec->distribution.local_extents(rank), fingerprint_of(*spec)});
  for (int slot = 0; slot < int(slots.size()); ++slot) InterfacePlanner(slots[slot]->distribution, slot, plan).add();
  EdgePlanner edges(slots, plan);
  for (int f = 0; f < int(fields.size()); ++f)
    for (int t = 0; t < tiling.tiles(); ++t)
      for (const Side side : {Side::low, Side::high}) {
        const std::optional<TileNeighbor> neighbor = tiling.neighbor(t, across[f], side);
        if (!neighbor) continue;
        const int beyond = neighbor->map.image_dim(across[f]);
        const Index edge = side == Side::low ? 0 : tiling.extents(t)[across[f]];
        const bool is_low_there = neighbor->map.apply(across[f], edge, Points::interfaces) == 0;
        if (is_low_there == (side == Side::low))
          throw_error(ErrorCode::unsupported,
                      "the {} side of tile {} in dimension {} is the {} side of tile {} in dimension {}: no tile owns "
                      "the interfaces between them",
                      name_of(side), t, across[f], name_of(side), neighbor->tile, beyond);
        if (side == Side::high)
          edges.add(tiled.slot(f, t), fields[f].tile_dims[across[f]], tiled.image(f, t, neighbor->tile, neighbor->map));
      }
  return plan;
}

}  // namespace tranship
