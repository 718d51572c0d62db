#include "tranship/array/ghosts/local_cells.hpp"

#include <algorithm>

#include <tranship/array/ghosts/touched_cells.hpp>
#include <tranship/base/fail.hpp>
#include <tranship/plan/halo.hpp>

namespace tranship {
namespace {

constexpr std::size_t known_max = 32;

/// Returns the local indices along dimension d at which a part owns cells of an interval.
std::vector<Interval> owned_intervals(const AxisParts& axis, Index part, Interval cells) {
  std::vector<Interval> out;
  for (const SliceFamily& family : axis.slices(part))
    for (Index k = 0; k < family.count; ++k) {
      const Index start = family.start + k * family.period;
      const Interval cut = intersect(cells, {start, start + family.length});
      if (cut.empty()) continue;
      const Index local = family.local + k * family.pitch + family.left + cut.lower - start;
      if (!out.empty() && out.back().upper == local)
        out.back().upper += cut.length();
      else
        out.push_back({local, local + cut.length()});
    }
  return out;
}

/// Returns the boxes of the local array in which a rank owns cells of a box.
std::vector<Box> owned_boxes(const Distribution& array, Rank rank, const Box& cells) {
  const std::optional<Place> place = array.grid().place_of(rank);
  if (!place) return {};
  std::vector<std::vector<Interval>> axes;
  for (int d = 0; d < array.dims(); ++d)
    axes.push_back(owned_intervals(array.axis(d), place->coordinates[d], cells[d]));
  return products(axes);
}

std::vector<Box> owned_ids(const Distribution& array, Rank rank, const Box& ids) {
  const std::optional<Index> me = array.grid().ordinal_of(rank);
  if (!me) return {};
  const std::vector<Index>& owned = array.indexed_part(*me).owned;
  std::vector<std::vector<Interval>> axes(1);
  for (Index i = 0; i < Index(owned.size()); ++i)
    if (ids[0].contains(owned[std::size_t(i)])) {
      if (!axes[0].empty() && axes[0].back().upper == i)
        ++axes[0].back().upper;
      else
        axes[0].push_back({i, i + 1});
    }
  const Indices extents = array.local_extents(rank);
  for (int d = 1; d < extents.size(); ++d) axes.push_back({{0, extents[d]}});
  return products(axes);
}

}  // namespace

const char* name_of(Cells cells) {
  switch (cells) {
    case Cells::owned:
      return "owned";
    case Cells::interior:
      return "interior";
    case Cells::boundary:
      return "boundary";
    case Cells::ghosts:
      return "ghosts";
    case Cells::stored:
      break;
  }
  return "stored";
}

TransferPlan plan_ghosts(const ArraySpec& spec, Rank rank, const Region& cells, Index depth) {
  HaloOptions halo;
  halo.cells.push_back({cells.boxes().begin(), cells.boxes().end()});
  if (!spec.distribution.is_indexed())
    for (int d = 0; d < spec.distribution.dims(); ++d) {
      const Overlap& overlap = spec.distribution.axis(d).partition().overlap;
      halo.depth_low.push_back(std::min(depth, overlap.left.width));
      halo.depth_high.push_back(std::min(depth, overlap.right.width));
    }
  return plan_halo({&spec, 1}, rank, halo);
}

LocalCells::LocalCells(const ArraySpec& spec, Rank rank)
    : spec_(spec), rank_(rank), stored_(Region::whole(spec.distribution.local_extents(rank))) {
  const Distribution& array = spec.distribution;
  if (array.is_indexed()) {
    whole_ = Box::of_extents({array.id_count()});
    for (Index i = 0; i < array.grid().size(); ++i) depth_max_ |= Index(!array.indexed_part(i).ghosts.empty());
    return;
  }
  whole_ = Box::of_extents(array.extents());
  for (int d = 0; d < array.dims(); ++d) {
    const Overlap& overlap = array.axis(d).partition().overlap;
    depth_max_ = std::max({depth_max_, overlap.left.width, overlap.right.width});
  }
}

const LocalCells::Parts& LocalCells::parts(const Region& cells, Index depth) {
  const auto known =
      std::find_if(known_.begin(), known_.end(), [&](const Known& k) { return k.depth == depth && k.cells == cells; });
  if (known != known_.end()) return known->parts;
  Parts out;
  std::vector<Box> owned;
  for (const Box& box : cells.boxes()) {
    const std::vector<Box> more =
        (spec_.distribution.is_indexed() ? owned_ids : owned_boxes)(spec_.distribution, rank_, box);
    owned.insert(owned.end(), more.begin(), more.end());
  }
  out.owned = Region::boxes(owned);
  if (depth > 0 && !cells.empty()) {
    const TouchedCells touched = touched_cells(plan_ghosts(spec_, rank_, cells, depth))[0];
    out.ghosts = touched.written;
    out.boundary = touched.read;
  }
  if (known_.size() == known_max) known_.pop_back();
  return known_.emplace_front(Known{cells, depth, std::move(out)}).parts;
}

Region LocalCells::region_of(Cells which, const Region& cells, Index depth) {
  // All stored cells, including those beyond open edges.
  if (which == Cells::stored && depth == depth_max_ && cells == Region(whole_)) return stored_;
  const Parts& found = parts(cells, depth);
  switch (which) {
    case Cells::owned:
      return found.owned;
    case Cells::interior:
      return found.owned - found.boundary;
    case Cells::boundary:
      return found.boundary;
    case Cells::ghosts:
      return found.ghosts;
    case Cells::stored:
      break;
  }
  return found.owned | found.ghosts;
}

}  // namespace tranship
