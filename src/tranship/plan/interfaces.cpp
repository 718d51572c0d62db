#include <algorithm>

#include <tranship/base/fail.hpp>
#include <tranship/plan/interfaces.hpp>

namespace tranship {
namespace {

bool is_toroidal(const AxisParts& axis) {
  const Overlap& overlap = axis.partition().overlap;
  return (overlap.left.width > 0 && overlap.left.edge == EdgePolicy::toroidal) ||
         (overlap.right.width > 0 && overlap.right.edge == EdgePolicy::toroidal);
}

/// The point that stands for an interface: of the two ends of a periodic dimension the first.
Index canonical(const AxisParts& axis, Index point) {
  return is_toroidal(axis) && point == axis.extent() - 1 ? 0 : point;
}

/// One dimension of one part: what it keeps, what it gets from the owner of its last point, and who gets its first one.
struct AxisShares {
  std::vector<AxisEntry> kept;
  std::vector<AxisEntry> from;
  std::vector<AxisEntry> to;
};

Run one_point(Index source, Index target) {
  return {.source = source, .target = target, .length = 1};
}

/// What the owner of its last point gives to a part, if that is another part or point.
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
    // What is shared first in dimension d: before it lies what is kept, behind it anything.
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
      throw_error(ErrorCode::invalid_use,
                  "array {} of {} dimensions counts interfaces in 0 of them: no two parts share a point", slot,
                  array.dims());
    if (array.replicated())
      throw_error(ErrorCode::unsupported, "shared interfaces of array {}, which is replicated, are not defined", slot);
    plan.slots.push_back({field.type, array.local_extents(rank), fingerprint_of(field)});
    InterfacePlanner(array, slot, plan).add();
  }
  return plan;
}

}  // namespace tranship
