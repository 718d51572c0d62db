#include "tranship/file/engine/box_blocks.hpp"

#include <algorithm>
#include <map>

#include <tranship/base/fail.hpp>
#include <tranship/file/engine/round_shape.hpp>
#include <tranship/file/store/part_source.hpp>
#include <tranship/plan/clip.hpp>
#include <tranship/plan/explain.hpp>

namespace tranship {
namespace {

// Shorter rows are read as a slab, because each row costs a call and a page that is needed in part.
constexpr Index direct_row_bytes = Index(256) << 10;

StoredSide side_of(const StoredParts& array) {
  const Distribution& d = array.spec.distribution;
  StoredSide out{.order = dimension_order(array.order(), d.dims()),
                 .part_extents = Indices::filled(d.dims(), 1),
                 .parts = d.grid().extents(),
                 .dealt = Indices::filled(d.dims(), 0)};
  for (int axis = 0; axis < d.dims(); ++axis) {
    for (Index c = 0; c < d.axis(axis).parts(); ++c)
      out.part_extents[axis] = std::max(out.part_extents[axis], d.axis(axis).local_extent(c));
    out.dealt[axis] = d.axis(axis).is_dealt();
  }
  return out;
}

/// Returns the bytes of the rows that parts of both sides share.
Index common_row_bytes(const StoredParts& a, const StoredParts& b) {
  const StoredSide side_a = side_of(a), side_b = side_of(b);
  const auto run = [](const AxisParts& axis, Index extent) {
    return axis.is_dealt() ? std::min(axis.partition().block_size, extent) : extent;
  };
  Index out = size_bytes(a.spec.type);
  for (int k = side_a.order.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(side_a.order[k]);
    if (d != static_cast<int>(side_b.order[k])) break;
    const Index run_a = run(a.spec.distribution.axis(d), side_a.part_extents[d]);
    const Index run_b = run(b.spec.distribution.axis(d), side_b.part_extents[d]);
    out = checked_multiply(out, std::min(run_a, run_b));
    if (run_a != side_a.part_extents[d] || run_b != side_b.part_extents[d] || run_a != run_b) break;
  }
  return out;
}

/// Returns the cell of the array from which a cell beyond its edge takes its value.
Index inside(const AxisParts& axis, Index cell) {
  const Index extent = axis.extent();
  if (cell >= 0 && cell < extent) return cell;
  const Overlap& overlap = axis.partition().overlap;
  const EdgePolicy edge = (cell < 0 ? overlap.left : overlap.right).edge;
  if (edge == EdgePolicy::toroidal && axis.period() > 0) return floor_modulo(cell, axis.period());
  return cell < 0 ? 0 : extent - 1;
}

/// Returns one dimension of an array, as an array.
ArraySpec along(const ArraySpec& spec, int d) {
  const AxisParts& axis = spec.distribution.axis(d);
  return {spec.type, Distribution({axis.extent()}, Grid({axis.parts()}), {axis.partition()})};
}

/// Returns where slabs of at most `extent_max` cells begin, and where the last one ends. They begin at edges where
/// these are close enough, and evenly between two edges that are farther apart.
std::vector<Index> slab_bounds(const std::vector<Index>& edges, Index extent_max) {
  std::vector<Index> out{0};
  for (std::size_t i = 1; i < edges.size(); ++i) {
    if (edges[i] - out.back() <= extent_max) continue;
    if (edges[i - 1] > out.back()) out.push_back(edges[i - 1]);
    const Index begin = out.back(), length = edges[i] - begin, count = ceil_divide(length, extent_max);
    for (Index n = 1; n < count; ++n) out.push_back(begin + length * n / count);
  }
  out.push_back(edges.back());
  return out;
}

}  // namespace

BoxBlocks::BoxBlocks(const BlockJob& job, Index memory_bytes) : BlockPlan(job, memory_bytes) {
  const Distribution& to = job.wanted->spec.distribution;
  if (checked_product(to.extents()) == 0) return;
  order_ = dimension_order(job.source->order(), to.dims());
  RoundShapeOptions options{.extents = to.extents(),
                            .source = side_of(*job.source),
                            .target = side_of(*job.wanted),
                            .width = width_,
                            .open_max = FileSet::default_open_max()};
  if (const PartSource* own = job.source->source.get()) {
    options.source.part_extents = options.extents_min = own->grain(0);
    for (int d = 0; d < to.dims(); ++d)
      options.source.parts[d] = ceil_divide(to.extents()[d], std::max<Index>(1, options.extents_min[d]));
  }
  const bool is_direct = !job.source->source && common_row_bytes(*job.source, *job.wanted) >= direct_row_bytes;
  const Index slab_bytes = slabs_bytes_max(memory_bytes);
  options.cells_max = std::max<Index>(1, slab_bytes / width_);
  // The overlap that a slab needs is known only once the slab is cut, so this tries again with fewer cells.
  for (int tries = 0; tries < 8 && !is_direct && !gathers_; ++tries) {
    const Indices shape = round_shape(options);
    cut_rounds(shape);
    find_needs();
    overhead_ = round_overhead(options, shape);
    gathers_ = slab_bytes_max_ <= slab_bytes;
    options.cells_max = std::max<Index>(1, options.cells_max / 2);
    options.extents_min = {};
  }
  if (gathers_) return;
  options.cells_max = std::max<Index>(1, slab_bytes / width_);
  cut_rounds(round_shape(options));
  slab_bytes_max_ = 0;
}

/// Returns where parts of the source, or chunks of them, begin along a dimension; if it has one part, those of the
/// target.
std::vector<Index> BoxBlocks::edges_along(int d) const {
  const Distribution &from = job_.source->spec.distribution, &to = job_.wanted->spec.distribution;
  std::vector<Index> out{0};
  if (const PartSource* own = job_.source->source.get(); own && from.grid().size() == 1) {
    for (Index at = own->grain(0)[d]; at < from.extents()[d]; at += own->grain(0)[d]) out.push_back(at);
  } else {
    const AxisParts& axis = from.axis(d).parts() > 1 ? from.axis(d) : to.axis(d);
    for (Index c = 1; c < axis.parts() && !axis.is_dealt() && !axis.replicated(); ++c)
      if (axis.owned_count(c) > 0 && axis.slices(c).front().start > out.back())
        out.push_back(axis.slices(c).front().start);
  }
  out.push_back(to.extents()[d]);
  return out;
}

void BoxBlocks::cut_rounds(const Indices& shape) {
  const Distribution& to = job_.wanted->spec.distribution;
  axes_.assign(static_cast<std::size_t>(to.dims()), {});
  round_count_ = checked_product(to.extents()) > 0 ? 1 : 0;
  Indices longest = Indices::filled(to.dims(), 1);
  for (int d = 0; d < to.dims() && round_count_ > 0; ++d) {
    const AxisParts& axis = to.axis(d);
    const std::vector<Index>& bounds = axes_[d].bounds = slab_bounds(edges_along(d), shape[d]);
    axes_[d].blocks.resize(bounds.size() - 1);
    round_count_ = checked_multiply(round_count_, axes_[d].slabs());
    axes_[d].pieces.resize(static_cast<std::size_t>(axis.parts()));
    for (Index c = 0; c < axis.parts(); ++c) {
      auto& pieces = axes_[d].pieces[c];
      const Index extent = axis.local_extent(c);
      for (Index at = 0; at < extent;) {
        // Cells are consecutive except where slices meet, or turns around the array, which moves an end by at most
        // their overlap.
        const Index cell = axis.cell_of(c, at).cell, in_array = inside(axis, cell);
        const auto slab_end = std::upper_bound(bounds.begin(), bounds.end(), in_array);
        const Index slab = slab_end - bounds.begin() - 1, end_cell = cell - in_array + *slab_end;
        Index lower = at + 1, upper = extent;
        while (lower < upper) {
          const Index middle = lower + (upper - lower) / 2;
          if (axis.cell_of(c, middle).cell < end_cell)
            lower = middle + 1;
          else
            upper = middle;
        }
        // Cells beyond a toroidal edge may lie in the same slab again.
        if (!pieces.empty() && pieces.back().slab == slab)
          pieces.back().local.upper = lower;
        else
          pieces.push_back({{at, lower}, slab});
        longest[d] = std::max(longest[d], pieces.back().local.length());
        at = lower;
      }
    }
  }
  if (round_count_ > 0) cut_pieces(longest);
}

/// Cuts pieces along the slowest dimensions of the target, so that no block is too large.
void BoxBlocks::cut_pieces(const Indices& longest) {
  const Indices order = dimension_order(job_.wanted->order(), longest.size());
  const Indices box = dense_box(longest, order, block_cells_max_);
  for (int d = 0; d < longest.size(); ++d) {
    Axis& axis = axes_[d];
    for (std::size_t c = 0; c < axis.pieces.size(); ++c) {
      std::vector<Piece> cut;
      for (const Piece& piece : axis.pieces[c]) {
        const Index count = ceil_divide(piece.local.length(), box[d]), each = ceil_divide(piece.local.length(), count);
        for (Index lower = piece.local.lower; lower < piece.local.upper; lower += each)
          cut.push_back({{lower, std::min(piece.local.upper, lower + each)}, piece.slab});
      }
      axis.pieces[c] = std::move(cut);
      for (std::size_t i = 0; i < axis.pieces[c].size(); ++i)
        axis.blocks[axis.pieces[c][i].slab].push_back({static_cast<Index>(c), static_cast<Index>(i)});
    }
  }
}

void BoxBlocks::find_needs() {
  slab_bytes_max_ = 0;
  if (round_count_ == 0) return;
  const Distribution& to = job_.wanted->spec.distribution;
  // Any plan that receives names the parts of the source, because dimensions are planned independently.
  Place filled{.coordinates = Indices::filled(to.dims(), 0)};
  for (int d = 0; d < to.dims(); ++d)
    while (axes_[d].pieces[filled.coordinates[d]].empty()) ++filled.coordinates[d];
  const TransferPlan some = PartPlanner(job_.source->spec, job_.wanted->spec).plan(to.grid().ordinal_of(filled)).moves;
  TRANSHIP_ASSERT(!some.receives.empty());  // a part with cells owns some
  peers_ = some.peer_grids[some.receives.front().peer_grid];
  peer_replica_ = some.receives.front().peer_replica;
  Index cells = 1;
  std::vector<Run> clipped;
  for (int d = 0; d < to.dims(); ++d) {
    Axis& axis = axes_[d];
    std::vector<std::map<Index, Interval>> needs(axis.blocks.size());
    const PartPlanner planner(along(job_.source->spec, d), along(job_.wanted->spec, d));
    for (Index c = 0; c < static_cast<Index>(axis.pieces.size()); ++c) {
      if (axis.pieces[c].empty()) continue;
      const PartPlan plan = planner.plan(c);
      if (plan.moves.receives.empty()) continue;
      const std::vector<AxisEntry>& entries = plan.moves.receives.front().axes.front();
      for (const Piece& piece : axis.pieces[c])
        for (std::size_t e = 0; e < entries.size(); ++e) {
          clipped.clear();
          clip(entries[e], plan.reaches.front()[e], piece.local, clipped);
          if (clipped.empty()) continue;
          Interval& need = needs[piece.slab][entries[e].peer];
          for (const Run& run : clipped) need = joined(need, source_hull(run));
        }
    }
    Index longest = 0;
    for (const auto& of_slab : needs) {
      Index sum = 0;
      auto& out = axis.needs.emplace_back();
      for (const auto& [coordinate, local] : of_slab) {
        out.push_back({coordinate, local});
        sum += local.length();
      }
      longest = std::max(longest, sum);
    }
    cells = checked_multiply(cells, longest);
  }
  slab_bytes_max_ = checked_multiply(cells, width_);
}

Index BoxBlocks::block_count(Index part) const {
  const Indices& extents = job_.wanted->parts[part].extents;
  if (round_count_ == 0 || checked_product(extents) == 0) return 0;
  Index out = 1;
  const Indices at = coordinates_of(part);
  for (int d = 0; d < at.size(); ++d) out = checked_multiply(out, static_cast<Index>(axes_[d].pieces[at[d]].size()));
  return out;
}

Box BoxBlocks::box(Index part, Index number) const {
  const Indices& extents = job_.wanted->parts[part].extents;
  Box out{extents, extents};
  const Indices at = coordinates_of(part);
  for (int d = extents.size() - 1; d >= 0; --d) {
    const std::vector<Piece>& pieces = axes_[d].pieces[at[d]];
    const Interval local = pieces[static_cast<std::size_t>(number % static_cast<Index>(pieces.size()))].local;
    out.lower[d] = local.lower;
    out.upper[d] = local.upper;
    number /= static_cast<Index>(pieces.size());
  }
  return out;
}

Indices BoxBlocks::coordinates_of(Index part) const {
  return job_.wanted->spec.distribution.grid().place_at(part).coordinates;
}

/// Returns the slab of a round along each dimension.
Indices BoxBlocks::slabs_of(Index round) const {
  Indices out = Indices::filled(order_.size(), 0);
  for (int k = order_.size() - 1; k >= 0; --k) {
    const int d = static_cast<int>(order_[k]);
    out[d] = round % axes_[d].slabs();
    round /= axes_[d].slabs();
  }
  return out;
}

void BoxBlocks::for_each_block(Index round, FunctionRef<void(Index, Index)> f) const {
  const Grid& grid = job_.wanted->spec.distribution.grid();
  const Indices slabs = slabs_of(round);
  Indices counts;
  for (int d = 0; d < slabs.size(); ++d) counts.push_back(static_cast<Index>(axes_[d].blocks[slabs[d]].size()));
  Place place{.coordinates = counts};
  for_each_coordinate(counts, [&](const Indices& at) {
    Index number = 0;
    for (int d = 0; d < at.size(); ++d) {
      const PartPiece& piece = axes_[d].blocks[slabs[d]][at[d]];
      place.coordinates[d] = piece.coordinate;
      number = number * static_cast<Index>(axes_[d].pieces[piece.coordinate].size()) + piece.piece;
    }
    for (place.replica = 0; place.replica < grid.replicas(); ++place.replica) f(grid.ordinal_of(place), number);
  });
}

std::vector<BlockPlan::SlabBox> BoxBlocks::slab(Index round) const {
  std::vector<SlabBox> out;
  const Indices slabs = slabs_of(round);
  Indices counts;
  for (int d = 0; d < slabs.size(); ++d) counts.push_back(static_cast<Index>(axes_[d].needs[slabs[d]].size()));
  Place place{.coordinates = counts, .replica = peer_replica_};
  Index offset_bytes = 0;
  for_each_coordinate(counts, [&](const Indices& at) {
    Box box{counts, counts};
    for (int d = 0; d < at.size(); ++d) {
      const Need& need = axes_[d].needs[slabs[d]][at[d]];
      place.coordinates[d] = need.coordinate;
      box.lower[d] = need.local.lower;
      box.upper[d] = need.local.upper;
    }
    out.push_back({peers_->rank_of(place), box, offset_bytes});
    offset_bytes += box.count() * width_;
  });
  return out;
}

Indices BoxBlocks::box_between(Index memory_bytes) const {
  // Chunks are read whole.
  if (!gathers_ || round_count_ == 0 || job_.source->source) return {};
  const StoredSide target = side_of(*job_.wanted);
  // Leaves an eighth of a round for overlap.
  const Index cells_max = std::max<Index>(1, slabs_bytes_max(memory_bytes) / width_ / 8 * 7);
  return round_shape({.extents = job_.wanted->spec.distribution.extents(),
                      .source = target,
                      .target = target,
                      .width = width_,
                      .cells_max = cells_max,
                      .open_max = FileSet::default_open_max()});
}

Index BoxBlocks::bytes_read() const {
  if (gathers_) return slab_bytes_read();
  Index out = 0;
  const PartPlanner planner(job_.source->spec, job_.wanted->spec);
  for (Index part = 0; part < static_cast<Index>(job_.wanted->parts.size()); ++part) {
    const PlanSummary plan = summarise(planner.plan(part).moves);
    out = checked_add(out, plan.received.bytes);
    // Each stretch of a block ends where a row or a part of the source ends, and needs two pages in part.
    const Index stretches = plan.received.bytes / direct_row_bytes + block_count(part) * (plan.messages_received + 2);
    out = checked_add(out, checked_multiply(stretches, 2 * page_bytes));
  }
  return out;
}

}  // namespace tranship
